"""Lc0's training records, versions 3 to 6, and rows made of them: one gzip stream is one game, in the order of play.

All values are from the side of the player to move. Records of older versions are widened to version 6, as Lc0 does.
"""

import math
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from tengen import files
from tengen.config.settings.data import DiffFocusSettings
from tengen.data.format.chunk import CorruptChunk, ForeignChunk, explaining
from tengen.data.format.rows import RowFormat, Rows
from tengen.data.format.tars import TarFile, split_path
from tengen.errors import OptionError, TengenError
from tengen.files import packed
from tengen.games import chess_lc0

_MOVES = chess_lc0.NUM_MOVES
_BEGIN = [("version", "<u4"), ("input_format", "<u4"), ("probabilities", "<f4", _MOVES)]
_BOARD = [("planes", "<u8", 104), ("castling", "u1", 4), ("black", "u1"), ("rule_50", "u1"), ("flags", "u1"),
          ("result", "i1")]  # fmt: skip
_FLOATS = [(name, "<f4") for name in ("root_q", "best_q", "root_d", "best_d")]
_MORE = [(name, "<f4") for name in ("root_m", "best_m", "plies_left")]
_LAST = [
    *((name, "<f4") for name in ("result_q", "result_d", "played_q", "played_d", "played_m")),
    *((name, "<f4") for name in ("orig_q", "orig_d", "orig_m")),
    *(("visits", "<u4"), ("played_idx", "<u2"), ("best_idx", "<u2"), ("policy_kld", "<f4"), ("q_st", "<f4")),
]
_OLD = [_BEGIN[0], _BEGIN[2], *_BOARD]
VERSIONS = {
    3: np.dtype(_OLD),
    4: np.dtype([*_OLD, *_FLOATS]),
    5: np.dtype([*_BEGIN, *_BOARD, *_FLOATS, *_MORE]),
    6: np.dtype([*_BEGIN, *_BOARD, *_FLOATS, *_MORE, *_LAST]),
}
"""The records of each version: 8,276, 8,292, 8,308 and 8,356 bytes."""
RECORD = VERSIONS[6]
_SMALL = np.dtype([*_BOARD[1:], *_FLOATS, *_MORE, *_LAST])
_SMALL_AT = RECORD.itemsize - _SMALL.itemsize
_SHARE, _VALUE, _COUNT = (0, 1), (-1, 1), (0, float(np.finfo(np.float32).max))
# The numbers whose range Lc0's tools check, in the order of the record, where they follow each other.
_LIMITS = {
    **dict.fromkeys(("root_q", "best_q"), _VALUE),
    **dict.fromkeys(("root_d", "best_d"), _SHARE),
    **dict.fromkeys(("root_m", "best_m", "plies_left"), _COUNT),
    **{"result_q": _VALUE, "result_d": _SHARE, "played_q": _VALUE, "played_d": _SHARE, "played_m": _COUNT},
}
_LIMITED_AT = _SMALL.fields["root_q"][1]  # type: ignore[index]
CLASSICAL, CASTLING_PLANE = 1, 2  # input formats with the planes that Tengen's chess has
_KNOWN_FORMATS = (1, 2, 3, 4, 5, 132, 133)
_MOST_BYTES = RECORD.itemsize * 20_000  # no game is as long
_ILLEGAL = np.float32(-1).view(np.uint32)
_KINGS = [5, 11]  # the planes of the present position with our king and with theirs
_SLACK = 0.01  # in the sum of a policy, and in numbers that Lc0 writes as it computed them
HISTORY_ONLY = 64  # the bit of `flags` for records that only complete the history of others
_PLANES = (8, 8, chess_lc0.PLANES)
FORM = RowFormat(_PLANES, chess_lc0.SCALARS, chess_lc0.NUM_MOVES, ("opponent_policy",))
"""The rows that records give."""
_GROUPS = math.ceil(chess_lc0.PLANES / 8)
# Steps of the transposition of 8 x 8 bits: shift, and the bits that change places.
_SWAPS = ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0))
# The beginning of a gzip stream with a comment: how many positions there are to learn from.
_NOTED = re.compile(rb"\x1f\x8b\x08\x10.{6}positions: (\d{1,5})\0", re.DOTALL)


