"""Shuffles on the disk: RUN/shuffled/<number>-<letters>/{train,validation}/NNNNN.npz and index.json.

A folder appears under its name when it is complete. Numbers count up, so the order of names is the order in which
shuffles were begun. Readers hold a lease in its folder `readers`.
"""

import contextlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tengen import files, schema
from tengen.config.settings.parts import ShuffleSettings
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.store.store import last_number
from tengen.errors import OptionError, TengenError
from tengen.files import lease
from tengen.schema import REQUIRED, setting

SCHEMA = 1
INDEX = "index.json"
FOLDER = "shuffled"
READERS = "readers"
_OWNERS = ".owners"  # leases of the processes that make the unfinished ones
_REMOVING = "removing"  # a file that keeps readers from beginning
_NAME = re.compile(r"\d{8}-[0-9a-f]{8}")
_PART = re.compile(r"\.(\d{8}-[0-9a-f]{8}(-scratch)?)\.part")


class ShuffleGone(TengenError):
    """A shuffle that is being removed, or was; use the newest."""


class ShuffledFile(NamedTuple):
    path: Path
    rows: int
    bytes: int
    sha256: str  # of the whole file, so the same for the same rows in the same order


@dataclass(frozen=True)
class _FileEntry:
    path: str
    rows: int = setting(REQUIRED, low=0)
    bytes: int = setting(REQUIRED, low=0)
    sha256: str = ""


@dataclass(frozen=True)
class _Index:
    schema: Literal[1]
    train: tuple[_FileEntry, ...]
    validation: tuple[_FileEntry, ...]
    window: tuple[int, int] = setting(REQUIRED, low=0)
    total_rows: int = setting(REQUIRED, low=0)
    format: dict[str, Any] = setting(REQUIRED)


@dataclass(frozen=True)
class Shuffle:
    folder: Path
    train: tuple[ShuffledFile, ...]
    validation: tuple[ShuffledFile, ...]
    window: tuple[int, int]  # first row, and the one after the last, counted from the beginning of the run
    total_rows: int  # of the run
    form: RowFormat
    game: GameIdentity
    index: Mapping[str, Any]  # all of index.json

    @property
    def name(self) -> str:
        """The name of its folder; later shuffles of a run have later names."""
        return self.folder.name

    @property
    def number(self) -> int:
        return int(self.name.partition("-")[0])

    @staticmethod
    def load(folder: Path) -> "Shuffle":
        """Read index.json. ShuffleGone if there is none, TengenError if it is damaged."""
        path = folder / INDEX
        try:
            index = schema.read_json(dict[str, Any], path)
            found = schema.from_data(_Index, index)
            form, game = RowFormat.from_dict(found.format), GameIdentity.from_dict(index)
        except FileNotFoundError as error:
            raise ShuffleGone(f"{folder}: no complete shuffle is there") from error
        except OptionError as error:
            raise TengenError(f"{path}: not the index of a shuffle: {error}") from error
        train, validation = (
            tuple(ShuffledFile(folder / file.path, file.rows, file.bytes, file.sha256) for file in side)
            for side in (found.train, found.validation)
        )
        return Shuffle(folder, train, validation, found.window, found.total_rows, form, game, index)

    @contextlib.contextmanager
    def open(self, beat: float = lease.BEAT) -> Iterator["Shuffle"]:
        """Keeps the files from being removed while this is open. ShuffleGone if their removal has begun."""
        gone = ShuffleGone(f"{self.folder}: is being removed")
        if not (self.folder / INDEX).exists():
            raise gone
        # First the lease, then the check: a remover does both the other way round, so one of the two sees the other.
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(lease.held(self.folder / READERS, secrets.token_hex(4), beat))
            except FileNotFoundError:
                raise gone from None
            if (self.folder / _REMOVING).exists() or not (self.folder / INDEX).exists():
                raise gone
            yield self


def newest(
    base: Path, game: GameIdentity | None = None, complain: Callable[[str], object] = lambda _: None
) -> Shuffle | None:
    """The newest complete shuffle of the run directory `base` that can be read and is of `game`, if there is one.

    `complain` is called with a message about each newer one that cannot be used.
    """
    for folder in reversed(_complete(base / FOLDER)):
        try:
            found = Shuffle.load(folder)
        except ShuffleGone:
            continue
        except TengenError as error:
            complain(str(error))
            continue
        difference = "" if game is None else game.difference(found.game)
        if not difference:
            return found
        complain(f"{folder}: rows of another game: {difference}")
    return None


def new_name(base: Path) -> str:
    """A name that sorts after all others, unfinished ones too. Two processes never get the same."""
    names = [path.name.removeprefix(".") for path in files.inside(base / FOLDER)]
    taken = [int(name[:8]) for name in names if _NAME.match(name)]
    return f"{last_number(taken, 10**8) + 1:08d}-{secrets.token_hex(4)}"


@contextlib.contextmanager
def unfinished(place: Path, name: str) -> Iterator[Path]:
    """A folder in `place` for the files of a shuffle until it is complete; removed afterwards.

    It always has a lease, so `clean` notices if this process is killed.
    """
    files.make_folder(place)
    folder = place / f".{name}.part"
    with lease.held(place / _OWNERS, name):
        try:
            folder.mkdir()
            yield folder
        finally:
            files.remove(folder)


def clean(base: Path, settings: ShuffleSettings, watch: lease.LeaseWatch | None = None) -> list[Path]:
    """Remove old shuffles that nobody reads, and unfinished ones of dead processes; returns what was removed.

    Keep `watch` from call to call: without it, readers on other machines always count as alive.
    """
    watch = watch or lease.LeaseWatch(settings.lease_minutes)
    places = [base / FOLDER, *([Path(settings.scratch)] if settings.scratch else [])]
    removed = [path for place in places for path in _remove_abandoned(place, watch)]
    complete = _complete(base / FOLDER)
    old = complete[: -settings.keep_shuffles]
    begun = [p for p in files.inside(base / FOLDER) if _NAME.fullmatch(p.name) and p not in complete]
    for folder in [*begun, *old]:
        if not watch.living(folder / READERS) and _remove_unread(folder, watch):
            removed.append(folder)
    return removed


def _remove_abandoned(place: Path, watch: lease.LeaseWatch) -> list[Path]:
    """Remove the unfinished shuffles of dead processes, and then their leases."""
    found = [(path, match[1]) for path in files.inside(place) if (match := _PART.fullmatch(path.name))]
    removed = [path for path, name in found if not watch.living(place / _OWNERS, name) and files.remove(path)]
    watch.sweep(place / _OWNERS)
    return removed


def _remove_unread(folder: Path, watch: lease.LeaseWatch) -> bool:
    """Remove a shuffle, unless a reader has opened it meanwhile."""
    mark = folder / _REMOVING
    with contextlib.suppress(OSError):
        mark.touch()
        if watch.living(folder / READERS):
            mark.unlink()
            return False
        (folder / INDEX).unlink(missing_ok=True)  # what is removed in part is not complete
        return files.remove(folder)
    return False


def _complete(folder: Path) -> list[Path]:
    found = (path for path in files.inside(folder) if _NAME.fullmatch(path.name))
    return sorted(path for path in found if (path / INDEX).exists() and not (path / _REMOVING).exists())
