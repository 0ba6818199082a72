"""The targets that KataGo would write about a turn of a game, computed from the game by its rules, slowly."""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from tests.oracles.go import Go
from tests.oracles.go_katago import Features


class KnownGame(NamedTuple):
    """A finished game of area scoring: its rules, its moves, and what the search thought before each of them."""

    rules: dict[str, Any]  # of `oracles.go.Go`
    actions: list[int]
    values: list[float]  # for the player who moves
    opening: int
    scores: list[float] | None = None  # likewise, in points


class KnownTurn(NamedTuple):
    """What is expected of one row; arrays are [...] without the first axis."""

    planes: np.ndarray  # Bool[22, P]
    scalars: list[float]
    score_bins: np.ndarray
    board: np.ndarray  # [5, size, size]
    columns: dict[int, float]  # of globalTargetsNC, those that follow from the game


def turns(game: KnownGame) -> dict[int, KnownTurn]:
    """Every turn after the opening."""
    features, stones, seen = Features(Go(**game.rules)), [], []
    for action in [*game.actions, None]:
        stones.append(_stones(features.game))
        if action is not None:
            seen.append((np.array(features.planes()), features.scalars()))
            features.play(action)
    end = features.game
    assert end.over
    found = {}
    for turn in range(game.opening, len(game.actions)):
        planes, scalars = seen[turn]
        sign = 1 if turn % 2 == 0 else -1
        score, owned = sign * end.score(), sign * np.array(end.ownership())
        later = [sign * stones[min(turn + ahead, len(stones) - 1)] for ahead in (8, 32)]
        board = np.stack([owned, 0 * owned, *later, 120 * owned])
        found[turn] = KnownTurn(planes, scalars, _bins(score, end.size), board, _columns(game, end, turn, sign, score))
    return found


def _stones(game: Go) -> np.ndarray:
    found = np.zeros((game.size, game.size), int)
    for point, owner in game.board.items():
        found[point] = 1 if owner == 0 else -1
    return found


def _bins(score: float, size: int) -> np.ndarray:
    """Bin i stands for the score i - (area + 60) + 0.5; scores between two bins are shared."""
    area = size * size
    centres = [i - (area + 60) + 0.5 for i in range(2 * area + 120)]
    return np.array([round(100 * max(0.0, 1 - abs(score - centre))) for centre in centres])


def _columns(game: KnownGame, end: Go, turn: int, sign: int, score: float) -> dict[int, float]:
    wins = end.returns()[0]
    # The chance to win minus that to lose, for Black: by the search before each later move, and at the end.
    course = [*[v if ply % 2 == 0 else -v for ply, v in enumerate(game.values)][turn:], wins]
    said = [s if ply % 2 == 0 else -s for ply, s in enumerate(game.scores or [])]
    points = [*said[turn:], end.score()] if said else [end.score()] * len(course)
    area = end.size**2
    found: dict[int, float] = {}
    for place, now in enumerate((0.0, *(1 / (1 + area * factor) for factor in (0.176, 0.056, 0.016)), 1.0)):
        shares = [now * (1 - now) ** k for k in range(len(course) - 1)]
        shares.append(1 - sum(shares))
        mix, mixed = (sign * sum(a * b for a, b in zip(shares, each, strict=True)) for each in (course, points))
        found |= {4 * place: (1 + mix) / 2, 4 * place + 1: (1 - mix) / 2, 4 * place + 2: 0, 4 * place + 3: mixed}
    changes = [(after - before) ** 2 for before, after in itertools.pairwise(course)]
    found |= {20: score, 21: 0, 22: sum(k * change for k, change in enumerate(changes, 1)), 23: 0, 24: 0}
    found |= {27: 1, 29: 0, 33: 1, 34: 1, 35: 0, 47: -sign * end.komi, 48: 1, 49: 0, 50: 0, 51: turn}
    finished = end.last_moves[:2] == [end.pass_action] * 2
    found |= {52: not finished, 53: game.opening, 54: 0, 55: 0, 56: 0, 61: 0, 62: finished, 63: 3}
    assert not any(math.isnan(value) for value in found.values())
    return found | dict.fromkeys(range(64, 80), 0)
