"""The chunks of a run: RUN/selfplay/<network>/<number>-<worker>.npz.

In KataGo's format they are RUN/selfplay/<network>/tdata/<number>-<random>.npz, next to files with other names, which
KataGo wrote. Games in Lc0's format are <network>/lc0/<number>-<worker>-<game>.gz: those written together have a number.

Numbers count through the whole run (docs/data.md). If two workers take the same one at the same moment, their names
still differ, and their order does not matter. Files that KataGo wrote have no numbers: as soon as there are any, all
chunks are in the order of their times of change, as KataGo orders them.
"""

import contextlib
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tengen import files
from tengen.data.format import chunk, katago
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, Rows, blank
from tengen.errors import OptionError

KATAGO = "katago"  # the worker of its files
LC0 = "lc0"  # the folder of its games
GAMES = "games"  # the worker of rows of games that others played
_NAME = re.compile(r"(\d{10})-([A-Za-z0-9_]{1,40})(?:\.npz|-\d{5,9}\.gz)")
_TAKEN = re.compile(r"\.?(\d{10})-[A-Za-z0-9_]{1,40}(?:\.npz|-\d{5,9}\.gz)")  # also hidden, half-written or set aside
_NUMBERS = 10**10  # that the names of chunks have room for
_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


@dataclass(frozen=True, order=True)
class Chunk:
    """One chunk, in the order of creation."""

    number: int
    worker: str
    path: Path

    @property
    def network(self) -> str:
        """The network that played the games."""
        return katago.network_of(self.path)

    @property
    def foreign(self) -> bool:
        """Whether KataGo wrote it, or it is written for KataGo."""
        return self.path.parent.name == katago.FOLDER


class Listing(NamedTuple):
    chunks: tuple[tuple[Chunk, int], ...]  # with their rows, oldest first
    corrupt: tuple[Path, ...]  # new names of chunks that were set aside on the way

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.chunks)


@dataclass(frozen=True)
class Loaded:
    rows: Rows  # np, oldest first
    count: int
    chunks: tuple[Chunk, ...]  # where they are from, oldest first
    corrupt: tuple[Path, ...]  # new names of chunks that were set aside on the way


