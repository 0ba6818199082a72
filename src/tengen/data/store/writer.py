"""Files written in the background, while the device continues to play."""

import atexit
import sys
import threading
from collections import deque
from collections.abc import Callable
from os import PathLike
from types import TracebackType
from typing import NamedTuple

from tengen import files
from tengen.errors import TengenError

Job = Callable[[], object]


class _Task(NamedTuple):
    job: Job
    what: str  # for messages


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
        self._limit = limit
        self._tasks: deque[_Task] = deque()
        self._busy = False
        self._closed = False
        self._errors: list[tuple[str, BaseException]] = []
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="tengen-writer", daemon=True)
        self._thread.start()
        # Daemon threads still run when these functions are called, but not after them.
        atexit.register(self._at_exit)

    def put(self, job: Job, what: str | PathLike[str] = "") -> None:
        """Do `job` later; `what` is the file that it writes, for messages.

        TengenError if an earlier job could not write its file; other errors of earlier jobs are raised as they are.
        """
        with self._changed:
            if self._closed:
                raise ValueError("this writer is closed")
            self._changed.wait_for(lambda: len(self._tasks) < self._limit or bool(self._errors))
            self._raise()
            self._tasks.append(_Task(job, str(what)))
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """Jobs that are not done yet."""
        with self._changed:
            return len(self._tasks) + self._busy

    def flush(self) -> None:
        """Return when all jobs are done. Raises as `put` does."""
        with self._changed:
            self._changed.wait_for(lambda: not self._tasks and not self._busy)
            self._raise()

    def close(self) -> None:
        """Finish all jobs and end. Raises as `put` does, the first time."""
        first = not self._closed
        self._end()
        if first:
            with self._changed:
                self._raise()

    def _end(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        atexit.unregister(self._at_exit)

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
        if error is None:
            self.close()
        else:  # what went wrong first is what the reader must see
            self._end()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._tasks) or self._closed)
                if not self._tasks:
                    return
                task = self._tasks.popleft()
                self._busy = True
                self._changed.notify_all()
            failure: BaseException | None = None
            try:
                task.job()
            except BaseException as error:  # all of it belongs to the thread that gave the job
                failure = error
            what = task.what
            del task  # its arrays may be large, and the next job may be long in coming
            with self._changed:
                self._busy = False
                if failure is not None:
                    self._errors.append((what, failure))
                self._changed.notify_all()

    def _raise(self) -> None:
        """Raise the first error, if there was one."""
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
