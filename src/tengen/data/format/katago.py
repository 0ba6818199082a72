"""Files of training rows as KataGo's self-play writes and its trainer reads them (`.npz`, formats 2 and 3).

The arrays, for N positions on boards of at most L x L points, A = L * L; values are for the player to move:

    binaryInputNCHWPacked  UInt8[N, 22, ceil(A/8)]  KataGo's planes, the bits of each one after the other
    globalInputNC          Float32[N, 19]           its global inputs
    policyTargetsNCMove    Int16[N, 2, A+1]         play-selection weights of this turn and of the reply
    globalTargetsNC        Float32[N, 80]           outcome, values, scores, weights (format 2: 64 columns)
    scoreDistrN            Int8[N, 2*A+120]         the final score
    valueTargetsNCHW       Int8[N, 5, L, L]         ownership, seki, stones 8 and 32 turns later, scoring
    qValueTargetsNCMove    Int16[N, 3, A+1]         optional: value, score and visits of every move

Positions may be of any rules that KataGo knows, which the network sees in its inputs.
"""

import math
from pathlib import Path

import numpy as np

from tengen.data.format.archive import HEADER_LIMIT, Archive
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import EXTRAS, UNKNOWN, WEIGHTS, RowFormat, Rows
from tengen.errors import OptionError

PLANES, GLOBALS = 22, 19
TARGETS = 80
CHECKED = ("policy", "opponent_policy")  # fields that `read` has made sure of
FOLDER = "tdata"  # the folder of a network's rows, in selfplay/<network>
_FIRST = "binaryInputNCHWPacked"
_OPTIONAL = {"qValueTargetsNCMove", "metadataInputNC"}  # the latter is in data of people's games
_COLUMNS = (64, TARGETS)  # of formats 2 and 3
_FORMATS = (2, 3)
_SLACK = 1e-3
_BLOCK = 512  # rows whose planes are turned together, so that they stay in the cache
# Columns of globalTargetsNC.
_WIN, _LOSS, _SEARCH_WIN, _SEARCH_LOSS, _SCORE, _HASH, _TURN, _FORMAT = 0, 1, 16, 17, 20, 41, 51, 63
_NO_SEARCH, _ROW, _POLICY, _FINAL, _REPLY, _NO_VALUE = 24, 25, 26, 27, 28, 35  # weights


class OtherRows(OptionError):
    """A good file, but of another format of KataGo."""


def is_katago(archive: Archive) -> bool:
    """Whether a file was written by KataGo, or by its shuffle, whose arrays have names that end in `.npy`."""
    return _FIRST in archive.members or f"{_FIRST}.npy" in archive.members


