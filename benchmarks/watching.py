"""What a status a second and an attached dashboard cost a training daemon: steps a second, with and without.

    python benchmarks/watching.py --pairs 6 --seconds 8

One daemon trains all the time. Stretches in which it sends no status and nobody is there alternate with stretches in
which it sends one a second and `tengen tui --attach` shows them on a terminal of 120x40.
"""

import argparse
import contextlib
import fcntl
import os
import pty
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tengen.daemon.service import Service
from tengen.protocol import messages
from tests.helpers.daemon_data import chunk, overrides
from tests.helpers.patience import eventually

_SETTLE = 4.0  # seconds for the dashboard to start, which is not what is measured


class Quiet(Service):
    """A daemon that can be told to say nothing of itself."""

    watched = False
    statuses, seconds = 0, 0.0  # what statuses take of the processor

    def _tell_status(self) -> None:
        if self.watched:
            began = time.thread_time()
            super()._tell_status()
            self.seconds += time.thread_time() - began
            self.statuses += 1


@contextlib.contextmanager
def dashboard(socket: Path) -> Iterator[int]:
    """A real one, on a terminal that nobody looks at; the number of its process."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    words = [sys.executable, "-m", "tengen", "tui", "--attach", str(socket)]
    around = {**os.environ, "TERM": "xterm-256color", "JAX_PLATFORMS": "cpu"}
    child = subprocess.Popen(words, stdin=inside, stdout=inside, stderr=inside, env=around, start_new_session=True)
    os.close(inside)
    drawn = [0]

    def read() -> None:
        with contextlib.suppress(OSError):
            while part := os.read(terminal, 1 << 16):
                drawn[0] += len(part)

    threading.Thread(target=read, daemon=True).start()
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()
        os.close(terminal)
        if drawn[0] < 10_000:
            print(f"the dashboard has drawn {drawn[0]} bytes only: it was not really there", flush=True)


def processor_seconds(process: int) -> float:
    """That a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def speed(service: Service, seconds: float) -> float:
    """Steps a second, over about so many seconds, from one step to another."""
    session = service.cycle.session
    assert session is not None
    first = session.trainer.step
    while session.trainer.step == first:  # a piece of work ends
        time.sleep(0.001)
    before, began = session.trainer.step, time.monotonic()
    time.sleep(seconds)
    last = session.trainer.step
    while session.trainer.step == last:
        time.sleep(0.001)
    return (session.trainer.step - before) / (time.monotonic() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--net", default="b4c64")
    args = parser.parse_args()
    changes = overrides(
        f"net.name={args.net}", "train.batch=256", "daemon.steps_per_network=100000000", "daemon.validation=0.0",
        "train.checkpoints.interval=1000000", "daemon.loader.reservoir_rows=4096",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        base, socket = Path(folder) / "run", Path(folder) / "socket"
        for number in range(40):
            chunk(base / "selfplay", number, 500)
        with Quiet(base, changes) as service:
            service.open(None, None, socket, "tic_tac_toe")
            eventually(lambda: service.cycle.session is not None and service.cycle.session.trainer.step > 50)
            found: dict[bool, list[float]] = {False: [], True: []}
            used: list[float] = []  # share of one core that the dashboard takes
            for _ in range(args.pairs):
                service.watched = False
                found[False].append(speed(service, args.seconds))
                service.watched = True
                with dashboard(socket) as process:
                    time.sleep(_SETTLE)
                    before, began = processor_seconds(process), time.monotonic()
                    found[True].append(speed(service, args.seconds))
                    used.append((processor_seconds(process) - before) / (time.monotonic() - began))
                service.watched = False
                alone, watched = found[False][-1], found[True][-1]
                print(f"{alone:9.1f} steps/s alone, {watched:9.1f} watched: {watched / alone:.4f}", flush=True)
            service.cycle.post(messages.Shutdown())
            service.cycle.ended.wait(60)
    ratios = [watched / alone for alone, watched in zip(found[False], found[True], strict=True)]
    print(f"median of {args.pairs} pairs: {statistics.median(ratios):.4f} of the speed")
    print(f"the dashboard takes {100 * statistics.median(used):.1f} % of one core")
    print(f"a status takes {1e3 * service.seconds / max(service.statuses, 1):.2f} ms of one core, one is sent a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
