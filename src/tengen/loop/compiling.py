"""Compiling in a thread what a run needs later, while it does something else. XLA does not hold Python's lock."""

import contextlib
import threading
from collections.abc import Callable

from tengen.run import safe_exit


class CompilingAhead:
    """At most one function, called once in a thread."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def start(self, function: Callable[[], object]) -> None:
        """Call it in a thread, unless there is one. Its errors are left to the call that needs the program."""
        if self._thread is None:
            # A daemon: a process that fails must not wait for a program that nobody will use.
            self._thread = threading.Thread(target=_quietly, args=(function,), name="compiling", daemon=True)
            self._thread.start()

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Wait until it is done; a process that was asked to stop ends here (see `safe_exit`)."""
        if self._thread is not None and self._thread.is_alive():
            with safe_exit.possible():
                self._thread.join()


def _quietly(function: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):
        function()
