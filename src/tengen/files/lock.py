"""Locks on folders, which the system releases when a process ends, however it ends."""

import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tengen import files
from tengen.errors import TengenError

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # file systems without locks
_LOOK = 0.1  # seconds between two attempts


class InUse(TengenError):
    """Another process holds the lock. `here`: a process of this machine."""

    def __init__(self, what: object, who: str, other: str) -> None:
        super().__init__(f"{what}: is being used by {who}; wait until it ends, or choose another {other}")
        self.here = who.endswith(f" on {socket.gethostname()}")


@contextlib.contextmanager
def locked(
    folder: Path, *, shared: bool = False, name: str = ".lock", what: str = "", other: str = "--base"
) -> Iterator[None]:
    """Hold the lock `name` of a folder, alone or with others that share it; the folder is made if necessary.

    Raises InUse if another process has it. For the message, `what` is locked (default: the folder) and `other` is the
    option with which the user chooses another.
    """
    try:
        import fcntl
    except ImportError:  # a system without such locks
        yield
        return
    with contextlib.ExitStack() as stack:
        with writable(folder, other):
            folder.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(files.open_to_append(folder / name, readable=True))
            try:
                fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                who = file.read(200).decode(errors="replace").strip() or "another process"
                raise InUse(what or folder, who, other) from None
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
        with contextlib.suppress(OSError):  # only for the message above
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield


@contextlib.contextmanager
def waiting(
    take: Callable[[], contextlib.AbstractContextManager[None]],
    seconds: float,
    give_up: Callable[[InUse], bool] = lambda error: False,
) -> Iterator[None]:
    """Hold the lock of `take`, waiting up to `seconds` for other processes, or until `give_up` says so."""
    end = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(take())
                break
            except InUse as error:
                if time.monotonic() >= end or give_up(error):
                    raise
            time.sleep(_LOOK)
        yield


@contextlib.contextmanager
def writable(folder: Path, other: str = "--base") -> Iterator[None]:
    """Around writing to a folder that the user chose with the option `other`: a FileError that says what to do."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileExistsError | NotADirectoryError):
            problem = f"is a file or lies below one, expected a folder; choose another {other}"
        elif isinstance(error, PermissionError):
            problem = f"may not be written to; choose another {other}, or change its permissions"
        else:
            problem = f"cannot be written to: {error.strerror or error}; choose another {other}, or make room"
        raise files.FileError(f"{folder}: {problem}", error) from error
