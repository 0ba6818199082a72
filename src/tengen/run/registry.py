"""The networks of a ring: RUN/candidates wait for the gate, RUN/models are accepted, RUN/rejected are not.

A network is a folder `<run>-<trainer>-s<samples>-d<rows>` that appears by renaming when all of it is there. Its verdict
lies in it, and is written before the folder moves: whoever finds a candidate with a verdict only has to move it.
"""

import contextlib
import json
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import files
from tengen.data.format.chunk import cannot_write
from tengen.data.store.store import inside
from tengen.errors import TengenError
from tengen.nets.specs import FILE_NAME

CANDIDATES, ACCEPTED, REJECTED, EXTRA = "candidates", "models", "rejected", "extra"
VERDICT = "verdict.json"
RANDOM = "random"
"""The name of play without a network, before there is one."""
_SCHEMA = 1
_NAME = re.compile(r"([A-Za-z0-9_-]{1,60})-([A-Za-z0-9]{1,40})-s(\d{1,15})-d(\d{1,15})")


@dataclass(frozen=True)
class Entry:
    """One network."""

    path: Path
    trainer: str
    samples: int
    rows: int
    number: int = -1  # in the order of acceptance, if it has a verdict
    accepted: bool | None = None  # what the verdict says

    @property
    def name(self) -> str:
        return self.path.name


def name_of(run: str, trainer: str, samples: int, rows: int) -> str:
    """What a network is called."""
    return f"{run}-{trainer}-s{samples}-d{rows}"


def parse(name: str) -> tuple[int, str] | None:
    """Samples and trainer of the network with that name; None if it is none's."""
    match = _NAME.fullmatch(name)
    return (int(match[3]), match[2]) if match else None


def candidates(base: Path) -> list[Entry]:
    """Those that wait for the gate, in the order of training; also what is left of damaged ones, without a file."""
    return sorted(_entries(base / CANDIDATES, whole=False), key=lambda entry: (entry.samples, entry.name))


def accepted(base: Path) -> list[Entry]:
    """In the order of acceptance."""
    return sorted(_entries(base / ACCEPTED), key=lambda entry: (entry.number, entry.samples, entry.name))


def rejected(base: Path) -> list[Entry]:
    """In the order of training."""
    return sorted(_entries(base / REJECTED), key=lambda entry: (entry.samples, entry.name))


def extra(base: Path) -> list[Entry]:
    """Those that were never meant to play, in the order of training."""
    return sorted(_entries(base / EXTRA), key=lambda entry: (entry.samples, entry.name))


def newest(base: Path) -> Entry | None:
    """The one that plays now."""
    return next(reversed(accepted(base)), None)


def known(base: Path, name: str) -> Path | None:
    """Where the network of that name is, wherever it has got to."""
    for folder in (CANDIDATES, ACCEPTED, REJECTED, EXTRA):
        if (base / folder / name / FILE_NAME).exists():
            return base / folder / name
    return None


def is_judged(base: Path, entry: Entry) -> bool:
    """Whether the gate has put a network of that name where it belongs: this one is a copy."""
    return any((base / folder / entry.name / FILE_NAME).exists() for folder in (ACCEPTED, REJECTED))


def publish(target: Path, write: Callable[[Path], object]) -> None:
    """Make the folder `target`: `write` fills one with a hidden name, which is then renamed. Nothing if it is there."""
    hidden = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        try:
            hidden.mkdir(parents=True)
            write(hidden)
            files.sync_folder(hidden)
            if not target.exists():
                with _unless_there(target):
                    hidden.rename(target)
                files.sync_folder(target.parent)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
    except OSError as error:
        raise TengenError(cannot_write(target, error)) from error


@contextlib.contextmanager
def _unless_there(target: Path) -> Iterator[None]:
    """Another process may have made the same folder in the same moment."""
    try:
        yield
    except OSError:
        if not target.exists():
            raise


def decide(entry: Entry, verdict: Mapping[str, Any]) -> None:
    """Write down what was decided about a candidate; `accepted` is among it."""
    try:
        text = json.dumps({"schema": _SCHEMA, **verdict}, indent=1, allow_nan=False)
        files.write_bytes(entry.path / VERDICT, text.encode())
    except OSError as error:
        raise TengenError(cannot_write(entry.path / VERDICT, error)) from error


def move(base: Path, entry: Entry) -> Path:
    """Put a candidate that has a verdict where that says. A copy that is there already is kept."""
    target = base / (ACCEPTED if verdict(entry.path)["accepted"] else REJECTED) / entry.name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if (target / FILE_NAME).exists():
            shutil.rmtree(entry.path)
        else:
            if target.exists():  # something else of that name
                target.rename(target.with_name(f"{target.name}.{secrets.token_hex(4)}.corrupt"))
            entry.path.rename(target)
            files.sync_folder(target.parent)
    except OSError as error:
        raise TengenError(cannot_write(target, error)) from error
    return target


def drop(entry: Entry) -> None:
    """Remove a candidate that `is_judged`. Killed half way, it still is."""
    try:
        shutil.rmtree(entry.path)
    except OSError as error:
        raise TengenError(cannot_write(entry.path, error)) from error


def next_number(base: Path) -> int:
    """For the next network that is accepted."""
    return 1 + max((entry.number for entry in accepted(base)), default=0)


def verdict(folder: Path) -> dict[str, Any]:
    """What was decided about a network; empty if nothing was, or if it cannot be read."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads(files.read_bytes(folder / VERDICT))
        if isinstance(found, dict) and found.get("schema") == _SCHEMA and isinstance(found.get("accepted"), bool):
            return found
    return {}


def _entries(folder: Path, whole: bool = True) -> list[Entry]:
    """The networks in a folder; what is no network, or not one of a run's, is passed over."""
    found = []
    for path in inside(folder):
        match = _NAME.fullmatch(path.name)
        if match and ((path / FILE_NAME).exists() if whole else path.is_dir()):
            about = verdict(path)
            number = about.get("number")
            number = number if type(number) is int and number >= 0 else -1
            found.append(Entry(path, match[2], int(match[3]), int(match[4]), number, about.get("accepted")))
    return found
