"""Files written in the background, while the device continues to play."""

import atexit
import contextlib
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from types import TracebackType

from tengen import files
from tengen.errors import TengenError

Job = Callable[[], object]


class Writer:
    """A thread that does one job after the other.

    The error of a failed job is raised at the next `put`, `flush` or `close`, and nothing more is accepted from then
    on; waiting jobs are still tried, since a file elsewhere may succeed. Jobs that wait when the program ends are
    finished first.
    """

    def __init__(self, limit: int = 8) -> None:
        """At most `limit` jobs wait; a `put` beyond that waits for room, so that a slow disk cannot fill the memory."""
        if limit < 1:
            raise ValueError("a writer needs room for at least one job")
        self._limit, self._waiting = limit, 0
        self._closed = False
        self._errors: list[tuple[str, BaseException]] = []
        self._changed = threading.Condition()
        self._thread = ThreadPoolExecutor(1, "tengen-writer")  # Python waits for it before it calls `_at_exit`
        atexit.register(self._at_exit)

    def put(self, job: Job, what: str | PathLike[str] = "") -> None:
        """Do `job` later; `what` is the file that it writes, for messages.

        TengenError if an earlier job could not write its file; other errors of earlier jobs are raised as they are.
        """
        with self._changed:
            if self._closed:
                raise ValueError("this writer is closed")
            # Besides those that wait, one is being done.
            self._changed.wait_for(lambda: self._waiting <= self._limit or bool(self._errors))
            self._raise()
            if self._closed:  # while it waited for room
                raise ValueError("this writer is closed")
            self._thread.submit(self._do, job, str(what))
            self._waiting += 1  # only now: without a thread the job will never be done

    @property
    def waiting(self) -> int:
        with self._changed:
            return self._waiting

    def flush(self) -> None:
        """Return when all jobs are done. Raises as `put` does."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)
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

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # What went wrong first is what the reader must see.
        with contextlib.nullcontext() if error is None else contextlib.suppress(BaseException):
            self.close()

    def _do(self, job: Job, what: str) -> None:
        failure: BaseException | None = None
        try:
            job()
        except BaseException as error:  # all of it belongs to the thread that gave the job
            failure = error
        del job  # its arrays may be large, and the next job may be long in coming
        with self._changed:
            self._waiting -= 1
            if failure is not None:
                self._errors.append((what, failure))
            self._changed.notify_all()

    def _raise(self) -> None:
        if not self._errors:
            return
        what, error = self._errors[0]
        others = len(self._errors) - 1
        more = f" (and {others} more files were not written)" if others else ""
        if isinstance(error, OSError):
            raise TengenError(f"{files.cannot_write(what or error.filename or 'a file', error)}{more}") from error
        if isinstance(error, TengenError):
            raise TengenError(f"{error}{more}") from error
        raise error
