"""Lines of text between an engine and the program that controls it."""

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import BinaryIO


class InputLines:
    """Reads lines in a thread, so that a search can notice the next command."""

    def __init__(self, source: Iterable[bytes], clock: Callable[[], float] = time.perf_counter) -> None:
        self.waiting = threading.Event()  # a line, or the end, has come and has not been taken yet
        self.arrived = 0.0  # when the line came that was taken last
        self._clock = clock
        self._lines: queue.SimpleQueue[tuple[float, str | None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        # A thread that hangs in a read must not keep the process alive.
        self._thread = threading.Thread(target=self._read, args=(source,), daemon=True)
        self._thread.start()

    def _read(self, source: Iterable[bytes]) -> None:
        try:
            for line in source:
                self._put(line.decode("utf-8", "replace"))
        except (OSError, ValueError):  # the stream was closed: the same as its end
            pass
        finally:
            self._put(None)

    def _put(self, line: str | None) -> None:
        with self._lock:
            self._lines.put((self._clock(), line))
            self.waiting.set()

    def next(self) -> str | None:
        """Wait for the next line; None at the end."""
        self.arrived, line = self._lines.get()
        with self._lock:
            if self._lines.empty():
                self.waiting.clear()
        return line


def standard_input() -> BinaryIO:
    """The standard input as another file object: Python closes `sys.stdin` at exit, and aborts if a thread reads it."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # not a real file
        return sys.stdin.buffer


def write_out(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
