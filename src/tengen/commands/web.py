"""`tengen web`: runs in the browser, live."""

import os
import socket
from pathlib import Path

from tengen.commands.arguments import Arg, Namespace

HELP = "watch runs in the browser"
ABOUT = """Shows runs in the browser while they go on: curves, ladder, games, data, and a board to play against their
networks. RUN is a run's folder, a folder of runs, or the folder of a match (default: runs). Only this machine can
connect, unless --host says otherwise; then the address has a token in it that every request needs. Ctrl-C ends it."""
EXAMPLE = "tengen web runs"
PORT = 8136
ARGUMENTS = (
    Arg("RUN*", "a run's folder or a folder of runs", Path, dest="runs"),
    Arg("--host ADDRESS", "address to listen on (default 127.0.0.1)", default="127.0.0.1"),
    Arg("--port N", f"port to listen on (default {PORT}; 0: any that is free)", int, PORT),
    Arg("--open", "open the page in the browser of this machine"),
)


def run(args: Namespace) -> None:
    from tengen.errors import OptionError, TengenError

    if not 0 <= args.port <= 65535:
        raise OptionError(f"--port {args.port}: expected a number from 0 to 65535")
    try:
        from tengen.web.access import Access
        from tengen.web.server import LivePage, PageServer, Watched
    except ModuleNotFoundError as error:
        raise OptionError(
            f"tengen web needs the {error.name} library: pip install 'tengen-zero[web]' (`tengen report` needs nothing)"
        ) from None
    folders = args.runs or [Path("runs")]
    if not args.runs and not folders[0].is_dir():
        raise TengenError("there is no folder runs here; name the folder of a run, or one with runs in it")
    # Runs come first: the page has what they leave, and never a GPU that they may need.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if hasattr(os, "nice"):
        os.nice(10)
    access = Access(args.host)
    watched = Watched(folders)
    try:
        family = socket.AF_INET6 if ":" in args.host else socket.AF_INET
        listening = socket.create_server((args.host, args.port), family=family)
    except OSError as error:
        advice = "--port chooses another port" if args.port else "--host chooses another address"
        raise TengenError(
            f"{args.host}:{args.port}: cannot listen there: {error.strerror or error}; {advice}"
        ) from None
    address = access.address(listening.getsockname()[1])
    count = len(watched.stamps())
    print(f"{address}   ({count} run{'' if count == 1 else 's'}; Ctrl-C ends it)", flush=True)
    if args.open:
        import webbrowser

        webbrowser.open(address)
    page = LivePage(watched, access)
    try:
        with listening:
            PageServer(page).run(sockets=[listening])
    except KeyboardInterrupt:
        if page.has_played:
            # Python would wait for the thread that thinks, and nothing interrupts a compilation. No files are open.
            os._exit(130)
        raise