def shapes(rows: int, side: int, columns: int = TARGETS) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Shape and type of every array."""
    area = side * side
    byte, small, short, single = (np.dtype(kind) for kind in (np.uint8, np.int8, np.int16, np.float32))
    return {
        _FIRST: ((rows, PLANES, (area + 7) // 8), byte),
        "globalInputNC": ((rows, GLOBALS), single),
        "policyTargetsNCMove": ((rows, 2, area + 1), short),
        "globalTargetsNC": ((rows, columns), single),
        "scoreDistrN": ((rows, 2 * area + 120), small),
        "valueTargetsNCHW": ((rows, 5, side, side), small),
        "qValueTargetsNCMove": ((rows, 3, area + 1), short),
    }


def describe(archive: Archive) -> tuple[int, RowFormat, GameIdentity]:
    """How many rows there are, their format and their game. Only headers are read. OptionError if one is wrong."""
    members = {name.removesuffix(".npy"): member for name, member in archive.members.items()}
    if odd := sorted((members.keys() ^ set(shapes(0, 19))) - _OPTIONAL):
        raise OtherRows(f"{odd[0]}: {'an array too many' if odd[0] in members else 'this array is missing'}")
    rows, columns, side = (
        (*archive.header(name)[0], 0, 0, 0)[place]
        for name, place in ((_FIRST, 0), ("globalTargetsNC", 1), ("valueTargetsNCHW", 2))
    )
    if columns not in _COLUMNS:
        raise OtherRows(f"globalTargetsNC: expected {' or '.join(map(str, _COLUMNS))} columns, got {columns}")
    if not 2 <= side <= 19:
        raise OtherRows(f"valueTargetsNCHW: expected boards of 2x2 to 19x19, got {side}x{side}")
    for name, (shape, dtype) in shapes(rows, side, columns).items():
        found = archive.header(name) if name in members else (shape, dtype)
        if found != (shape, dtype):
            raise OptionError(f"{name}: expected {dtype} {list(shape)}, got {found[1]} {list(found[0])}")
        size = math.prod(shape) * dtype.itemsize
        if name in members and not size < members[name].size <= size + HEADER_LIMIT:
            raise OptionError(f"{name}: expected {size} bytes for {rows} rows")
    form = RowFormat((side, side, PLANES), GLOBALS, side * side + 1, (*EXTRAS, WEIGHTS))
    return rows, form, GameIdentity("go", 1, {"size": side, "observation": "katago"}, partial=True)


def network_of(path: Path) -> str:
    """The network whose games are in a file, by the folders: selfplay/<network>/, and in it tdata/ or lc0/."""
    return (path.parent.parent if path.parent.name in (FOLDER, "lc0") else path.parent).name


def read(archive: Archive, rows: int, form: RowFormat) -> Rows:
    """The rows with all fields of `form`, as `describe` gives both. OptionError if a number cannot be right.

    Fields other than those in CHECKED still have to be checked (format/sanity.py).
    """
    side = form.planes_shape[0]
    columns = archive.header("globalTargetsNC")[0][-1]
    wanted = shapes(rows, side, columns)

    def array(name: str) -> np.ndarray:
        return archive.read(name, *wanted[name])

    targets, inputs = array("globalTargetsNC"), array("globalInputNC")
    _check_finite("globalTargetsNC", targets)
    _check_finite("globalInputNC", inputs)
    odd = ~np.isin(targets[:, _FORMAT], _FORMATS)
    if odd.any():
        place = int(odd.argmax())
        raise OtherRows(f"globalTargetsNC: row {place}: expected format 2 or 3, got {targets[place, _FORMAT]:g}")
    weights = targets[:, [_POLICY, _REPLY]]
    policies = _policies(array("policyTargetsNCMove"), weights)
    found = {
        "planes": _planes(array(_FIRST), side),
        "scalars": inputs,
        "policy": policies[:, 0],
        "policy_weight": weights[:, 0],
        "opponent_policy": policies[:, 1],
        "opponent_weight": weights[:, 1],
        "outcome": _outcome(targets),
        "search_value": np.clip(targets[:, _SEARCH_WIN] - targets[:, _SEARCH_LOSS], -1, 1),
        "to_play": (targets[:, _TURN].astype(np.int64) % 2).astype(np.int8),  # KataGo does not write whose turn it is
        "ply": np.clip(targets[:, _TURN], 0, np.iinfo(np.int16).max).astype(np.int16),
        "moves_left": np.full(rows, UNKNOWN, np.int16),
        "weight": targets[:, _ROW],
        "game": games_of(targets),
        "ownership": array("valueTargetsNCHW")[:, 0],
        "score": targets[:, _SCORE],
        "value_weight": 1 - targets[:, _NO_VALUE],
        "search_weight": 1 - targets[:, _NO_SEARCH],
        "final_weight": targets[:, _FINAL],
    }
    return {name: np.ascontiguousarray(found[name], dtype) for name, (_, dtype) in form.fields.items()}


def count_games(archive: Archive, rows: int) -> int:
    """How many different games there are."""
    shape = (rows, archive.header("globalTargetsNC")[0][-1])
    return len(np.unique(games_of(archive.read("globalTargetsNC", shape, np.dtype(np.float32))), axis=0))


def _check_finite(name: str, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise OptionError(f"{name}: row {row}, column {column}: {values[row, column]} is not a finite number")


def _planes(packed: np.ndarray, side: int) -> np.ndarray:
    """UInt8[N, bytes]: the planes as `pack_planes` packs them, all planes of a point together."""
    area = side * side
    found = np.empty((len(packed), (area * PLANES + 7) // 8), np.uint8)
    for begin in range(0, len(packed), _BLOCK):
        bits = np.unpackbits(packed[begin : begin + _BLOCK], axis=2, count=area)
        found[begin : begin + _BLOCK] = np.packbits(bits.transpose(0, 2, 1).reshape(len(bits), -1), axis=1)
    return found


def _policies(targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Float16[N, 2, A]: probabilities, 0 where the weight (Float32[N, 2]) is. OptionError if one that counts is bad."""
    found = np.empty(targets.shape, np.float16)
    for begin in range(0, len(targets), _BLOCK):
        part, weight = targets[begin : begin + _BLOCK], weights[begin : begin + _BLOCK]
        total = part.sum(-1, dtype=np.int32)
        bad = (weight > 0) & ((total <= 0) | (part.min(-1) < 0))
        if bad.any():
            row = begin + int(bad.any(-1).argmax())
            raise OptionError(f"policyTargetsNCMove: row {row}: expected weights of at least 0, not all 0")
        scale = np.where((weight > 0) & (total > 0), 1 / np.maximum(total, 1), 0).astype(np.float32)
        found[begin : begin + _BLOCK] = part * scale[..., None]
    return found


def _outcome(targets: np.ndarray) -> np.ndarray:
    """Float32[N, 3]: win, neither, loss; a game without a result counts as drawn."""
    outcome = targets[:, [_WIN, 2, _LOSS]]
    total = outcome.sum(-1)
    bad = (abs(total - 1) > _SLACK) | (outcome < -_SLACK).any(-1)
    if bad.any():
        place = int(bad.argmax())
        raise OptionError(f"globalTargetsNC: row {place}: expected chances of win, loss and no result that sum to 1")
    return outcome / total[:, None]


def games_of(targets: np.ndarray) -> np.ndarray:
    """UInt32[N, 2]: numbers of the games, half of KataGo's hash."""
    low, middle, high = (targets[:, _HASH + piece].astype(np.uint64) for piece in range(3))
    number = low | middle << np.uint64(22) | high << np.uint64(44)
    return np.stack([number >> np.uint64(32), number & np.uint64(2**32 - 1)], -1).astype(np.uint32)
