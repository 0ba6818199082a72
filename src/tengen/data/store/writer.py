"""Files written in the background, while the device continues to play."""

import atexit
import contextlib
import sys
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from os import PathLike
from types import TracebackType

from tengen import files
from tengen.errors import TengenError

Job = Callable[[], object]


class Writer(contextlib.AbstractContextManager["Writer"]):
    """A thread that does one job after the other.

    The error of a failed job is raised at the next `put`, `flush` or `close`, and nothing more is accepted from then
    on; waiting jobs are still tried. Jobs that wait when the program ends are finished first.
    """

    def __init__(self, limit: int = 8) -> None:
        """At most `limit` jobs wait; a `put` beyond that waits for room, so that a slow disk cannot fill the memory."""
        if limit < 1:
            raise ValueError("a writer needs room for at least one job")
        self._limit, self._closed = limit, False
        self._jobs: list[tuple[str, Future[object]]] = []  # that wait, are being done, or have failed
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "tengen-writer")  # Python waits for it before it calls `_at_exit`
        atexit.register(self._at_exit)

    def put(self, job: Job, what: str | PathLike[str] = "") -> None:
        """Do `job` later; `what` is the file that it writes, for messages.

        TengenError if an earlier job could not write its file; other errors of earlier jobs are raised as they are.
        """
        if not self._closed:
            # Besides those that wait, one is being done.
            while len(undone := self._undone()) > self._limit and not self._failed():
                wait(undone, return_when=FIRST_COMPLETED)
            self._raise()
        with self._lock:
            if self._closed:  # perhaps while it waited for room
                raise ValueError("this writer is closed")
            self._jobs = [(name, done) for name, done in self._jobs if not done.done() or done.exception()]
            self._jobs.append((str(what), self._thread.submit(job)))

    @property
    def waiting(self) -> int:
        """Jobs that are not done yet."""
        return len(self._undone())

    def flush(self) -> None:
        """Return when all jobs are done. Raises as `put` does."""
        wait(self._undone())
        self._raise()

    def close(self) -> None:
        """Finish all jobs and end. Raises as `put` does, the first time."""
        first, self._closed = not self._closed, True
        self._thread.shutdown()
        atexit.unregister(self._at_exit)
        if first:
            self._raise()

    def _at_exit(self) -> None:
        """For programs that end without `close`."""
        try:
            self.close()
        except TengenError as error:
            print(f"tengen: {error}", file=sys.stderr)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # What went wrong first is what the reader must see.
        with contextlib.nullcontext() if error is None else contextlib.suppress(BaseException):
            self.close()

    def _undone(self) -> list[Future[object]]:
        return [job for _, job in self._jobs if not job.done()]

    def _failed(self) -> list[tuple[str, BaseException]]:
        return [(what, error) for what, job in self._jobs if job.done() and (error := job.exception())]

    def _raise(self) -> None:
        failed = self._failed()
        if not failed:
            return
        what, error = failed[0]
        others = len(failed) - 1
        more = f" (and {others} more files were not written)" if others else ""
        if isinstance(error, OSError):
            raise TengenError(f"{files.cannot_write(what or error.filename or 'a file', error)}{more}") from error
        if isinstance(error, TengenError):
            raise TengenError(f"{error}{more}") from error
        raise error
