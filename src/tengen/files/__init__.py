"""Reading, writing, listing and removing files, with errors in words.

Every function raises `FileError`, which names the file, the reason and what to do. It is a TengenError, so the command
line prints it as it is, and also the OSError that caused it (a missing file is still a FileNotFoundError).

Only regular files are opened, and never by waiting: opening a FIFO waits for its writer, and reading a device may never
end. Files and folders that are written appear under their names by renaming, complete or not at all.
"""

import contextlib
import errno
import io
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import TextIO

from tengen.errors import TengenError

# Windows has none of these but O_BINARY, which only Windows has.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_APPEND = os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
CORRUPT = ".corrupt"
"""The ending of files and folders that were set aside."""
_PART = ".part"  # the ending of unfinished files and folders, whose names begin with a dot


class FileError(TengenError, OSError):
    """A file that cannot be read or written: which, why, and what to do."""

    def __init__(self, message: str, error: OSError) -> None:
        OSError.__init__(self, error.errno, error.strerror, error.filename)
        self._message = message

    def __str__(self) -> str:
        return self._message


class NotAFile(FileError):
    """A FIFO, socket or device in the place of a regular file; `strerror` says which."""


_ALSO: dict[type[OSError], type[FileError]] = {
    kind: type(f"File{kind.__name__}", (FileError, kind), {})
    for kind in (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
}


@contextlib.contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Around code that reads `path`: an OSError becomes a FileError."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise _explained(f"{path}: cannot be read: {error.strerror or error}", error) from error


@contextlib.contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Around code that writes `path`: an OSError becomes a FileError."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path | str, error: OSError) -> FileError:
    """An error that says why `path` could not be written, and what to do."""
    if isinstance(error, FileError):
        return error
    advice = "change its permissions" if isinstance(error, PermissionError) else "make room or choose another place"
    return _explained(f"{path}: cannot be written: {error.strerror or error}; {advice}, then start again", error)


def _explained(message: str, error: OSError) -> FileError:
    return next((cls for kind, cls in _ALSO.items() if isinstance(error, kind)), FileError)(message, error)


def open_regular(path: Path | str) -> FileIO:
    """Open a regular file for reading bytes, unbuffered, without waiting. NotAFile for a FIFO, socket or device."""
    with reading(path):
        _check(path, os.stat(path))
        return _opened(path, _READ, "rb")


def open_buffered(path: Path | str) -> io.BufferedReader:
    """As `open_regular`, for reading line by line or in small pieces."""
    return io.BufferedReader(open_regular(path))


def open_to_append(path: Path | str, *, readable: bool = False, mode: int = 0o666) -> FileIO:
    """Open a regular file for writing at its end, unbuffered; it is made if there is none."""
    with writing(path):
        with contextlib.suppress(FileNotFoundError):
            _check(path, os.stat(path))
        flags = _APPEND | (os.O_RDWR if readable else os.O_WRONLY)
        return _opened(path, flags, "ab+" if readable else "ab", mode)


def open_log(path: Path | str) -> TextIO:
    """Open for writing UTF-8 text at the end. Terminals and FIFOs that somebody reads are allowed too."""
    with writing(path):
        opened = os.open(path, _APPEND | os.O_WRONLY, 0o666)  # ENXIO for a FIFO that nobody reads
        os.set_blocking(opened, True)
        return open(opened, "a", encoding="utf-8")


def read_bytes(path: Path | str, limit: int | None = None) -> bytes:
    """The content of a regular file, or its first `limit` bytes."""
    with reading(path), open_buffered(path) as file:
        return file.read(limit)


def read_text(path: Path | str) -> str:
    """The UTF-8 text of a regular file. Raises UnicodeDecodeError for other text."""
    return read_bytes(path).decode("utf-8")


def read_end(path: Path | str, count: int, start: int = 0) -> bytes:
    """The last `count` bytes of a regular file, none of them before `start`."""
    with reading(path), open_regular(path) as file:
        file.seek(max(start, file.seek(0, os.SEEK_END) - count))
        return file.read()


def read_ends(path: Path | str, first: int, last: int) -> tuple[int, bytes, bytes]:
    """The size of a regular file, its first bytes and its last ones, quickly."""
    with reading(path):
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


def check_regular(path: Path | str) -> None:
    """For libraries that open files by themselves: raises as `open_regular` would."""
    open_regular(path).close()


def check_tree(folder: Path) -> None:
    """For libraries that read whole folders: NotAFile if anything below is neither a regular file nor a folder."""
    with reading(folder):
        for place, folders, names in os.walk(folder):
            for name in (*folders, *names):
                path = os.path.join(place, name)
                status = os.stat(path)
                if not stat.S_ISDIR(status.st_mode):
                    _check(path, status)


def inside(folder: Path) -> list[Path]:
    """The files and folders in a folder; none if it does not exist."""
    with reading(folder):
        try:
            return list(folder.iterdir())
        except FileNotFoundError:
            return []


def cache_folder() -> Path:
    """Where Tengen keeps what it could compute again, for this user. RuntimeError for a user without a home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tengen"


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, unless they exist."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file that is complete or absent; until all of it is on the disk it has a hidden name."""
    temporary = _hidden(path)
    with writing(path):
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


def write_folder(target: Path, fill: Callable[[Path], object]) -> None:
    """Make the folder `target`, complete or not at all: `fill` gets a hidden one. Does nothing if it exists already."""
    hidden = _hidden(target)
    with writing(target):
        try:
            hidden.mkdir(parents=True)
            fill(hidden)
            sync_folder(hidden)
            if not target.exists():
                try:
                    hidden.rename(target)
                except OSError:
                    if not target.exists():  # otherwise another process has just made it
                        raise
                sync_folder(target.parent)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)


