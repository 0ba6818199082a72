"""What the commands of the pipeline's parts have in common."""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TextIO

from tengen import config as configuration
from tengen.commands.arguments import BASE, CONFIG, Arg, Arguments, Namespace
from tengen.config.sections import Config
from tengen.config.source import RUN_FILE

Build = Callable[[Config, Path, Callable[[], bool], Callable[[str], None]], Any]
"""(configuration, run directory, whether to stop, how to print a message) -> the part."""


def part_arguments(once: str) -> Arguments:
    """The arguments of every part; `once` says what `--once` means."""
    return *CONFIG, BASE, Arg("--once", once)


def load(args: Namespace) -> tuple[Config, Path]:
    config = configuration.load(args.config, args.overrides)
    return config, configuration.base_of(args.config, config.run.name, args.base)


def look(args: Namespace) -> tuple[Config, Path]:
    """As `load`, for commands that only inspect a run. ConfigError if there is no run, or if its settings differ."""
    from tengen.run import config_file

    config, base = load(args)
    config_file.check(config, base)
    return config, base


def drive(
    args: Namespace,
    build: Build,
    *,
    only: str = "",
    free: Iterable[str] = (),
    own: Collection[str] = (),
    computes: bool = True,
    watched: str = "",
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Run that part until it is done, or until Ctrl-C; returns the exit code.

    `only` names a part that exists only once; settings that are `free` may differ from the run's, and its `own` do not
    follow later changes of the run's; `computes`: it needs
    a device; `watched` is the folder in the run whose settings it follows (default: the run); `stop` is another reason
    to stop besides signals.
    """
    config, base = load(args)

    from tengen.config import provenance
    from tengen.jax_setup import keep_compiled
    from tengen.run import children, config_file, locks
    from tengen.run.config_file import ConfigWatch

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other parts may use the same GPU
    if computes:
        keep_compiled()
        import jax

        if jax.local_device_count() > 1:
            say(f"on {jax.local_device_count()} devices")

    # An earlier driver may have been killed a moment ago, and its parts need time to end.
    parent = os.environ.get(children.PARENT, "")
    patience = children.PATIENCE if parent else 0.0
    with locks.following(base, only, patience, say, lambda: str(os.getppid()) != parent):
        config, notes = config_file.settled(config, base / watched, args.overrides)
        for note in notes:
            say(note)
        if config_file.join(config, base, provenance.lines(), free):
            say(f"{base}: there was no run, so a new one begins here")
        provenance.keep_changes(base)
        same = not args.overrides and Path(args.config) in (base, base / RUN_FILE) and not watched
        look = ConfigWatch(base / watched, config, say, same=same, own=own).look
        return _drive(config, base, build, look, stop, once=args.once)


def _drive(
    config: Config, base: Path, build: Build, look: Callable[[], Any], stop: Callable[[], bool], *, once: bool
) -> int:
    from tengen.jax_setup import explaining_memory
    from tengen.loop.parts import running
    from tengen.run import safe_exit
    from tengen.run.part_status import StatusWriter
    from tengen.run.signals import Stopping

    with Stopping(say) as stopping, explaining_memory():

        def asked() -> bool:
            return stop() or stopping.asked

        with safe_exit.possible():
            part = build(config, base, lambda: stopping.asked, say)
        with contextlib.closing(part), StatusWriter(base, part.kind, part.name) as status, safe_exit.before(part.flush):
            poll = config.ring.poll_seconds
            last = running.run(part, status, asked, say, poll, once=once, look=look)
    if stopping.asked:
        say(f"stopped by {stopping.words}: everything is written")
    elif last.worked and not (last.event or last.ended):  # the others were printed
        say(last.words)
    return stopping.code


def say(text: str, file: TextIO | None = None) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=file, flush=True)
