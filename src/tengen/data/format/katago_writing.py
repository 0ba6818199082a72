"""Rows of Tengen's self-play as files for KataGo's trainer: the arrays of format/katago.py, written in format 3.

What Tengen's search does not know is left out as KataGo leaves it out, with a weight of 0: the lead, and the values of
single moves. A search without points estimates no scores; averages then have the final score in their place.
"""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tengen import files
from tengen.data.format import katago
from tengen.data.format.rows import EXTRAS, WEIGHTS, RowFormat, Rows, game_numbers
from tengen.games.core import Game

FUTURES = {"stones_in_8": 8, "stones_in_32": 32}
"""Fields of rows that KataGo's files need besides: the stones on the board that many turns later."""
SCORE = "search_score"
"""And the score that the search expects, if it knows one: Float32[N], for the player to move."""
_POLICY_UNITS = 30_000  # of a probability of 1
_HEADER = 256  # bytes of an array's header in KataGo's files
# How much of the average is this turn's value: the average then reaches far, less far, and a few turns ahead.
_NOW = (0.176, 0.056, 0.016)


class GameCourses(NamedTuple):
    """G finished games, whose rows are written."""

    number: np.ndarray  # UInt32[G, 2]
    value: np.ndarray  # [G, M]: of the search before each move, for the player who made it
    score: np.ndarray | None  # [G, M]: the same in points; None if the search knows none
    length: np.ndarray  # Int[G]: moves
    opening: np.ndarray  # Int[G]: how many of them were drawn at random
    cut: np.ndarray  # Bool[G]: ended by the limit of moves
    result: np.ndarray  # Float32[G]: for Black
    komi: np.ndarray  # Float32[G]


def played_form(game: Game, scored: bool) -> RowFormat:
    """The fields that rows of self-play need to be written for KataGo; `scored`: its search knows scores."""
    more = (*(f"{name}:point:int8" for name in FUTURES), *([f"{SCORE}:number:float32"] if scored else []))
    return RowFormat(game.planes_shape, game.num_scalars, game.num_actions, (*EXTRAS, WEIGHTS, *more))


def arrays(rows: Mapping[str, np.ndarray], games: GameCourses, area: int, visits: tuple[int, int]) -> Rows:
    """The arrays of a file, for rows (np) of `played_form`, all of games on boards of `area` points.

    `visits` are those of a full and of a cheap search.
    """
    count, side = len(rows["ply"]), rows["ownership"].shape[1]
    which, ply = _places(games.number, rows["game"]), rows["ply"].astype(np.int64)
    found = {name: np.zeros(shape, dtype) for name, (shape, dtype) in katago.shapes(count, side).items()}
    found["binaryInputNCHWPacked"] = _planes(rows["planes"], side)
    found["globalInputNC"] = rows["scalars"]
    for channel, (name, weight) in enumerate((("policy", "policy_weight"), ("opponent_policy", "opponent_weight"))):
        whole = np.rint(rows[name].astype(np.float32) * _POLICY_UNITS).astype(np.int16)
        found["policyTargetsNCMove"][:, channel] = np.where(rows[weight][:, None] > 0, whole, 1)
    found["scoreDistrN"] = _score_bins(rows["score"], side * side)
    board = found["valueTargetsNCHW"]
    board[:, 0], board[:, 4] = rows["ownership"], rows["ownership"] * 120
    for channel, name in enumerate(FUTURES, 2):
        board[:, channel] = rows[name]
    found["globalTargetsNC"] = _targets(rows, games, which, ply, area, visits)
    return found


def write(path: Path, found: Mapping[str, np.ndarray]) -> None:
    """Write the arrays to a file that is complete or absent."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in found.items():
            shape = ",".join(map(str, values.shape))
            header = f"{{'descr':'{values.dtype.str}','fortran_order':False,'shape':({shape})}}".encode()
            begin = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
            content = begin + header.ljust(_HEADER - 11) + b"\n" + np.ascontiguousarray(values).tobytes()
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    files.make_folder(path.parent)
    files.write_bytes(path, file.getvalue())


def _places(numbers: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Int[N]: the games of these rows."""
    known, asked = (game_numbers(each) for each in (numbers, wanted))
    order = np.argsort(known)
    return order[np.searchsorted(known, asked, sorter=order)]


def _planes(packed: np.ndarray, side: int) -> np.ndarray:
    """UInt8[N, 22, bytes]: every plane by itself."""
    area = side * side
    bits = np.unpackbits(packed, axis=1, count=area * katago.PLANES).reshape(-1, area, katago.PLANES)
    return np.packbits(bits.transpose(0, 2, 1), axis=2)


