"""`tengen tui`: the dashboard of the training daemon."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tengen import config as configuration
from tengen.commands.arguments import BASE, CONFIG_HELP, Arg, Namespace, overrides
from tengen.errors import OptionError

if TYPE_CHECKING:
    from tengen.monitor.dashboard.client import StatusClient

_LOOK = 1.0  # seconds between two checks whether there is a terminal
HELP = "a dashboard: start the training daemon and watch it, or join one"
ABOUT = """Shows a dashboard in the terminal. It starts the training daemon and watches it, or joins a daemon that is
running already."""
EXAMPLE = "tengen tui go9 --base runs/go9"
ARGUMENTS = (
    Arg("CONFIG?", CONFIG_HELP),
    overrides(),
    BASE,
    Arg("--listen PATH", "the daemon listens on this Unix socket, and may stay when you quit", Path),
    Arg("--attach PATH", "join the daemon that listens on this Unix socket", Path),
)


def run(args: Namespace) -> int:
    if args.attach is not None:
        if args.config or args.base or args.listen or args.overrides:
            raise OptionError("--attach: that daemon already has its configuration; leave out all other arguments")
        from tengen.monitor.dashboard.client import Attached

        return show(Attached(args.attach), args.attach.stem)
    if args.config is None:
        raise OptionError("tengen tui: expected CONFIG, or --attach PATH for a daemon that runs already")
    config = configuration.load(args.config, args.overrides)  # mistakes are reported before there is a screen
    return show(_daemon(args), config.run.name, args.config)


def _daemon(args: Namespace) -> "StatusClient":
    from tengen.monitor.dashboard.client import ChildClient, Staying

    words = [sys.executable, "-m", "tengen", "daemon"]
    words += ["--listen", str(args.listen)] if args.listen else []
    words += ["--base", str(args.base)] if args.base else []
    words += [args.config, *(f"--set={each}" for each in args.overrides)]
    return Staying(words, args.listen) if args.listen else ChildClient(words)


def show(client: "StatusClient", name: str, config: str = "") -> int:
    """Show the dashboard, then print the last lines of a process that has ended. Returns the exit code."""
    from tengen.monitor.dashboard.app import Dashboard

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise OptionError("the dashboard needs a terminal; `tengen status RUN` shows how a run stands")
    app = Dashboard(client, name, config)
    threading.Thread(target=_end_without_terminal, args=(client, sys.stdin.fileno()), daemon=True).start()
    code = app.run()
    ended = app.model.ended
    if ended is not None:
        print("\n".join([*app.model.last_words, ended.words]))
    code = app.return_code or code or 0
    return code if code >= 0 else 128 - code  # as a shell reports a signal


def _end_without_terminal(client: "StatusClient", terminal: int) -> None:
    """End this process once its terminal is gone, for example because its window was closed.

    Textual would wait for ever to write there.
    """
    while os.isatty(terminal):
        time.sleep(_LOOK)
    client.leave()
    os._exit(128 + signal.SIGHUP)
