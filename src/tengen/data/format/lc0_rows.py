"""Rows from Lc0's training records, with its ways of choosing positions."""

import math
import threading
from collections.abc import Callable
from hashlib import md5
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from tengen.config.settings.data import DiffFocusSettings
from tengen.data.format import lc0
from tengen.data.format.chunk import CorruptChunk, ForeignChunk
from tengen.data.format.rows import RowFormat, Rows
from tengen.errors import OptionError
from tengen.files.packed import Room
from tengen.games import chess_lc0

_PLANES = (8, 8, chess_lc0.PLANES)
FORM = RowFormat(_PLANES, chess_lc0.SCALARS, chess_lc0.NUM_MOVES, ("opponent_policy",))
"""The rows that records give."""
_GROUPS = math.ceil(chess_lc0.PLANES / 8)
# Steps of the transposition of 8 x 8 bits: shift, and the bits that change places.
_SWAPS = ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0))


def choose(
    records: np.ndarray, numbers: np.random.Generator, rate: float = 1.0, focus: DiffFocusSettings | None = None
) -> np.ndarray:
    """The indices of the positions that are used, in their order: a share of all, and of these by the diff focus."""
    kept = np.flatnonzero((records["flags"] & lc0.HISTORY_ONLY) == 0)
    if rate < 1:
        kept = kept[numbers.random(len(kept)) < rate]
    if focus is None:
        return kept
    best, orig, policy_kld = (records[name][kept] for name in ("best_q", "orig_q", "policy_kld"))
    change = (focus.q_weight * np.abs(best - orig) + policy_kld) / (focus.q_weight + focus.policy_scale)
    chance = (np.nan_to_num(change) * focus.slope + focus.least) ** focus.power
    return kept[np.isnan(orig) | ~(policy_kld > 0) | (numbers.random(len(kept)) < chance)]


def is_chess(form: RowFormat) -> bool:
    """Whether rows are those of chess, as Lc0 encodes it."""
    return form.planes_shape == _PLANES and form.num_actions == chess_lc0.NUM_MOVES


def reader(
    form: RowFormat, rate: float = 1.0, focus: DiffFocusSettings | None = None, seed: int = 0
) -> Callable[[Path], Rows]:
    """Reads a chunk of Lc0 as rows of `form`, for `data.Loader(..., read=...)`.

    The path may lead into a tar (`training.tar/folder/training.1.gz`). `rate` is the share of the positions that are
    used. Which ones depends on the name of the chunk and on the seed alone.
    """
    if not is_chess(form):
        raise OptionError("chunks of Lc0 hold chess, expected the rows of games.make('chess')")
    others = [name for name in form.extras if name != "opponent_policy"]
    if others:
        raise OptionError(f"chunks of Lc0 have no {others[0]} to learn from")

    memory = threading.local()  # a room for each thread

    def read(path: Path) -> Rows:
        memory.room = getattr(memory, "room", None) or Room()
        digest = md5(path.name.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest()
        records = lc0.unpack(lc0.content(path), path, memory.room)
        problem = next(lc0.problems(records), "")
        if problem:
            raise CorruptChunk(f"{path}: {problem}")
        if (records["input_format"] > lc0.CASTLING_PLANE).any():
            kind = records["input_format"].max()
            raise ForeignChunk(f"{path}: planes in Lc0's input format {kind}, expected 1 or 2")
        numbers = np.random.default_rng([seed, int.from_bytes(digest[8:], "little")])
        try:
            which = choose(records, numbers, rate, focus)
            return to_rows(records, which, form, np.frombuffer(digest[:8], np.uint32))
        except OptionError as error:
            raise CorruptChunk(f"{path}: {error}") from None

    return read


def to_rows(records: np.ndarray, which: np.ndarray, form: RowFormat, game: np.ndarray) -> Rows:
    """Those of the records, all of one game, as rows; `game` is its number, UInt32[2]. OptionError for bad policies."""
    few = records if len(which) == len(records) else records[which]
    count, q, d = len(few), few["result_q"], few["result_d"]
    outcome = np.empty((count, 3), np.float32)
    outcome[:, 0], outcome[:, 1], outcome[:, 2] = (1 + q - d) / 2, d, (1 - q - d) / 2
    rows: Rows = {
        "planes": planes(few),
        "scalars": (few["rule_50"] / np.float32(chess_lc0.RULE_50_SCALE))[:, None].astype(np.float32),
        "policy": _policy(few),
        "policy_weight": np.ones(count, np.float32),
        "outcome": np.maximum(outcome, 0),  # as q and d may be fractions that do not fit each other
        "search_value": few["root_q"].copy(),
        "to_play": few["black"].astype(np.int8),
        "ply": which.astype(np.int16),
        "moves_left": np.rint(np.minimum(few["plies_left"], 2**15 - 1)).astype(np.int16),
        "weight": np.ones(count, np.float32),
        "game": np.empty((count, 2), np.uint32),
    }
    rows["game"][:] = game
    if "opponent_policy" in form.extras:
        replies = records[np.minimum(which + 1, len(records) - 1)]
        there = (which + 1 < len(records)) & (replies["flags"] & lc0.HISTORY_ONLY == 0)
        rows["opponent_policy"] = _policy(replies)
        rows["opponent_policy"][~there] = 0
        rows["opponent_weight"] = there.astype(np.float32)
    return {name: rows[name] for name in form.fields}


def _policy(records: np.ndarray) -> np.ndarray:
    """Float16[N, 1858]. OptionError if it is not a policy."""
    legal = lc0.LegalMoves.of(records)
    if problem := legal.problem(records):
        raise OptionError(problem)
    policy = np.zeros((len(records), chess_lc0.NUM_MOVES), np.float16)
    policy[legal.record, legal.move] = legal.share
    return policy


def planes(records: np.ndarray) -> UInt8[np.ndarray, "rows bytes"]:
    """The packed planes of Tengen's observation (`chess_lc0`), from planes of one byte per rank.

    Eight planes of a rank are 8 x 8 bits. Transposed, they are a byte for each file, with one bit per plane.
    """
    count = len(records)
    ranks = np.zeros((count, 8 * _GROUPS, 8), np.uint8)  # [plane, rank]
    ranks[:, 0] = 255
    ranks[:, 1:105] = np.ascontiguousarray(records["planes"]).view(np.uint8).reshape(count, 104, 8)
    flags = np.concatenate([records["castling"], records["black"][:, None]], 1)
    ranks[:, 105:110] = np.where(flags != 0, np.uint8(255), np.uint8(0))[:, :, None]
    # The lowest byte is the last plane of a group: the highest bit is the first plane and the first file.
    grouped = ranks.reshape(count, _GROUPS, 8, 8)[:, :, ::-1].transpose(0, 3, 1, 2)
    bits = np.ascontiguousarray(grouped).view("<u8")[..., 0]
    for shift, mask in _SWAPS:
        change = (bits ^ (bits >> np.uint64(shift))) & np.uint64(mask)
        bits = bits ^ change ^ (change << np.uint64(shift))
    by_file = bits.astype("<u8").view(np.uint8).reshape(count, 8, _GROUPS, 8)[..., ::-1].transpose(0, 1, 3, 2)
    wide = np.unpackbits(np.ascontiguousarray(by_file), axis=-1)
    return np.packbits(wide[..., : chess_lc0.PLANES].reshape(count, 64 * chess_lc0.PLANES), axis=-1)
