"""Parts as separate processes: started, restarted when they die, and stopped in order.

Each is in a new session, so that a terminal's Ctrl-C reaches only the driver. It knows the driver's process
(`run/signals.py`), and ends by itself if that is killed.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from tengen import files
from tengen.config.source import RUN_FILE
from tengen.errors import Diverged, TengenError
from tengen.words import printable

KINDS = ("selfplay", "shuffle", "train", "export", "gate")
"""In the order of the pipeline, in which they are also ended."""
PARENT = "TENGEN_PARENT"
GRACE = 30.0  # seconds that a part may take to end
PATIENCE = GRACE + 10.0  # seconds that a part of an earlier driver may take
_USER_ERROR = 2  # the exit code for errors that a person must fix
_ENOUGH = 3  # times in a row that the same such error may occur
_LONGEST_PAUSE = 60.0  # seconds
_SETTLED = 60.0  # seconds; a part that ran this long before it died is restarted after the shortest pause
_TAIL = 1 << 16  # bytes of a log
_LONGEST_LINE = 400  # characters of a line that are shown
_TIME = re.compile(r"\d\d:\d\d:\d\d ")


class Hopeless(TengenError):
    """A part that always ends with the same error, which a person must fix."""


def command(kind: str, base: Path) -> list[str]:
    """The command that runs a part with the configuration in the run directory."""
    return [sys.executable, "-m", "tengen", kind, str(base / RUN_FILE), "--base", str(base)]


class ChildProcess:
    """One part. Its output goes to the end of `log`."""

    def __init__(
        self,
        kind: str,
        command: Sequence[str],
        log: Path,
        clock: Callable[[], float] = time.monotonic,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`environment` has variables besides those of this process."""
        self.kind, self.log, self._environment = kind, log, environment
        self.starts = 0
        self.ended = False  # by itself and without an error: there is nothing more to do
        self._command, self._clock = list(command), clock
        self._process: subprocess.Popen[bytes] | None = None
        self._since = 0.0  # when it was started
        self._offset = 0  # where its output begins in the log
        self._pause, self._due = 0.0, 0.0  # the pause before the next start, and when it is over
        self._asked = 0.0  # when it was asked to end
        self._error, self._times = "", 0  # the last error that a person must fix, and how often in a row it occurred

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def process(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def restarts(self) -> int:
        return max(self.starts - 1, 0)

    @property
    def words(self) -> str:
        if self.running:
            return "starting"
        if self.ended:
            return "has ended"
        return f"starting again in {max(self._due - self._clock(), 0):.0f} s" if self.starts else "not started"

    def start(self) -> str:
        """Start it; returns what went wrong, if anything did."""
        self.starts += 1
        self._since = self._clock()
        try:
            # Parts share the memory of a device, so none may take most of it at its start, as XLA does.
            variables = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ, **self._environment}
            title = " ".join([*(f"{name}={value}" for name, value in self._environment.items()), *self._command])
            self._process, self._offset = launch(self._command, self.log, title, variables)
        except OSError as error:
            return self._died(f"{self.kind} cannot be started", f"{error.filename or ''} {error.strerror}".strip())
        return ""

    def look(self) -> str:
        """Restart it if it is due; returns what happened, if anything did.

        Raises Hopeless, or Diverged if its training diverged.
        """
        if self._process is None:
            return "" if self.ended or self._clock() < self._due else self.start()
        code = self._process.poll()
        if code is None:
            return ""
        self._process = None
        last = self._last_line()
        if code == 0:
            self.ended = True
            return f"{self.kind} has ended" + (f": {last}" if last else "")
        if code == _USER_ERROR and (diverged := self._last_line(Diverged.BEGINNING)):
            raise Diverged(diverged)  # the same would happen again and again
        self._times = 0 if code != _USER_ERROR else self._times + 1 if last == self._error else 1
        self._error = last
        if self._times >= _ENOUGH:
            raise Hopeless(
                f"{self.kind} ended {_ENOUGH} times with the same error: {last or 'it printed nothing'}\n"
                f"fix it and start again; its output is in {self.log}"
            )
        how = f"with code {code}" if code > 0 else f"by {signal_name(-code)}"
        return self._died(f"{self.kind} ended {how}", last)

    def ask(self) -> None:
        """Ask it to end, if it runs and was not asked before: a second signal would end it at once."""
        if self._process is not None and not self.ended:
            self._process.terminate()
            self._asked, self.ended = self._clock(), True

    def stop(
        self, grace: float = GRACE, sleep: Callable[[float], None] = time.sleep, say: Callable[[str], None] = print
    ) -> None:
        """Ask it to end, and kill it if it has not ended after `grace` seconds."""
        self.ask()
        process, self._process, self.ended = self._process, None, True
        if process is None:
            return
        end = self._asked + grace
        while process.poll() is None:
            if self._clock() >= end:
                say(f"{self.kind} did not end within {grace:.0f} s, and was killed")
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return
            sleep(0.05)
        if process.returncode not in (0, 128 + signal.SIGTERM, -signal.SIGTERM):
            last = self._last_line()
            say(f"{self.kind} ended with code {process.returncode}" + (f": {last}" if last else ""))

    def _died(self, what: str, why: str) -> str:
        if self._clock() - self._since >= _SETTLED:
            self._pause = 0.0
        self._pause = min(2 * self._pause or 1.0, _LONGEST_PAUSE)
        self._due = self._clock() + self._pause
        return f"{what}{f': {why}' if why else ''}; starting it again in {self._pause:.0f} s"

    def _last_line(self, beginning: str = "") -> str:
        """The last line of its output that begins with `beginning`, without the time; empty if there is none."""
        found = (_TIME.sub("", line.strip()) for line in reversed(last_lines(self.log, self._offset)))
        return next((line for line in found if line and line.startswith(beginning)), "")


def stop_all(
    children: Sequence[ChildProcess], say: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Stop all of them together, which takes as long as the slowest one; in the order of the pipeline."""
    children = sorted(children, key=lambda child: KINDS.index(child.kind))
    for child in children:
        child.ask()
    for child in children:
        if child.running:
            say(f"ending {child.kind}")
        child.stop(GRACE, sleep, say)


def launch(
    command: Sequence[str], log: Path, title: str, environment: Mapping[str, str]
) -> tuple["subprocess.Popen[bytes]", int]:
    """Start a process in a new session; it ends by itself if this one is killed (`run/signals.py`).

    Its output is appended to `log`, below a line with the time and the title. Also returns the offset of the output.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with files.open_to_append(log) as file:
        line = f"== {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC: {title}\n"
        with contextlib.suppress(OSError):  # a full disk must not keep it from working
            file.write(line.encode(errors="backslashreplace"))
        offset = file.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={"PYTHONUNBUFFERED": "1", **environment, PARENT: str(os.getpid())},
            start_new_session=True,
        )
    return process, offset


def last_lines(log: Path, offset: int) -> list[str]:
    """The last lines of a process's output, which begins at `offset`, for people; none if it cannot be read."""
    try:
        text = files.read_end(log, _TAIL, offset).decode(errors="replace")
    except OSError:
        return []
    lines = (printable(line).rstrip() for line in text.split("\n"))
    return [line[:_LONGEST_LINE] for line in lines if line]


def signal_name(number: int) -> str:
    """SIGTERM for 15."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
