"""Files: only regular ones are opened, without waiting, and those that are written are complete or absent.

Opening a FIFO waits until somebody writes to it, reading a device may never end, and opening some devices does things.
Every read of a file in Tengen goes through here, so that such a file is an error at once, whatever its name promises.
"""

import contextlib
import errno
import io
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable
from io import FileIO
from pathlib import Path
from typing import TextIO

from tengen.errors import TengenError

# Windows has none of these; O_BINARY is its own.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_APPEND = os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_PART = ".part"  # what the names of unfinished files and folders end in; they begin with a dot


class NotAFile(TengenError, OSError):
    """Something that is no regular file; `strerror` says what it is instead."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def open_regular(path: Path | str) -> FileIO:
    """Open a regular file for reading bytes, unbuffered, without ever waiting.

    Raises OSError: IsADirectoryError for a folder, NotAFile, which is also a TengenError, for a FIFO, socket or device.
    """
    _check(path, os.stat(path))
    return _opened(path, _READ, "rb")


def read_ends(path: Path | str, first: int, last: int) -> tuple[int, bytes, bytes]:
    """The size of a regular file, its first bytes and its last ones, quickly. Raises as `open_regular`."""
    _check(path, os.stat(path))
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)
        _check(path, status)
        size, head = status.st_size, os.pread(descriptor, first, 0)
        tail = head[-last:] if len(head) == size else os.pread(descriptor, last, max(size - last, 0))
        return size, head, tail
    finally:
        os.close(descriptor)


def open_buffered(path: Path | str) -> io.BufferedReader:
    """As `open_regular`, for reading line by line or in small pieces."""
    return io.BufferedReader(open_regular(path))


def open_to_append(path: Path | str, *, readable: bool = False, mode: int = 0o666) -> FileIO:
    """Open a regular file for writing at its end, unbuffered; it is made if there is none. Raises as `open_regular`."""
    with contextlib.suppress(FileNotFoundError):
        _check(path, os.stat(path))
    flags = _APPEND | (os.O_RDWR if readable else os.O_WRONLY)
    return _opened(path, flags, "ab+" if readable else "ab", mode)


def open_log(path: Path | str) -> TextIO:
    """Open for writing at the end, as UTF-8 text. It may be a terminal or a FIFO too, but one that somebody reads."""
    opened = os.open(path, _APPEND | os.O_WRONLY, 0o666)  # ENXIO for a FIFO that nobody reads
    os.set_blocking(opened, True)
    return open(opened, "a", encoding="utf-8")


def read_bytes(path: Path | str, limit: int | None = None) -> bytes:
    """All that a regular file holds, or its first `limit` bytes. Raises as `open_regular`."""
    with open_regular(path) as file:
        if limit is None:
            return file.read()
        pieces: list[bytes] = []
        while limit > 0 and (piece := file.read(limit)):
            pieces.append(piece)
            limit -= len(piece)
        return b"".join(pieces)


def read_text(path: Path | str) -> str:
    """The UTF-8 text of a regular file. Raises as `open_regular`, and UnicodeDecodeError."""
    return read_bytes(path).decode("utf-8")


def read_end(path: Path | str, count: int, start: int = 0) -> bytes:
    """The last `count` bytes of a regular file, none of them before `start`. Raises as `open_regular`."""
    with open_regular(path) as file:
        file.seek(max(start, file.seek(0, os.SEEK_END) - count))
        return file.read()


def check_regular(path: Path | str) -> None:
    """For libraries that open files by themselves: raises as `open_regular` would."""
    open_regular(path).close()


def check_tree(folder: Path) -> None:
    """For libraries that read whole folders: NotAFile if anything below is neither a regular file nor a folder."""
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(place, name)
            status = os.stat(path)
            if not stat.S_ISDIR(status.st_mode):
                _check(path, status)


def cache_folder() -> Path:
    """Where Tengen keeps, for this user, what it could work out again. RuntimeError for a user without a home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tengen"


def remove_parts(folders: Iterable[Path], older_than: float = 3600.0) -> list[Path]:
    """Remove what killed writers left unfinished in these folders, and say what was removed.

    Unfinished files and folders are called `.*.part`. Those that changed within the last `older_than` seconds may still
    be somebody's work. What cannot be removed is left.
    """
    removed = []
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in list(entries):
                if not entry.name.startswith(".") or not entry.name.endswith(_PART):
                    continue
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime < older_than:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path)
                    else:
                        os.unlink(entry.path)
                    removed.append(Path(entry.path))
    return removed


def _opened(path: Path | str, flags: int, python_mode: str, mode: int = 0o666) -> FileIO:
    descriptor = os.open(path, flags, mode)
    try:
        _check(path, os.fstat(descriptor))  # another file may have come under this name since
        return open(descriptor, python_mode, buffering=0)  # type: ignore[return-value]
    except BaseException:
        os.close(descriptor)
        raise


def _check(path: Path | str, status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG:
        return
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise NotAFile(errno.EINVAL, f"is {_KINDS.get(kind, 'something')}, not a regular file", str(path))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever sees part of it, whatever happens in between.

    Until all of it is on the disk it has a hidden name of its own in the same folder. Raises OSError, and
    then leaves nothing behind.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, on the file systems that can promise it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
