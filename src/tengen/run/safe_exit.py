"""Ending a process that was asked to stop in the middle of a call that no signal can interrupt, such as XLA's compiler.

    with safe_exit.before(flush):         # as long as there may be something to write
        with safe_exit.possible():        # nothing else is lost if the process ends here
            compile_for_minutes()

The thread that receives the signal (`run/signals.py`) calls `leave` and ends the process there. There is one state for
the whole process, because signals and exits concern all of it.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

_lock = threading.Lock()
_sections = 0
_callbacks: list[Callable[[], object]] = []


@contextlib.contextmanager
def possible(when: bool = True) -> Iterator[None]:
    """Around work during which the process may be ended, if `when`. Only one thread at a time opens these."""
    global _sections
    if not when:
        yield
        return
    with _lock:
        _sections += 1
    try:
        yield
    finally:
        with _lock:  # waits for ever if the process is about to end, so that nothing is begun meanwhile
            _sections -= 1


@contextlib.contextmanager
def before(callback: Callable[[], object]) -> Iterator[None]:
    """While this is open, `callback` is called before the process is ended; the one opened last is called first."""
    with _lock:
        _callbacks.append(callback)
    try:
        yield
    finally:
        with _lock:
            _callbacks.remove(callback)


def leave() -> bool:
    """Whether the caller must end the process now: all callbacks were called, and all other threads wait.

    False if the process is busy with something that must not be interrupted, or if a callback failed: then the work
    itself ends soon and says what is wrong.
    """
    _lock.acquire()
    try:
        if _sections:
            for callback in reversed(_callbacks):
                callback()
            return True
    except Exception:
        _lock.release()
        return False
    _lock.release()
    return False
