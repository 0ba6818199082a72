"""GTP on the standard input and output: a controller sends commands, an engine answers."""

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from tengen import files
from tengen.config.settings.engine import EngineSettings, PlaySettings
from tengen.engine.gtp import protocol
from tengen.engine.gtp.commands import GtpCommands
from tengen.engine.gtp.go_commands import GoCommands
from tengen.engine.gtp.protocol import GtpAnswer, GtpCommand, GtpError
from tengen.engine.lines import InputLines, standard_input, write_out
from tengen.errors import TengenError
from tengen.match.player_spec import find_network
from tengen.run import networks


class GtpSession:
    """Answers the commands in `source` until `quit` or its end. `write` sends text at once."""

    def __init__(self, commands: GtpCommands, source: Iterable[bytes], write: Callable[[str], None]) -> None:
        self._commands, self._write = commands, write
        self._lines = InputLines(source)

    def run(self) -> None:
        while (line := self._lines.next()) is not None:
            command = protocol.parse(line)
            if command is not None:
                self._write_answer(command)
                if command.name == "quit":
                    return
            if not self._lines.waiting.is_set():
                self._commands.ponder(GtpAnswer(GtpCommand("", "", []), self._write, self._lines.waiting))

    def _write_answer(self, command: GtpCommand) -> None:
        """Answer one command; an error is reported, and the session goes on."""
        answer = GtpAnswer(command, self._write, self._lines.waiting)
        try:
            if command.name in self._commands.streams:
                self._commands.streams[command.name](command.arguments, answer)
                answer.end()
            elif command.name in self._commands.commands:
                said = self._commands.commands[command.name](command.arguments)
                self._write(protocol.success(command, said or ""))
            else:
                raise GtpError("unknown command")
        except TengenError as error:
            answer.fail(str(error))
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:  # a controller must get its answer even if this program is wrong
            traceback.print_exc(file=sys.stderr)
            answer.fail(f"internal error: {error}")


def make(found: networks.FoundNetwork, play: PlaySettings, engine: EngineSettings) -> GtpCommands:
    return (GoCommands if found.saved.game == "go" else GtpCommands)(found, play, engine)


def serve(net: str, play: PlaySettings, engine: EngineSettings, log: Path | None) -> None:
    """Answer commands. The search is compiled before the first command, which may start a clock."""
    found = find_network(net)
    with ExitStack() as stack:
        logged = None if log is None else stack.enter_context(files.open_log(log))
        commands = make(found, play, engine)
        print(f"Tengen with {found.name} ({found.saved.game}); compiling", file=sys.stderr, flush=True)
        commands.engine.warm_up()
        print("ready", file=sys.stderr, flush=True)

        def write(text: str) -> None:
            write_out(text)
            if logged is not None:
                logged.write(text)
                logged.flush()

        GtpSession(commands, _noted(standard_input(), logged), write).run()


def _noted(source: Iterable[bytes], log: TextIO | None) -> Iterator[bytes]:
    for line in source:
        if log is not None:
            log.write("> " + line.decode("utf-8", "replace").rstrip("\r\n") + "\n")
        yield line
