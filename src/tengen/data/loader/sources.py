"""Where files come from: a list that ends, or a folder that is filled for ever; and what each split has had of them.

A file is identified by device, inode, size and time of change, so it is the same file under another name. Inodes alone
are not enough: they are used again, and chunks with the same number of rows have the same size.
"""

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import md5
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, get_args

from tengen import schema
from tengen.config.settings.data import LoaderSettings
from tengen.data.format import chunk, tars
from tengen.errors import TengenError
from tengen.schema import setting

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
RejectionKind = Literal["corrupt", "foreign", "unreadable"]
_NAMED = 100  # rejected files that are remembered by name


def split_of(name: str, validation: float, test: float = 0.0) -> Split:
    """The split of a file, which depends on its name alone, and so is the same in every run with these shares.

    A larger share for tests or validation only ever takes files from training. As in KataGo, validation has the names
    whose MD5, as a fraction, is highest.
    """
    digest = md5(name.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
    place = int(digest[:13], 16) / 16**13
    if place >= 1 - validation:
        return "validation"
    return "test" if place < test else "train"


def share_of(split: Split, settings: LoaderSettings) -> float:
    shares = {"validation": settings.validation, "test": settings.test}
    return shares.get(split, 1 - settings.validation - settings.test)


class FoundFile(NamedTuple):
    path: Path
    key: str  # different for different files
    old: bool = False  # it was skipped for newer ones, and comes after them all the same


class FileSource(Protocol):
    """Files in an order. `look` is called by one thread, the rest by any."""

    endless: bool  # whether there may be more at a later look

    def look(self) -> list[FoundFile]:
        """The files that no earlier look has given, oldest first."""
        ...

    def present(self, keys: set[str]) -> set[str]:
        """The `keys` whose files existed at the last look; all of them if that is unknown."""
        ...

    def words(self) -> str:
        """What was found so far and where, for messages."""
        ...


class FileList:
    """These files, once each, in this order, such as those of a finished shuffle."""

    endless = False

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._keys: frozenset[str] = frozenset()

    def look(self) -> list[FoundFile]:
        """All files at the first look, each once, missing ones too."""
        if self._keys:
            return []
        found: dict[str, FoundFile] = {}
        for path in self._paths:
            try:
                key = _key(path.stat())
            except OSError:
                key = f"unknown {path}"  # the reader will say why
            found.setdefault(key, FoundFile(path, key))
        self._keys = frozenset(found)
        return list(found.values())

    def present(self, keys: set[str]) -> set[str]:
        return keys & self._keys if self._keys else keys

    def words(self) -> str:
        return f"a list of {len(self._paths):,} files"


@dataclass(frozen=True)
class _FolderListing:
    changed: int  # the folder's time of change, in ns
    settled: bool  # nothing had changed since the listing before
    files: dict[str, tuple[int, str]] = field(default_factory=dict)  # name -> inode, key
    folders: tuple[str, ...] = ()


class Folder:
    """All `*.npz` below a folder, now and later, except names that begin with a dot, which are incomplete files.

    Files must appear by renaming. A folder that does not exist yet, or cannot be read, is tried again next time.
    """

    endless = True

    def __init__(self, root: Path, suffix: str | tuple[str, ...] = ".npz") -> None:
        self._root, self._suffix = root, suffix
        self._listings: dict[str, _FolderListing] = {}
        self._known: frozenset[str] = frozenset()  # keys of the files there
        self._before: frozenset[str] = frozenset()  # before the last change: a file may be moving between folders
        self._problem = ""
        self._last = time.monotonic()  # when something new was found

    def look(self) -> list[FoundFile]:
        """New files by their time of change, then by name."""
        self._problem = ""
        new: dict[str, tuple[int, FoundFile]] = {}
        listings: dict[str, _FolderListing] = {}
        todo = [str(self._root)]
        while todo:
            folder = todo.pop()
            try:
                listing = self._list(folder, new)
            except OSError as error:
                self._problem = f"{folder}: {error.strerror or error}"
                if not isinstance(error, FileNotFoundError | NotADirectoryError) and folder in self._listings:
                    listing = self._listings[folder]  # unreadable at the moment does not mean empty
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
        # Without its root nothing is there, but a disk that is not mounted now may be mounted later.
        return keys & self._known if str(self._root) in self._listings else keys

    def words(self) -> str:
        words = f"{len(self._known):,} files below {self._root}, nothing new for {time.monotonic() - self._last:,.0f} s"
        return words + (f" ({self._problem})" if self._problem else "")

    def _list(self, folder: str, new: dict[str, tuple[int, FoundFile]]) -> _FolderListing:
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
        return _FolderListing(changed, same, files, tuple(folders))

    def _stat(self, entry: "os.DirEntry[str]", new: dict[str, tuple[int, FoundFile]]) -> tuple[int, str] | None:
        try:
            status = os.stat(entry.path)
        except OSError:
            return None  # it has gone again
        key = _key(status)
        if key not in self._known and key not in self._before:
            new.setdefault(key, (status.st_mtime_ns, FoundFile(Path(entry.path), key)))
        return entry.inode(), key


class ChunksAndTars:
    """The chunks of Lc0 from another source: its `*.gz`, and those inside its tars, which appear one by one."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self.endless = source.endless

    def look(self) -> list[FoundFile]:
        return [item for found in self._source.look() for item in self._inside(found)]

    def present(self, keys: set[str]) -> set[str]:
        there = self._source.present({key.partition("/")[0] for key in keys})
        return {key for key in keys if key.partition("/")[0] in there}

    def words(self) -> str:
        return self._source.words()

    def _inside(self, found: FoundFile) -> list[FoundFile]:
        if found.path.suffix != tars.SUFFIX:
            return [found]
        try:
            names = tars.TarFile.of(found.path).members
        except (OSError, TengenError):
            return [found]  # the reader will say why
        return [FoundFile(found.path / name, f"{found.key}/{name}") for name in names if name.endswith(".gz")]


def _key(status: os.stat_result) -> str:
    return f"{status.st_dev:x}-{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"


class RejectedFile(NamedTuple):
    """A file that was not used, and stays where it is."""

    path: Path
    kind: RejectionKind
    reason: str


@dataclass(frozen=True)
class SplitCounts:
    """Counts of one split. A file is counted once, however often it is read, found or renamed."""

    chunks: int = setting(0, "good chunks", low=0)
    rows: int = setting(0, "rows in those", low=0)
    batches: int = setting(0, "batches that were returned", low=0)


@dataclass(frozen=True)
class _LedgerState:
    counts: Mapping[str, SplitCounts]
    counted: tuple[str, ...]  # keys of files

    def check_together(self) -> Iterable[tuple[str, str]]:
        if set(self.counts) != set(SPLITS):
            yield "counts", f"expected the keys {', '.join(SPLITS)}"


class LoaderLedger:
    """Counts chunks and rows of each split, over restarts, and rejected files. For several threads."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._counts: dict[Split, SplitCounts] = dict.fromkeys(SPLITS, SplitCounts())
        self._counted: set[str] = set()  # keys of files
        self._kinds: Counter[RejectionKind] = Counter()
        self._rejected: deque[RejectedFile] = deque(maxlen=_NAMED)

    def accept(self, split: Split, found: FoundFile, rows: int) -> None:
        with self._lock:
            if found.key not in self._counted:
                self._counted.add(found.key)
                counts = self._counts[split]
                self._counts[split] = replace(counts, chunks=counts.chunks + 1, rows=counts.rows + rows)

    def reject(self, found: FoundFile, error: chunk.ChunkError) -> None:
        kinds: dict[type, RejectionKind] = {chunk.CorruptChunk: "corrupt", chunk.ForeignChunk: "foreign"}
        rejected = RejectedFile(found.path, kinds.get(type(error), "unreadable"), str(error))
        with self._lock:
            self._kinds[rejected.kind] += 1
            self._rejected.append(rejected)

    def hand_out(self, split: Split) -> None:
        with self._lock:
            self._counts[split] = replace(self._counts[split], batches=self._counts[split].batches + 1)

    def counts(self) -> dict[Split, SplitCounts]:
        with self._lock:
            return dict(self._counts)

    def rejected(self) -> tuple[dict[RejectionKind, int], tuple[RejectedFile, ...]]:
        """The number of rejected files, by kind, and the last hundred of them, oldest first."""
        with self._lock:
            return {kind: self._kinds[kind] for kind in get_args(RejectionKind)}, tuple(self._rejected)

    def state(self) -> dict[str, Any]:
        """The counts and the files they include, in JSON values. Files that are gone are forgotten."""
        with self._lock:
            self._counted = self._source.present(self._counted)
            counts = {split: asdict(counts) for split, counts in self._counts.items()}
            return {"counts": counts, "counted": sorted(self._counted)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the result of `state()`. OptionError if it is something else."""
        found = schema.from_data(_LedgerState, state, "loader state", strict=True)
        with self._lock:
            self._counts = {split: found.counts[split] for split in SPLITS}
            self._counted = set(found.counted)
