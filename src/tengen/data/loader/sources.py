"""Where files come from: a list that ends, or a folder that somebody else fills for ever.

A file is known by device, inode, size and time of the last change, so it is the same file under another name. Inodes
alone are not enough: they are used again, and chunks of equally many rows are equally long.
"""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol


class FoundFile(NamedTuple):
    """A file that may be a chunk."""

    path: Path
    key: str  # other files have other keys
    old: bool = False  # it was passed over for newer ones, and comes after them all the same


class FileSource(Protocol):
    """Files in an order. `look` is called by one thread, the rest by any."""

    endless: bool  # whether there may be more at a later look

    def look(self) -> list[FoundFile]:
        """The files that no earlier look has given, oldest first."""
        ...

    def present(self, keys: set[str]) -> set[str]:
        """Those of `keys` whose files were there at the last look; all of them if that cannot be told."""
        ...

    def words(self) -> str:
        """What was found so far and where, for people."""
        ...


class FileList:
    """These files, once each, in this order: those of a finished shuffle, say."""

    endless = False

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._keys: frozenset[str] = frozenset()

    def look(self) -> list[FoundFile]:
        """All of them at the first look. A file that is listed twice is given once; one that is missing is given."""
        if self._keys:
            return []
        found: dict[str, FoundFile] = {}
        for path in self._paths:
            try:
                key = _key(path.stat())
            except OSError:
                key = f"unknown {path}"  # whoever reads it will say why
            found.setdefault(key, FoundFile(path, key))
        self._keys = frozenset(found)
        return list(found.values())

    def present(self, keys: set[str]) -> set[str]:
        return keys & self._keys if self._keys else keys

    def words(self) -> str:
        return f"a list of {len(self._paths):,} files"


@dataclass(frozen=True)
class _Listing:
    """What lay in one folder."""

    changed: int  # the folder's time of change, in ns
    settled: bool  # nothing had changed since the listing before
    files: dict[str, tuple[int, str]] = field(default_factory=dict)  # name -> inode, key
    folders: tuple[str, ...] = ()


class Folder:
    """All `*.npz` below a folder, now and later. Names that begin with a dot are not complete, and not looked at.

    Files must appear by renaming. A folder that is not there yet, or cannot be read, is looked at again next time.
    """

    endless = True

    def __init__(self, root: Path, suffix: str = ".npz") -> None:
        self._root, self._suffix = root, suffix
        self._listings: dict[str, _Listing] = {}
        self._known: frozenset[str] = frozenset()  # keys of the files there
        self._before: frozenset[str] = frozenset()  # and before the last change: one may be on its way between folders
        self._problem = ""
        self._last = time.monotonic()  # when something new was found

    def look(self) -> list[FoundFile]:
        """New files by their time of change, then by name."""
        self._problem = ""
        new: dict[str, tuple[int, FoundFile]] = {}
        listings: dict[str, _Listing] = {}
        todo = [str(self._root)]
        while todo:
            folder = todo.pop()
            try:
                listing = self._list(folder, new)
            except OSError as error:
                self._problem = f"{folder}: {error.strerror or error}"
                if not isinstance(error, FileNotFoundError | NotADirectoryError) and folder in self._listings:
                    listing = self._listings[folder]  # not to be read at the moment, which does not mean empty
                else:
                    continue
            listings[folder] = listing
            todo += listing.folders
        if list(map(id, listings.values())) != list(map(id, self._listings.values())):
            self._before = self._known
            self._known = frozenset(key for listing in listings.values() for _, key in listing.files.values())
            self._listings = listings
        if new:
            self._last = time.monotonic()
        return [found for _, found in sorted(new.values())]

    def present(self, keys: set[str]) -> set[str]:
        # Without its root nothing is there, but a disk that is not mounted now may be later.
        return keys & self._known if str(self._root) in self._listings else keys

    def words(self) -> str:
        words = f"{len(self._known):,} files below {self._root}, nothing new for {time.monotonic() - self._last:,.0f} s"
        return words + (f" ({self._problem})" if self._problem else "")

    def _list(self, folder: str, new: dict[str, tuple[int, FoundFile]]) -> _Listing:
        """What lies in a folder; files that were not known are added to `new`."""
        changed = os.stat(folder).st_mtime_ns
        before = self._listings.get(folder)
        same = before is not None and before.changed == changed
        # Clocks are coarse: something may have come just after the listing and within the same tick.
        if before is not None and same and before.settled:
            return before
        files: dict[str, tuple[int, str]] = {}
        folders: list[str] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(self._suffix):
                    known = before.files.get(entry.name) if before else None
                    if known is None or known[0] != entry.inode():
                        known = self._stat(entry, new)
                    if known is not None:
                        files[entry.name] = known
        return _Listing(changed, same, files, tuple(folders))

    def _stat(self, entry: "os.DirEntry[str]", new: dict[str, tuple[int, FoundFile]]) -> tuple[int, str] | None:
        try:
            status = os.stat(entry.path)
        except OSError:
            return None  # it has gone again
        key = _key(status)
        if key not in self._known and key not in self._before:
            new.setdefault(key, (status.st_mtime_ns, FoundFile(Path(entry.path), key)))
        return entry.inode(), key


def _key(status: os.stat_result) -> str:
    return f"{status.st_dev:x}-{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
