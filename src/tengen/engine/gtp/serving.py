"""A network at the standard input and output."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from tengen import files
from tengen.config.settings.engine import EngineSettings, PlaySettings
from tengen.engine.gtp.commands import GtpCommands
from tengen.engine.gtp.go_commands import GoCommands
from tengen.engine.gtp.input import standard_input
from tengen.engine.gtp.session import GtpSession
from tengen.errors import TengenError
from tengen.run import networks


def make(found: networks.FoundNetwork, play: PlaySettings, engine: EngineSettings) -> GtpCommands:
    """The commands for the game that the network plays."""
    return (GoCommands if found.saved.game == "go" else GtpCommands)(found, play, engine)


def serve(net: str, play: PlaySettings, engine: EngineSettings, log: Path | None) -> None:
    """Answer what comes in. The first search is compiled before the first command, which may come with a clock."""
    found = networks.find(net)
    with ExitStack() as stack:
        logged = None if log is None else stack.enter_context(_opened(log))
        dialect = make(found, play, engine)
        print(f"Tengen with {found.name} ({found.saved.game}); compiling", file=sys.stderr, flush=True)
        dialect.engine.warm_up()
        print("ready", file=sys.stderr, flush=True)

        def write(text: str) -> None:
            sys.stdout.write(text)
            sys.stdout.flush()
            if logged is not None:
                logged.write(text)
                logged.flush()

        GtpSession(dialect, _noted(standard_input(), logged), write).run()


def _opened(log: Path) -> TextIO:
    try:
        return files.open_log(log)
    except OSError as error:
        raise TengenError(f"{log}: the log cannot be written: {error.strerror or error}") from None


def _noted(source: Iterable[bytes], log: TextIO | None) -> Iterator[bytes]:
    """The lines, on their way also into the log."""
    for line in source:
        if log is not None:
            log.write("> " + line.decode("utf-8", "replace").rstrip("\r\n") + "\n")
        yield line