class Store:
    """The chunks below one folder. Not for several threads at once; several processes are fine."""

    def __init__(self, folder: Path, worker: str = "a", *, alone: bool = False) -> None:
        """`worker` must differ between processes that write here at the same time.

        If this one is `alone` in writing, it lists the folders once instead of before each chunk, which takes longer
        than writing the chunk when there are tens of thousands.
        """
        if not re.fullmatch(r"[A-Za-z0-9_]{1,40}", worker):
            raise OptionError(f"worker: expected letters, digits and _, at most 40 of them, got {worker!r}")
        self.folder = folder
        self.worker = worker
        self._alone = alone
        self.unused: dict[Path, str] = {}  # files of KataGo that cannot be used, and why
        self.partly_used: dict[Path, str] = {}  # those of which some rows cannot, and why
        self._last = -1  # the last number that was taken here
        self._rows: dict[Path, int] = {}

    def reserve(self, network: str, kind: str = "tengen") -> Path:
        """The path for the next chunk with games of `network`, by `data.format`.

        For Lc0, the names of the games are the path without its ending, a hyphen, and a number of five digits.
        """
        if not is_network(network):
            raise OptionError(f"network: expected a name that a folder can have, got {network!r}")
        self._last = self.last() + 1
        if kind == "katago":  # people put the files of several runs together
            return self.folder / network / katago.FOLDER / f"{self._last:010d}-{secrets.token_hex(4)}.npz"
        name = f"{self._last:010d}-{self.worker}"
        return self.folder / network / (f"{LC0}/{name}.gz" if kind == LC0 else f"{name}.npz")

    def last(self) -> int:
        """The number of the last chunk, which may not be complete yet; -1 if there is none."""
        listed = () if self._alone and self._last >= 0 else self.files()
        taken = [int(match[1]) for path in listed if (match := _TAKEN.match(path.name))]
        return last_number([*taken, *([self._last] if self._last >= 0 else [])], _NUMBERS)

    def chunks(self, paths: Iterable[Path] | None = None) -> list[Chunk]:
        """All chunks, oldest first, or those among `paths`; none if the folder is not there."""
        chunks = [item for path in (self.files() if paths is None else paths) if (item := _chunk(path))]
        chunks.sort(key=lambda chunk: (chunk.number, chunk.worker, chunk.path))
        return _by_time(chunks) if chunks and chunks[0].number < 0 else chunks

    @property
    def is_imported(self) -> bool:
        """Whether there are rows, and all are of games that others played."""
        chunks = self.chunks()
        return bool(chunks) and all(one.worker == GAMES or one.foreign for one in chunks)

    def listing(self) -> Listing:
        """All chunks with their row counts; no chunk is read in full. Corrupt ones are set aside.

        Raises UnreadableChunk if one may not be read.
        """
        corrupt: list[Path] = []
        return Listing(tuple(self._counted(self.chunks(), corrupt)), tuple(corrupt))

    def read_newest(self, count: int, form: RowFormat, game: GameIdentity, max_chunk_rows: int | None = None) -> Loaded:
        """The newest `count` rows, or all if there are fewer. Memory: these rows, and one chunk.

        Corrupt chunks are renamed to `*.corrupt`, named in the result, and made up for by older rows, as are files of
        KataGo that cannot be used; they stay and are named in `unused`, or in `partly_used`. Raises
        ForeignChunk if there are rows of another game or format, or a chunk with more than `max_chunk_rows`, and
        UnreadableChunk if a chunk may not be read.
        """
        corrupt: list[Path] = []
        known = 0
        for _, rows in self._counted(reversed(self.chunks()), corrupt):
            known += rows
            if known >= count:
                break
        size = max(min(count, known), 0)
        block, start, used = blank(form, size), size, []  # the block is filled from its end
        for item, _ in self._counted(reversed(self.chunks()), corrupt):
            if start == 0:
                break
            with self._setting_aside(item, corrupt):
                rows, meta = chunk.read_chunk(item.path, form, game, max_chunk_rows)
                if meta.left_out:
                    self.partly_used[item.path] = meta.left_out_words(item.path)
                taken = min(start, meta.rows)
                for name, values in rows.items():
                    block[name][start - taken : start] = values[meta.rows - taken :]
                start -= taken
                used.append(item)
        rows = {name: values[start:] for name, values in block.items()}
        return Loaded(rows, size - start, tuple(reversed(used)), tuple(corrupt))

    def set_aside(self, path: Path, reason: str) -> Path:
        """As `files.set_aside`; a chunk that was removed or renamed meanwhile is no error."""
        self._rows.pop(path, None)
        try:
            return files.set_aside(path, reason)
        except FileNotFoundError:
            return path.with_name(path.name + files.CORRUPT)

    def clean(self, older_than: float = 3600.0) -> list[Path]:
        """Remove files that killed writers left unfinished more than that many seconds ago; returns them."""
        return files.remove_parts(files.inside(self.folder), older_than)

    def _counted(self, items: Iterable[Chunk], corrupt: list[Path]) -> Iterator[tuple[Chunk, int]]:
        """Each chunk with its rows; those that turn out corrupt are set aside, listed, and left out."""
        for item in items:
            if item.path not in self._rows:  # chunks never change
                with self._setting_aside(item, corrupt):
                    self._rows[item.path] = chunk.read_meta(item.path).rows
            if item.path in self._rows:
                yield item, self._rows[item.path]

    @contextlib.contextmanager
    def _setting_aside(self, item: Chunk, corrupt: list[Path]) -> Iterator[None]:
        """Around reading a chunk: rename it if it is corrupt, and skip it if it was removed."""
        try:
            yield
        except chunk.CorruptChunk as error:
            corrupt.append(self.set_aside(item.path, str(error)))
        except chunk.ForeignChunk as error:
            if not item.foreign:
                raise
            self.unused[item.path] = str(error)
        except chunk.UnreadableChunk:
            if item.path.exists():
                raise
            self._rows.pop(item.path, None)

    def files(self) -> Iterator[Path]:
        """All files in the folders of the networks, apart from folders that are still being filled."""
        for folder in files.inside(self.folder):
            if is_network(folder.name) and folder.is_dir():
                for path in files.inside(folder):
                    yield from files.inside(path) if path.name in (katago.FOLDER, LC0) else (path,)


def _chunk(path: Path) -> Chunk | None:
    """The chunk at a path; None if its name is not that of a chunk."""
    if match := _NAME.fullmatch(path.name):
        return Chunk(int(match[1]), match[2], path)
    # As KataGo's shuffle does, which takes an underscore for the mark of a temporary file.
    named = path.suffix == ".npz" and "_" not in path.name and not path.name.startswith(".")
    of_katago = named and path.parent.name == katago.FOLDER
    return Chunk(-1, KATAGO, path) if of_katago else None


def _by_time(chunks: list[Chunk]) -> list[Chunk]:
    """The chunks by their times of change; those that are gone are left out."""
    found = []
    for item in chunks:
        with contextlib.suppress(OSError):
            found.append((item.path.stat().st_mtime_ns, item.path.name, item))
    return [item for *_, item in sorted(found, key=lambda entry: entry[:2])]


def is_network(name: str) -> bool:
    """Whether chunks can lie in a folder of that name."""
    return _NETWORK.fullmatch(name) is not None


def last_number(taken: Iterable[int], numbers: int) -> int:
    """The last of the numbers that were given out one after the other, -1 if none were; there is room for `numbers`.

    A stray number far above the others does not count, or one file with the last possible number would be the end.
    """
    found = sorted(set(taken))
    if not found:
        return -1
    last = found[0]
    for number in found[1:]:
        if number - last > numbers // 100:
            break
        last = number
    return last if last + 1 < numbers else -1
