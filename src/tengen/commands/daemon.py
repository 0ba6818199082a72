"""`tengen daemon`: train on data that others make, for as long as they make it."""

import contextlib
import os
import signal
import sys
from pathlib import Path

from tengen.commands.arguments import BASE, Arg, Namespace, overrides

HELP = "wait for data from elsewhere, train, export, upload, and begin again"
ABOUT = """Trains on data that other programs write, for as long as they write it: waits for new chunks, trains,
exports a network, uploads it, and begins again. Clients talk to it in lines of JSON on the standard input and
output, or through a Unix socket (docs/protocol.md)."""
EXAMPLE = "tengen daemon go9 --base runs/go9 --listen runs/go9.sock"
ARGUMENTS = (
    Arg("CONFIG?", "begin with this configuration at once (default: wait for start_training)"),
    BASE,
    Arg("--listen PATH", "also talk to clients of a Unix socket that is made there", Path),
    overrides(),
)


def run(args: Namespace) -> int:
    from tengen.daemon.service import Service
    from tengen.run.signals import Stopping

    if args.listen is not None and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it does not depend on the terminal that started it
    source, sink = _own_standard()
    with Service(args.base, args.overrides) as service, Stopping(lambda text: service.log("info", text)) as stopping:
        service.open(source, sink, args.listen, args.config)
        service.wait(lambda: stopping.asked)
    refused = args.config is not None and not service.cycle.opened and not stopping.asked
    return 2 if refused else stopping.code


def _own_standard() -> tuple[int | None, int | None]:
    """Standard input and output for the protocol alone: whatever else is printed goes to standard error."""
    sys.stdout.flush()
    source = sink = None
    with contextlib.suppress(OSError):
        source = os.dup(0)
    with contextlib.suppress(OSError):
        sink = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    return source, sink