def content(path: Path) -> bytes:
    """The content of a chunk, which may lie in a tar (`training.tar/folder/training.1.gz`). Raises ChunkError."""
    tar, member = split_path(path)
    with explaining(path):
        if member is not None:
            return TarFile.of(tar).read(member, _MOST_BYTES)
        data = files.read_bytes(tar, _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise OptionError(f"more than {_MOST_BYTES:,} bytes, which no game has")
        return data


def count_positions(path: Path) -> int:
    """How many positions of a game are to be learned from; its beginning says so if Tengen wrote it."""
    with explaining(path):
        first = files.read_bytes(path, 64)
    if found := _NOTED.match(first):
        return int(found[1])
    return int((unpack(content(path), path)["flags"] & HISTORY_ONLY == 0).sum())


def unpack(packed_data: bytes, where: object, room: packed.UnpackBuffer | None = None) -> np.ndarray:
    """The records in the bytes of a file, which may be a gzip stream, as RECORD[N]. Raises ChunkError.

    With `room`, the records are only good until that is used again.
    """
    try:
        data = packed.unpack(packed_data, _MOST_BYTES, room)
    except ValueError as error:
        raise CorruptChunk(f"{where}: {error}") from None
    if not len(data):
        raise CorruptChunk(f"{where}: holds nothing, expected records of Lc0")
    version = int.from_bytes(data[:4], "little")
    if version not in VERSIONS:
        raise ForeignChunk(f"{where}: records of version {version}, expected Lc0's version 3, 4, 5 or 6")
    size = VERSIONS[version].itemsize
    if len(data) % size:
        raise CorruptChunk(f"{where}: {len(data):,} bytes, which is no multiple of the {size:,} of a record")
    records = np.frombuffer(data, VERSIONS[version])
    if (records["version"] != version).any():
        raise CorruptChunk(f"{where}: records of several versions")
    return records if version == 6 else _widened(records)


def _widened(old: np.ndarray) -> np.ndarray:
    """Records of an older version as those of version 6; what they do not know is 0, or NaN for `orig_*`."""
    names = old.dtype.names or ()
    new = np.zeros(len(old), RECORD)
    for name in names:
        new[name] = old[name]
    new["version"] = 6
    if "input_format" not in names:
        new["input_format"] = CLASSICAL
    if "plies_left" not in names or not new["plies_left"].any():
        new["plies_left"] = np.arange(len(old))[::-1]
        if "root_m" not in names:
            new["flags"] = 0  # there it counts moves
    for name in ("orig_q", "orig_d", "orig_m"):
        new[name] = np.nan
    new["result_q"], new["result_d"] = old["result"], old["result"] == 0
    new["result"] = 0
    return new


def problems(records: np.ndarray) -> Iterator[str]:
    """What Lc0's own tools would refuse in a game, apart from whether each move leads to the next position."""
    kinds = records["input_format"]
    odd = [kind for kind in kinds.tolist() if kind not in _KNOWN_FORMATS]
    if odd:
        yield f"input_format: expected one that Lc0 knows, unlike in {len(odd)} of {len(records)} records"
    # Records are large: their small fields are read once, instead of a piece of memory for each field.
    r = records.view(np.uint8).reshape(len(records), RECORD.itemsize)[:, _SMALL_AT:].copy().view(_SMALL)[:, 0]
    numbers = r.view(np.uint8).reshape(len(r), _SMALL.itemsize)[:, _LIMITED_AT:].view("<f4")[:, : len(_LIMITS)]
    low, high = np.array([*_LIMITS.values()], np.float32).T
    good: np.ndarray = (numbers >= low) & (numbers <= high)
    limits = {}
    if not good.all():
        for column, (name, (_, most)) in enumerate(_LIMITS.items()):
            words = "a finite number from 0 on" if most > 1 else f"from {_LIMITS[name][0]} to {most}"
            limits[name] = (good[:, column], words)
    classical = kinds == CLASSICAL
    one_bit = (r["castling"] & (r["castling"] - 1)) == 0
    castling: np.ndarray = np.where(classical[:, None], r["castling"] <= 1, one_bit)
    limits["castling"] = (castling[:, 0] & castling[:, 1] & castling[:, 2] & castling[:, 3], "0 or 1, or one bit")
    limits["black"] = ((r["black"] <= 1) | (kinds > CASTLING_PLANE), "0 or 1")
    kings = records["planes"][:, _KINGS]
    limits["planes"] = (((kings != 0) & (kings & (kings - np.uint64(1)) == 0)).all(1), "a king of each side")
    limits["rule_50"] = (r["rule_50"] <= 100, "at most 100")
    # NaN is what was not computed; a network that excludes a move which is then visited gives an infinite divergence.
    limits["orig_q"] = (~(np.abs(r["orig_q"]) > 1 + _SLACK), "from -1 to 1, or NaN")
    limits["policy_kld"] = (~(r["policy_kld"] < -_SLACK), "at least 0")
    for name, (good, words) in limits.items():
        if not good.all():
            yield f"{name}: expected {words}, unlike in {(~good).sum()} of {len(r)} records"
    if (kinds <= CASTLING_PLANE).all():
        # A record shows the position before its own, from the other side: its ranks, which are bytes, in turn.
        now, before = records["planes"][:-1, :12].byteswap(), records["planes"][1:, 13:25]
        if lost := int((np.roll(now, 6, 1) != before).any(1).sum()):
            yield f"planes: expected the moves of one game, unlike in {lost} of {len(r)} records"


class LegalMoves(NamedTuple):
    """The entries of policies that are not -1: few, compared with all moves."""

    record: np.ndarray  # Int[K], rising
    move: np.ndarray  # Int[K]
    share: np.ndarray  # Float32[K]; NaN counts as 0

    @staticmethod
    def of(records: np.ndarray) -> "LegalMoves":
        policy = records["probabilities"]
        record, move = np.nonzero(policy.view("<u4") != _ILLEGAL)
        share = policy[record, move]
        return LegalMoves(record, move, np.where(np.isnan(share), np.float32(0), share))

    def problem(self, records: np.ndarray) -> str:
        """The first problem with the policies of the records; empty if there is none."""
        total = np.bincount(self.record, self.share, len(records))
        outside = np.bincount(self.record, (self.share < 0) | (self.share > 1), len(records))
        off = int(((outside > 0) | (abs(total - 1) > _SLACK)).sum())
        if off:
            return f"probabilities: expected -1 or numbers from 0 to 1 with the sum 1, unlike in {off} records"
        searched = np.flatnonzero(records["visits"])
        for name in ("best_idx", "played_idx"):
            index = records[name][searched].astype(int)
            policy = records["probabilities"]
            if (index >= _MOVES).any() or (policy[searched, np.minimum(index, _MOVES - 1)] == -1).any():
                return f"{name}: expected a legal move"
        return ""


def is_whole(records: np.ndarray) -> str:
    """The first problem of a game; empty if there is none. All that can be checked without the rules of chess."""
    if not len(records):
        return "a game without records"
    return next(problems(records), "") or LegalMoves.of(records).problem(records)


def write(path: Path, records: np.ndarray) -> None:
    """Writes a game as a chunk, `*.gz`. Raises TengenError for records that Lc0's tools would refuse."""
    records = np.asarray(records, RECORD)
    if problem := is_whole(records):
        raise TengenError(f"{path}: not written: {problem}")
    data, squeeze = records.tobytes(), zlib.compressobj(6, zlib.DEFLATED, -15)
    # Without a name and a time, so that the same game gives the same bytes.
    note = f"positions: {(records['flags'] & HISTORY_ONLY == 0).sum()}"
    begin = b"\x1f\x8b\x08\x10\0\0\0\0\0\xff" + note.encode() + b"\0"
    end = zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    files.write_bytes(path, b"".join((begin, squeeze.compress(data), squeeze.flush(), end)))


def choose(
    records: np.ndarray, numbers: np.random.Generator, rate: float = 1.0, focus: DiffFocusSettings | None = None
) -> np.ndarray:
    """The indices of the positions that are used, in their order: a share of all, and of these by the diff focus."""
    kept = np.flatnonzero((records["flags"] & HISTORY_ONLY) == 0)
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
        memory.room = getattr(memory, "room", None) or packed.UnpackBuffer()
        digest = md5(path.name.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest()
        records = unpack(content(path), path, memory.room)
        problem = next(problems(records), "")
        if problem:
            raise CorruptChunk(f"{path}: {problem}")
        if (records["input_format"] > CASTLING_PLANE).any():
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
        there = (which + 1 < len(records)) & (replies["flags"] & HISTORY_ONLY == 0)
        rows["opponent_policy"] = _policy(replies)
        rows["opponent_policy"][~there] = 0
        rows["opponent_weight"] = there.astype(np.float32)
    return {name: rows[name] for name in form.fields}


def _policy(records: np.ndarray) -> np.ndarray:
    """Float16[N, 1858]. OptionError if it is not a policy."""
    legal = LegalMoves.of(records)
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
