"""Stopping a program by Ctrl-C or SIGTERM: cleanly the first time, at once the second time."""

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import Self

from tengen.run import safe_exit
from tengen.run.children import GRACE, PARENT

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h"
_BEAT = 0.5  # seconds between two checks whether the parent is alive
_PATIENCE = 0.5  # seconds after which a process that is compiling is ended, and between two checks whether it is


class Stopping:
    """While it is open, Ctrl-C (or SIGTERM) asks the program to end when it can, and a second one ends it at once.

    A separate thread listens, because Python's own handlers do not run while XLA compiles. Where work may be abandoned
    (`run/safe_exit.py`), the thread ends the process itself, with the same exit code, after calling `on_leave`.

    A process that was started by a driver (whose process ID is TENGEN_PARENT) also stops when the driver has died.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.signal: signal.Signals | None = None  # that was received
        self.on_leave: Callable[[], object] = lambda: None  # called last
        self._say = say

    @property
    def asked(self) -> bool:
        return self.signal is not None

    @property
    def code(self) -> int:
        """The exit code that a shell expects after this signal; 0 if there was none."""
        return 0 if self.signal is None else 128 + self.signal

    @property
    def words(self) -> str:
        return "" if self.signal is None else "Ctrl-C" if self.signal == signal.SIGINT else self.signal.name

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, name="stopping", daemon=True)
        self._thread.start()
        self._over = threading.Event()
        parent = os.environ.pop(PARENT, "")  # children of this process must not inherit it
        if parent.isdecimal():
            threading.Thread(target=self._watch, args=(int(parent),), name="parent", daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._write)  # which ends the thread
        self._thread.join()
        os.close(self._read)

    def _listen(self) -> None:
        while True:
            if not select.select([self._read], [], [], _PATIENCE if self.asked else None)[0]:
                if safe_exit.leave():
                    self._leave()
                continue
            number = os.read(self._read, 1)
            if not number:
                return
            if number[0] not in _SIGNALS:
                continue
            if self.asked:
                if sys.stdout is not None and sys.stdout.isatty():
                    os.write(sys.stdout.fileno(), _SHOW_CURSOR)  # the panel has hidden it
                os._exit(128 + number[0])
            self.signal = signal.Signals(number[0])
            self._say("stopping: everything is being written (Ctrl-C again stops at once)")

    def _leave(self) -> None:
        """End the process, whose other threads wait or compile."""
        with contextlib.suppress(Exception):
            self._say(f"stopped by {self.words}: everything is written")
            self.on_leave()
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        os._exit(self.code)

    def _watch(self, parent: int) -> None:
        while os.getppid() == parent:
            if self._over.wait(_BEAT):
                return
        if not self.asked:
            os.kill(os.getpid(), signal.SIGTERM)
        if not self._over.wait(GRACE):
            os._exit(128 + signal.SIGTERM)