def _score_bins(score: np.ndarray, area: int) -> np.ndarray:
    """Int8[N, bins]: 100 at the bin of each score, or shared by two bins if it lies between them."""
    bins = np.zeros((len(score), 2 * area + 120), np.int8)
    place = np.clip(score.astype(np.float64) - 0.5 + area + 60, 0, bins.shape[1] - 1)
    low = np.minimum(np.floor(place).astype(np.int64), bins.shape[1] - 2)
    upper = np.rint(100 * (place - low)).astype(np.int8)
    rows = np.arange(len(score))
    bins[rows, low], bins[rows, low + 1] = 100 - upper, upper
    return bins


def _targets(
    rows: Mapping[str, np.ndarray],
    games: GameCourses,
    which: np.ndarray,
    ply: np.ndarray,
    area: int,
    visits: tuple[int, int],
) -> np.ndarray:
    """Float32[N, 80]: globalTargetsNC."""
    sign = np.where(ply % 2 == 0, 1.0, -1.0)  # Black, whose values the courses have, moves first
    found = np.zeros((len(ply), katago.TARGETS), np.float64)
    points = np.zeros(len(games.length))  # of each game at its end, for Black
    points[which] = rows["score"] * sign
    later = _course(games, points, area)
    for place, value in enumerate((games.result[which], *(table[which, ply] for table in later.values))):
        value = value * sign
        found[:, 4 * place] = (1 + value) / 2
        found[:, 4 * place + 1] = (1 - value) / 2
        found[:, 4 * place + 3] = rows["score"]
    for place, table in enumerate(later.scores, 1):
        found[:, 4 * place + 3] = table[which, ply] * sign
    found[:, 20] = rows["score"]
    found[:, 22] = later.variance[which, ply]
    found[:, 25], found[:, 26], found[:, 28] = rows["weight"], rows["policy_weight"], rows["opponent_weight"]
    found[:, [27, 33, 34]] = 1
    policy = rows["policy"].astype(np.float64)
    found[:, 32] = -np.sum(policy * np.log(np.where(policy > 0, policy, 1)), -1)
    found[:, 36:41] = 1
    found[:, 41:47] = _hashes(games.number)[which]
    found[:, 47] = -sign * games.komi[which]
    found[:, 48] = 1
    found[:, 51], found[:, 53] = ply, games.opening[which]
    found[:, 52], found[:, 62] = games.cut[which], ~games.cut[which]
    found[:, 60] = np.where(rows["policy_weight"] > 0, *visits)
    found[:, 63] = 3
    return found.astype(np.float32)


class _Course(NamedTuple):
    """What follows each turn of each game; [G, M]."""

    values: list[np.ndarray]  # three averages of values over later turns, and this turn's value, for Black
    scores: list[np.ndarray]  # the same of scores; empty if the search knows none
    variance: np.ndarray  # sum over later turns of the turns until then times the squared change of the value


def _course(games: GameCourses, points: np.ndarray, area: int) -> _Course:
    moves = games.value.shape[1]
    black = np.where(np.arange(moves) % 2 == 0, 1, -1)
    value = games.value.astype(np.float64) * black
    result = games.result.astype(np.float64)
    scores = [] if games.score is None else _averages(games.score * black, points, games.length, area)
    variance = np.zeros(value.shape)
    next_value, changes, total = result.copy(), np.zeros(len(result)), np.zeros(len(result))
    for ply in reversed(range(int(games.length.max(initial=0)))):
        inside = ply < games.length
        changes += np.where(inside, (next_value - value[:, ply]) ** 2, 0)
        total += np.where(inside, changes, 0)
        variance[:, ply] = total
        next_value = np.where(inside, value[:, ply], next_value)
    return _Course(_averages(value, result, games.length, area), scores, variance)


def _averages(said: np.ndarray, end: np.ndarray, length: np.ndarray, area: int) -> list[np.ndarray]:
    """[G, M] each: averages of what the searches of this and later turns said, and of the end; and what was `said`."""
    found = []
    for now in _NOW:
        share, after, average = 1 / (1 + area * now), end.astype(np.float64), np.zeros(said.shape)
        for ply in reversed(range(int(length.max(initial=0)))):
            after = np.where(ply < length, share * said[:, ply] + (1 - share) * after, after)
            average[:, ply] = after
        found.append(average)
    return [*found, said]


def _hashes(numbers: np.ndarray) -> np.ndarray:
    """[G, 6]: 128 bits for each game, in pieces that a Float32 holds: its number, then others that go with it."""
    found = []
    for first in game_numbers(numbers).tolist():
        second = int.from_bytes(hashlib.sha256(first.to_bytes(8)).digest()[:8])
        found += [
            half >> shift & (1 << bits) - 1 for half in (first, second) for shift, bits in ((0, 22), (22, 22), (44, 20))
        ]
    return np.array(found, np.float64).reshape(-1, 6)
