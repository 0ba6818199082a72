"""Rows that KataGo's self-play wrote, with the moves that led to them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np


class KatagoGame(NamedTuple):
    """A game of an .sgfs file."""

    size: int
    ko: str
    suicide: bool
    scoring: str  # "area", "territory", "area, tax", "area, button"
    setup: bool  # whether it starts with stones
    actions: list[int]


class KatagoRow(NamedTuple):
    """A position of a game: what KataGo wrote about it."""

    game: KatagoGame
    actions: list[int]  # before it; a side line that KataGo looked at may leave the game here
    planes: np.ndarray  # Bool[22, P]
    scalars: np.ndarray  # Float32[19]
    komi: float  # for the player to move, adjusted for draws


def read_games(text: str) -> dict[str, KatagoGame]:
    """The games of an .sgfs file, by their hashes."""
    found = {}
    for line in text.splitlines():
        size = int(_find(r"SZ\[(\d+)\]", line)[0])
        ko, scoring, tax, suicide, button = _find(r"RU\[ko([A-Z]+)score([A-Z]+)tax([A-Z]+)sui(\d)(button1)?", line)
        kind = scoring.lower() + (", tax" if tax != "NONE" else "") + (", button" if button else "")
        moves = re.findall(r";[BW]\[([a-z]*)\]", line)
        actions = [(ord(m[1]) - 97) * size + ord(m[0]) - 97 if m else size * size for m in moves]
        stones = bool(re.search(r"A[BW]\[", line))
        game = KatagoGame(size, ko.lower(), suicide == "1", kind, stones, actions)
        found[_find(r"gameHash=([0-9A-F]{32})", line)[0]] = game
    return found


def _find(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text)
    assert found, f"no {pattern} in {text[:200]}"
    return found.groups()


def read_rows(path: Path, games: dict[str, KatagoGame]) -> Iterator[KatagoRow | None]:
    """The rows of an npz file; None for a row whose game is not known."""
    with np.load(path) as data:
        packed, scalars, targets = (data[k] for k in ("binaryInputNCHWPacked", "globalInputNC", "globalTargetsNC"))
    for row in range(len(packed)):
        pieces = [int(piece) for piece in targets[row, 41:47]]
        low, high = (p[0] | p[1] << 22 | p[2] << 44 for p in (pieces[:3], pieces[3:]))
        game = games.get(f"{high:016X}{low:016X}")
        if game is None:
            yield None
            continue
        length = int(np.sqrt(packed.shape[2] * 8))
        planes = np.unpackbits(packed[row], axis=1)[:, : length**2].reshape(22, length, length)
        planes = planes[:, : game.size, : game.size].reshape(22, -1).astype(bool)
        turn = int(targets[row, 51])
        actions = [*game.actions[: max(turn - 5, 0)], *_newest(planes, scalars[row], turn)]
        yield KatagoRow(game, actions, planes, scalars[row], float(targets[row, 47]))


def _newest(planes: np.ndarray, scalars: np.ndarray, turn: int) -> list[int]:
    """The newest five moves of a position, the oldest of them first, as its planes and scalars show them."""
    points = planes.shape[1]
    return [points if scalars[ago] else int(planes[9 + ago].argmax()) for ago in range(min(turn, 5))][::-1]


def read_folder(folder: Path) -> list[KatagoRow | None]:
    """All rows of a folder of KataGo's self-play, which has npz and .sgfs files."""
    games: dict[str, KatagoGame] = {}
    for path in sorted(folder.glob("**/*.sgfs")):
        games |= read_games(path.read_text())
    return [row for path in sorted(folder.glob("**/*.npz")) for row in read_rows(path, games)]


def save_sample(path: Path, rows: list[KatagoRow]) -> None:
    """Writes rows of area games on boards of one size, with their moves, as a small file for tests."""
    longest = max(len(row.actions) for row in rows)
    np.savez_compressed(
        path,
        planes=np.packbits(np.stack([row.planes for row in rows]), axis=2),
        scalars=np.stack([row.scalars for row in rows]),
        komi=np.array([row.komi for row in rows], np.float32),
        ko=np.array([row.game.ko for row in rows]),
        suicide=np.array([row.game.suicide for row in rows]),
        length=np.array([len(row.actions) for row in rows], np.int16),
        actions=np.array([row.actions + [0] * (longest - len(row.actions)) for row in rows], np.int16),
    )


def load_sample(path: Path, size: int = 9) -> list[KatagoRow]:
    """The rows of such a file."""
    with np.load(path) as data:
        planes = np.unpackbits(data["planes"], axis=2)[:, :, : size**2].astype(bool)
        scalars, komi, ko, suicide, length, actions = (
            data[key] for key in ("scalars", "komi", "ko", "suicide", "length", "actions")
        )
    rows = []
    for row in range(len(planes)):
        played = actions[row, : length[row]].tolist()
        game = KatagoGame(size, str(ko[row]), bool(suicide[row]), "area", False, played)
        rows.append(KatagoRow(game, played, planes[row], scalars[row], float(komi[row])))
    return rows
