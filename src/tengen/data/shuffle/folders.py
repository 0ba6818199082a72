"""Shuffles on the disk: RUN/shuffled/<number>-<letters>/{train,validation}/NNNNN.npz and index.json.

A folder appears under its name when all of it is there. Numbers count up, so names in order are shuffles in the order
in which they were begun. Whoever reads one holds a lease in its folder `readers`.
"""

import contextlib
import json
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tengen import files
from tengen.config.settings.shuffle import ShuffleSettings
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.store.store import last_number
from tengen.errors import OptionError, TengenError
from tengen.files import lease

SCHEMA = 1
INDEX = "index.json"
FOLDER = "shuffled"
READERS = "readers"
_OWNERS = ".owners"  # where those who make the unfinished ones hold leases
_REMOVING = "removing"  # a file that says: do not begin to read
_NAME = re.compile(r"\d{8}-[0-9a-f]{8}")
_PART = re.compile(r"\.(\d{8}-[0-9a-f]{8}(-scratch)?)\.part")


class ShuffleGone(TengenError):
    """A shuffle that is being removed, or was; take the newest."""


class ShuffledFile(NamedTuple):
    """One file of a shuffle."""

    path: Path
    rows: int
    bytes: int
    sha256: str  # of the whole file: the same rows in the same order have the same, wherever they lie


@dataclass(frozen=True)
class Shuffle:
    """A complete shuffle."""

    folder: Path
    train: tuple[ShuffledFile, ...]
    validation: tuple[ShuffledFile, ...]
    window: tuple[int, int]  # first row, and the one after the last, counted from the beginning of the run
    total_rows: int  # of the run
    form: RowFormat
    game: GameIdentity
    index: Mapping[str, Any]  # all that index.json says

    @property
    def name(self) -> str:
        """Of its folder; later shuffles of a run have later names."""
        return self.folder.name

    @staticmethod
    def load(folder: Path) -> "Shuffle":
        """Read index.json. ShuffleGone if there is none, TengenError if it is not one of ours."""
        path = folder / INDEX
        try:
            index = json.loads(files.read_bytes(path))
            if index["schema"] != SCHEMA:
                raise OptionError(f"schema: expected {SCHEMA}, got {index['schema']!r}")
            train, validation = (
                tuple(
                    ShuffledFile(folder / f["path"], _count(f["rows"]), _count(f["bytes"]), str(f["sha256"]))
                    for f in index[side]
                )
                for side in ("train", "validation")
            )
            first, last = map(_count, index["window"])
            total = _count(index["total_rows"])
            form, game = RowFormat.from_dict(index["format"]), GameIdentity.from_dict(index)
            return Shuffle(folder, train, validation, (first, last), total, form, game, index)
        except FileNotFoundError as error:
            raise ShuffleGone(f"{folder}: no complete shuffle is there") from error
        except OSError as error:
            raise TengenError(f"{path}: cannot be read: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise TengenError(f"{path}: not the index of a shuffle: {error!r}") from error

    @contextlib.contextmanager
    def open(self, beat: float = lease.BEAT) -> Iterator["Shuffle"]:
        """Read the files inside this; meanwhile nobody removes them. ShuffleGone if that has begun already."""
        gone = ShuffleGone(f"{self.folder}: is being removed")
        if not (self.folder / INDEX).exists():
            raise gone
        # First the lease, then the look: who removes does both the other way round, so one of the two sees the other.
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(lease.held(self.folder / READERS, secrets.token_hex(4), beat))
            except FileNotFoundError:
                raise gone from None
            except OSError as error:
                raise TengenError(f"{self.folder}: cannot be written to: {error.strerror or error}") from error
            if (self.folder / _REMOVING).exists() or not (self.folder / INDEX).exists():
                raise gone
            yield self


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise OptionError(f"expected a whole number of at least 0, got {value!r}")
    return value


def newest(
    base: Path, game: GameIdentity | None = None, complain: Callable[[str], object] = lambda _: None
) -> Shuffle | None:
    """The newest complete shuffle of the run directory `base` that can be read and is of `game`, if there is one.

    `complain` is told of newer ones that cannot be used.
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
    """A name that sorts after all that were made, unfinished ones too. Two processes never get the same."""
    names = [path.name.removeprefix(".") for path in files.inside(base / FOLDER)]
    taken = [int(name[:8]) for name in names if _NAME.match(name)]
    return f"{last_number(taken, 10**8) + 1:08d}-{secrets.token_hex(4)}"


@contextlib.contextmanager
def unfinished(place: Path, name: str) -> Iterator[Path]:
    """A folder in `place` for the files of a shuffle until it is complete. Afterwards it is gone, with what is in it.

    Should this process be killed, `clean` knows: there is never such a folder without a lease.
    """
    place.mkdir(parents=True, exist_ok=True)
    folder = place / f".{name}.part"
    with lease.held(place / _OWNERS, name):
        try:
            folder.mkdir()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def clean(base: Path, settings: ShuffleSettings, watch: lease.LeaseWatch | None = None) -> list[Path]:
    """Remove old shuffles that nobody reads, and what dead processes left unfinished; say what was removed.

    Keep `watch` from call to call: without it, readers on other machines are never taken for dead.
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
    removed = [path for path, name in found if not watch.living(place / _OWNERS, name) and _remove(path)]
    watch.sweep(place / _OWNERS)
    return removed


def _remove_unread(folder: Path, watch: lease.LeaseWatch) -> bool:
    """Remove a shuffle, unless somebody has begun to read it."""
    mark = folder / _REMOVING
    with contextlib.suppress(OSError):
        mark.touch()
        if watch.living(folder / READERS):
            mark.unlink()
            return False
        (folder / INDEX).unlink(missing_ok=True)  # what is removed in part is not complete
        return _remove(folder)
    return False


def _remove(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _complete(folder: Path) -> list[Path]:
    """All complete shuffles, oldest first."""
    found = (path for path in files.inside(folder) if _NAME.fullmatch(path.name))
    return sorted(path for path in found if (path / INDEX).exists() and not (path / _REMOVING).exists())
