"""Rows from Lc0's training records, with its ways of choosing positions, and records of games played here."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int, UInt8

from tengen import files
from tengen.config.settings.data import DiffFocusSettings
from tengen.data.format import lc0
from tengen.data.format.chunk import ChunkError, CorruptChunk, ForeignChunk, UnreadableChunk
from tengen.data.format.rows import RowFormat, Rows
from tengen.data.format.tars import TarFile, split_path
from tengen.errors import OptionError
from tengen.games import chess_lc0

_PLANES = (8, 8, chess_lc0.PLANES)
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

    def read(path: Path) -> Rows:
        digest = md5(path.name.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest()
        records = lc0.unpack(_bytes(path), path)
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


def _bytes(path: Path) -> bytes:
    tar, member = split_path(path)
    try:
        return files.read_bytes(tar) if member is None else TarFile.of(tar).read(member)
    except ChunkError:
        raise
    except OSError as error:
        raise UnreadableChunk(f"{path}: cannot be read: {error.strerror or error}") from error
    except OptionError as error:
        raise CorruptChunk(f"{path}: {error}") from error


def to_rows(records: np.ndarray, which: np.ndarray, form: RowFormat, game: np.ndarray) -> Rows:
    """Those of the records, all of one game, as rows; `game` is its number, UInt32[2]. OptionError for bad policies."""
    few = records if len(which) == len(records) else records[which]
    count, q, d = len(few), few["result_q"], few["result_d"]
    rows: Rows = {
        "planes": planes(few),
        "scalars": (few["rule_50"] / np.float32(chess_lc0.RULE_50_SCALE))[:, None].astype(np.float32),
        "policy": _policy(few),
        "policy_weight": np.ones(count, np.float32),
        "outcome": np.stack([(1 + q - d) / 2, d, (1 - q - d) / 2], 1).clip(0, 1),
        "search_value": few["root_q"].copy(),
        "to_play": few["black"].astype(np.int8),
        "ply": which.astype(np.int16),
        "moves_left": np.rint(few["plies_left"].clip(0, 2**15 - 1)).astype(np.int16),
        "weight": np.ones(count, np.float32),
        "game": np.tile(game, (count, 1)),
    }
    if "opponent_policy" in form.extras:
        there = which + 1 < len(records)
        rows["opponent_policy"] = _policy(records[np.minimum(which + 1, len(records) - 1)])
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
    return np.packbits(wide[..., : chess_lc0.PLANES].reshape(count, -1), axis=-1)


@dataclass(frozen=True)
class Lc0Game:
    """A finished game of chess as arrays, one entry for each of its N moves; values are those of the player to move."""

    planes: Bool[np.ndarray, "moves 8 8 110"]  # Tengen's observation
    scalars: Float32[np.ndarray, "moves 1"]
    legal: Bool[np.ndarray, "moves 1858"]
    policy: Float32[np.ndarray, "moves 1858"]  # shares of the visits
    played: Int[np.ndarray, " moves"]
    best: Int[np.ndarray, " moves"]
    visits: Int[np.ndarray, " moves"]
    root: Float32[np.ndarray, "moves 3"]  # value, chance of a draw, and moves left, after the search
    network: Float32[np.ndarray, "moves 3"]  # the same before it; NaN if unknown
    result: int  # 1 if the player of the first move has won, 0 for a draw, -1
    policy_kld: Float32[np.ndarray, " moves"]  # of the visits from the network's policy; 0 if unknown


def to_records(game: Lc0Game) -> np.ndarray:
    """The game as Lc0's records (RECORD[N]), for `lc0.write`. The best and the played move have the root's value."""
    count = len(game.planes)
    records = np.zeros(count, lc0.RECORD)
    records["version"], records["input_format"] = 6, lc0.CLASSICAL
    records["probabilities"] = np.where(game.legal, game.policy, np.float32(-1))
    by_plane = np.moveaxis(game.planes, -1, 1)
    records["planes"] = chess_lc0.pack(by_plane[:, 1:105])
    records["castling"], records["black"] = by_plane[:, 105:109, 0, 0], by_plane[:, 109, 0, 0]
    records["rule_50"] = np.rint(game.scalars[:, 0] * chess_lc0.RULE_50_SCALE).clip(0, 100)
    for source, names in ((game.root, ("root", "best", "played")), (game.network, ("orig",))):
        q = source[:, 0].clip(-1, 1)
        for name in names:
            records[f"{name}_q"] = q
            records[f"{name}_d"] = np.minimum(
                source[:, 1].clip(0, 1), 1 - np.abs(q)
            )  # wins and losses are no less than 0
            records[f"{name}_m"] = source[:, 2].clip(0)
    records["plies_left"] = np.arange(count)[::-1]
    # In chess the players move in turn.
    records["result_q"] = game.result * (1 - 2 * (np.arange(count) % 2))
    records["result_d"] = float(game.result == 0)
    records["visits"], records["played_idx"], records["best_idx"] = game.visits, game.played, game.best
    # Lc0 adds the smallest number, so that 0 means unknown.
    records["policy_kld"] = np.where(game.policy_kld > 0, game.policy_kld + np.finfo(np.float32).tiny, 0)
    return records