def move_folder(source: Path, target: Path) -> None:
    """Give a folder another name, also on another disk, where it appears complete; `source` is removed after that."""
    with writing(target):
        try:
            source.rename(target)
            sync_folder(target.parent)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise

            def fill(place: Path) -> None:
                shutil.copytree(source, place, dirs_exist_ok=True)
                sync_tree(place)

            write_folder(target, fill)
            shutil.rmtree(source)


def set_aside(path: Path, reason: str) -> Path:
    """Rename what cannot be used to *.corrupt, with the reason in a text file next to it; returns its new name."""
    target = path.with_name(path.name + CORRUPT)
    with writing(path):
        path.rename(target)
    with contextlib.suppress(OSError):  # the name alone says it too
        write_bytes(target.with_name(f"{target.name}.txt"), f"{reason}\n".encode())
    return target


def check_links(folder: Path) -> None:
    """FileError if a symbolic link in a folder leads nowhere, as when its disk is not mounted."""
    for path in inside(folder):
        if path.is_symlink() and not path.exists():
            where = f"{path}: is a link to {os.readlink(path)}, which does not exist"
            raise _explained(f"{where}; make that folder, or mount its disk", FileNotFoundError(errno.ENOENT, where))


def sync_tree(folder: Path) -> None:
    """Make everything in a folder survive a power cut, where that is possible."""
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError), (Path(place) / name).open("rb") as file:
                os.fsync(file.fileno())
        sync_folder(Path(place))


def sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a power cut, on file systems that can promise it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> bool:
    """Remove a file or a whole folder as far as possible; returns whether it is gone."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return not os.path.lexists(path)


def remove_parts(folders: Iterable[Path], older_than: float = 3600.0) -> list[Path]:
    """Remove what killed writers left unfinished (`.*.part`) in these folders; returns what was removed.

    Those that changed within the last `older_than` seconds may still be in use. What cannot be removed is left.
    """
    removed = []
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in list(entries):
                if not entry.name.startswith(".") or not entry.name.endswith(_PART):
                    continue
                with contextlib.suppress(OSError):
                    old = time.time() - entry.stat(follow_symlinks=False).st_mtime >= older_than
                    if old and remove(Path(entry.path)):
                        removed.append(Path(entry.path))
    return removed


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{_PART}")


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
    reason = f"is {_KINDS.get(kind, 'something')}, not a regular file"
    raise NotAFile(f"{path}: {reason}", OSError(errno.EINVAL, reason, str(path)))
