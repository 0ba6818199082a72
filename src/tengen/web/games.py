"""The records of a run's games: which there are, and one of them for the viewer."""

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from tengen.data.records.records import (
    ENDINGS,
    Record,
    file_name,
    load_comments,
    load_records,
    load_variations,
    write_records,
)
from tengen.errors import TengenError
from tengen.run import networks
from tengen.web.folders import inside

FOLDER = "games"
_NAMES = (".sgf", ".pgn", ".txt")
_MOST_NETWORKS = 500
_LISTED = 100  # games of one network in a list
_LONGEST = 4000  # characters of a comment
_LARGEST = 1 << 24  # bytes of a file of games


class NoSuchGame(TengenError):
    """A game that was asked for and is not there."""


def networks_with_games(base: Path) -> list[str]:
    """The names of networks whose games were recorded, the newest first."""
    found = [path.name for path in inside(base / FOLDER) if path.is_dir()]
    return sorted(found, key=lambda name: (networks.parse(name) or (-1, ""))[0], reverse=True)[:_MOST_NETWORKS]


def listed(base: Path, network: str) -> list[dict[str, Any]]:
    """The newest games of a network, without their moves. `key` is what `shown` takes. Needs JAX."""
    from tengen.data.records import moves
    from tengen.web import frames

    found = []
    for path in _newest(_folder(base, network)):
        for number, record in enumerate(_records(str(path), path.stat().st_mtime_ns)):
            with contextlib.suppress(TengenError):
                found.append({"key": f"{path.name}:{number}", **frames.heading(record, moves.game_of(record))})
        if len(found) >= _LISTED:
            break
    return found[:_LISTED]


def shown(base: Path, network: str, key: str) -> dict[str, Any]:
    """One game with all positions. Needs JAX. TengenError says what is wrong with it."""
    from tengen.web import frames

    record = find_record(base, network, key)
    name, _, number = key.rpartition(":")
    path = _folder(base, network) / name
    played = frames.play_through(record, load_variations(path, int(number)))
    for ply, words in load_comments(path, int(number), own=True).items():
        if ply < len(played["moves"]):
            played["moves"][ply]["comment"] = words[:_LONGEST]
    stem = f"{network}-{record.id or key}".replace(":", "-")
    return played | {"key": key, "text": exported(record, stem)}


def exported(record: Record, stem: str) -> dict[str, str]:
    """A record as a file of its usual format: SGF for Go, PGN for chess, and our own text for other games."""
    return {"name": file_name(stem, record.game), "content": write_records([record], ENDINGS.get(record.game, "txt"))}


def selection(base: Path, most: int) -> list[dict[str, Any]]:
    """Some games of networks from the whole run, complete, for a report; those of the newest network first."""
    names = networks_with_games(base)
    step = max(1, len(names) // 5)
    chosen = list(dict.fromkeys([*names[:1], *names[::step], *names[-1:]]))
    each = max(2, most // max(len(chosen), 1))
    found: list[dict[str, Any]] = []
    for name in chosen:
        candidates = listed(base, name)
        # The newest, and the games in which the winner was furthest behind.
        by_swing = sorted(candidates, key=lambda one: -one["swing"])[: each // 3]
        keys = dict.fromkeys(one["key"] for one in (*candidates[: each - len(by_swing)], *by_swing))
        for key in keys:
            with contextlib.suppress(TengenError, OSError):
                found.append({**shown(base, name, key), "network": name})
    return found[:most]


def find_record(base: Path, network: str, key: str) -> Record:
    """The record of one game. NoSuchGame if it is not there."""
    name, _, number = key.rpartition(":")
    path = next((path for path in _newest(_folder(base, network)) if path.name == name), None)
    if path is None or not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise NoSuchGame(f"{network}: there is no game {key!r}")
    records = _records(str(path), path.stat().st_mtime_ns)
    if int(number) >= len(records):
        raise NoSuchGame(f"{network}: the file {name} has {len(records)} games")
    return records[int(number)]


def _folder(base: Path, network: str) -> Path:
    """The folder of a network's games; a name that is not listed there cannot lead anywhere else."""
    found = next((path for path in inside(base / FOLDER) if path.name == network and path.is_dir()), None)
    if found is None:
        raise NoSuchGame(f"{base}: no games of a network {network!r}")
    return found


def _newest(folder: Path) -> Iterator[Path]:
    there = [path for path in inside(folder) if path.suffix in _NAMES and not path.name.startswith(".")]
    yield from sorted(there, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)


@lru_cache(maxsize=16)
def _records(path: str, stamp: int) -> tuple[Record, ...]:
    """The games of a file in the state that it has at `stamp`. A file that cannot be read has none."""
    try:
        if Path(path).stat().st_size > _LARGEST:
            return ()
        return tuple(load_records(Path(path)))
    except TengenError:
        return ()
