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
from tengen.data.format.rows import count_games as distinct_games
from tengen.data.format.sanity import LARGEST
from tengen.errors import OptionError

PLANES, GLOBALS = 22, 19
TARGETS = 80
FOLDER = "tdata"  # the folder of a network's rows, in selfplay/<network>
_FIRST = "binaryInputNCHWPacked"
UNREAD = {"scoreDistrN", "qValueTargetsNCMove"}  # arrays that nothing is learned from
_OPTIONAL = {"qValueTargetsNCMove", "metadataInputNC"}  # the latter is in data of people's games
_COLUMNS = (64, TARGETS)  # of formats 2 and 3
_FORMATS = (2, 3)
_SLACK = 1e-3
_BLOCK = 512  # rows that are turned together, so that they stay in the cache
_FOUR = np.dtype([("start", ">u8"), ("middle", ">u2"), ("end", "u1")])  # the planes of four points, 11 bytes
# Columns of globalTargetsNC.
_WIN, _LOSS, _SEARCH_WIN, _SEARCH_LOSS, _SCORE, _HASH, _TURN, _FORMAT = 0, 1, 16, 17, 20, 41, 51, 63
_NO_SEARCH, _ROW, _POLICY, _FINAL, _REPLY, _NO_VALUE = 24, 25, 26, 27, 28, 35  # weights


class OtherRows(OptionError):
    """A good file, but of another format of KataGo."""


def is_katago(archive: Archive) -> bool:
    """Whether a file was written by KataGo, or by its shuffle, whose arrays have names that end in `.npy`."""
    return _FIRST in archive.sizes or f"{_FIRST}.npy" in archive.sizes


def shapes(rows: int, side: int, columns: int = TARGETS) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
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


def describe(archive: Archive, board: int | None = None) -> tuple[int, RowFormat, GameIdentity]:
    """How many rows there are, their format and their game. Only headers are read. OptionError if one is wrong.

    With `board`, rows are those of games on boards of at most that side, whatever KataGo's `dataBoardLen` was.
    """
    sizes = {name.removesuffix(".npy"): size for name, size in archive.sizes.items()}
    if odd := sorted((sizes.keys() ^ set(shapes(0, 19))) - _OPTIONAL):
        raise OtherRows(f"{odd[0]}: {'an array too many' if odd[0] in sizes else 'this array is missing'}")
    rows, columns, side = (
        (*archive.header(name)[0], 0, 0, 0)[place]
        for name, place in ((_FIRST, 0), ("globalTargetsNC", 1), ("valueTargetsNCHW", 2))
    )
    if columns not in _COLUMNS:
        raise OtherRows(f"globalTargetsNC: expected {' or '.join(map(str, _COLUMNS))} columns, got {columns}")
    if not 2 <= side <= 19:
        raise OtherRows(f"valueTargetsNCHW: expected boards of 2x2 to 19x19, got {side}x{side}")
    for name, (shape, dtype) in shapes(rows, side, columns).items():
        if name not in sizes:
            continue
        found = archive.header(name)
        if found != (shape, dtype):
            raise OptionError(f"{name}: expected {dtype} {list(shape)}, got {found[1]} {list(found[0])}")
        size = math.prod(shape) * dtype.itemsize
        if not size < sizes[name] <= size + HEADER_LIMIT:
            raise OptionError(f"{name}: expected {size} bytes for {rows} rows")
    side = min(side, board or side)
    form = RowFormat((side, side, PLANES), GLOBALS, side * side + 1, (*EXTRAS, WEIGHTS))
    return rows, form, GameIdentity("go", 1, {"size": side, "observation": "katago"}, partial=True)


def network_of(path: Path) -> str:
    """The network whose games are in a file, by the folders: selfplay/<network>/, and in it tdata/ or lc0/."""
    return (path.parent.parent if path.parent.name in (FOLDER, "lc0") else path.parent).name


def read(archive: Archive, rows: int, form: RowFormat) -> Rows:
    """The rows with all fields of `form`, as `describe` gives both. OptionError if a number cannot be right.

    Rows on boards larger than that of `form` are left out. All numbers are checked here, where their place in the file
    is known, so rows need not pass `format/sanity.py` as well.
    """
    columns = archive.header("globalTargetsNC")[0][-1]
    wanted, board = shapes(rows, _side(archive), columns), form.planes_shape[0]

    def array(name: str) -> np.ndarray:
        return archive.read(name, *wanted[name])

    targets, inputs = array("globalTargetsNC"), array("globalInputNC")
    _check_sizes("globalTargetsNC", targets)
    _check_sizes("globalInputNC", inputs)
    odd = ~np.isin(targets[:, _FORMAT], _FORMATS)
    if odd.any():
        place = int(odd.argmax())
        raise OtherRows(f"globalTargetsNC: row {place}: expected format 2 or 3, got {targets[place, _FORMAT]:g}")
    _check_weights(targets)
    outcome, weights = _outcome(targets), targets[:, [_POLICY, _REPLY]]
    packed, policies = array(_FIRST), array("policyTargetsNCMove")
    _check_boards(packed)
    kept = np.arange(rows)
    ownership = array("valueTargetsNCHW")[:, 0].copy()  # the other planes are not kept
    _check_ownership(ownership)
    if board < _side(archive):
        kept = np.flatnonzero(_fitting(packed, _side(archive), board))
        packed, policies = _cropped(packed[kept], board, policies[kept])
        ownership = ownership[kept, :board, :board]
        outcome, weights, targets, inputs = outcome[kept], weights[kept], targets[kept], inputs[kept]
    policy, reply = _policies(policies, weights, kept)
    found = {
        "planes": _planes(packed, board),
        "scalars": inputs,
        "policy": policy,
        "policy_weight": weights[:, 0],
        "opponent_policy": reply,
        "opponent_weight": weights[:, 1],
        "outcome": outcome,
        "search_value": np.clip(targets[:, _SEARCH_WIN] - targets[:, _SEARCH_LOSS], -1, 1),
        "to_play": (targets[:, _TURN].astype(np.int64) % 2).astype(np.int8),  # KataGo does not write whose turn it is
        "ply": np.clip(targets[:, _TURN], 0, np.iinfo(np.int16).max).astype(np.int16),
        "moves_left": np.full(len(targets), UNKNOWN, np.int16),
        "weight": targets[:, _ROW],
        "game": games_of(targets),
        "ownership": ownership,
        "score": targets[:, _SCORE],
        "value_weight": 1 - targets[:, _NO_VALUE],
        "search_weight": 1 - targets[:, _NO_SEARCH],
        "final_weight": targets[:, _FINAL],
    }
    return {name: np.ascontiguousarray(found[name], dtype) for name, (_, dtype) in form.fields.items()}


def reading_bytes(archive: Archive, rows: int) -> int:
    """Bytes of the arrays that `read` unpacks, for boards of KataGo's largest side; it needs up to twice as many.

    One block of rows counts twice, for what is computed on the way.
    """
    columns = archive.header("globalTargetsNC")[0][-1]
    found = shapes(rows + min(rows, _BLOCK), _side(archive), columns)
    return sum(math.prod(shape) * dtype.itemsize for name, (shape, dtype) in found.items() if name not in UNREAD)


def count_fitting(archive: Archive, rows: int, form: RowFormat) -> int:
    """How many rows `read` gives. Planes are unpacked only if some may be of boards larger than that of `form`."""
    side = _side(archive)
    if side <= form.planes_shape[0]:
        return rows
    packed = archive.read(_FIRST, *shapes(rows, side)[_FIRST])
    _check_boards(packed)
    return int(_fitting(packed, side, form.planes_shape[0]).sum())


def count_games(archive: Archive, rows: int) -> int:
    shape = (rows, archive.header("globalTargetsNC")[0][-1])
    return distinct_games(games_of(archive.read("globalTargetsNC", shape, np.dtype(np.float32))))


def _check_sizes(name: str, values: np.ndarray) -> None:
    if not (values.min(initial=0) >= -LARGEST and values.max(initial=0) <= LARGEST):  # nor are numbers that are NaN
        row, column = np.argwhere(~(abs(values) <= LARGEST))[0]
        raise OptionError(f"{name}: row {row}, column {column}: {values[row, column]:g} is no possible number")


def _check_weights(targets: np.ndarray) -> None:
    columns = np.array([_NO_SEARCH, _ROW, _POLICY, _FINAL, _REPLY, _NO_VALUE])
    most = np.where((columns == _NO_SEARCH) | (columns == _NO_VALUE), 1, LARGEST)
    weights = targets[:, columns]
    bad = (weights < 0) | (weights > most)
    if bad.any():
        row, place = np.argwhere(bad)[0]
        raise OptionError(
            f"globalTargetsNC: row {row}, column {columns[place]}: expected a weight from 0 to {most[place]:g}, "
            f"got {weights[row, place]:g}"
        )


def _check_ownership(ownership: np.ndarray) -> None:
    if ownership.min(initial=0) < -1 or ownership.max(initial=0) > 1:
        row = int((abs(ownership.astype(np.int16)) > 1).any((1, 2)).argmax())
        raise OptionError(f"valueTargetsNCHW: row {row}: expected ownership of -1, 0 or 1")


def _side(archive: Archive) -> int:
    """Points along a side of KataGo's largest board, `dataBoardLen`."""
    return archive.header("valueTargetsNCHW")[0][-1]


def _check_boards(packed: np.ndarray) -> None:
    """OptionError if plane 0, which marks the board, is empty in a row."""
    empty = ~packed[:, 0].any(-1)
    if empty.any():
        raise OptionError(f"{_FIRST}: row {int(empty.argmax())}: expected a board in plane 0, which is empty")


def _fitting(packed: np.ndarray, side: int, board: int) -> np.ndarray:
    """Bool[N]: which positions lie on boards of at most `board` x `board` points. Plane 0 marks the board."""
    outside = np.ones((side, side), bool)
    outside[:board, :board] = False
    return np.logical_not((packed[:, 0] & np.packbits(outside)).any(-1))


def _cropped(packed: np.ndarray, board: int, policies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Planes and policies for the top left corner, `board` x `board` points."""
    side, area = math.isqrt(policies.shape[2]), board * board
    found = np.empty((len(packed), PLANES, (area + 7) // 8), np.uint8)
    for begin in range(0, len(packed), _BLOCK):
        bits = np.unpackbits(packed[begin : begin + _BLOCK], axis=2, count=side * side)
        corner = bits.reshape(-1, PLANES, side, side)[:, :, :board, :board]
        found[begin : begin + _BLOCK] = np.packbits(corner.reshape(-1, PLANES, area), axis=2)
    points = policies[:, :, :-1].reshape(-1, 2, side, side)[:, :, :board, :board]
    return found, np.concatenate([points.reshape(-1, 2, area), policies[:, :, -1:]], axis=2)


def _planes(packed: np.ndarray, side: int) -> np.ndarray:
    """UInt8[N, bytes]: the planes as `pack_planes` packs them, all planes of a point together."""
    count = (side * side * PLANES + 7) // 8
    found = np.empty((len(packed), count), np.uint8)
    for begin in range(0, len(packed), _BLOCK):
        found[begin : begin + _BLOCK] = _by_point(packed[begin : begin + _BLOCK])[:, :count]
    found[:, -1] &= 256 - (1 << (8 * count - side * side * PLANES))  # what is left over is no point
    return found


def _by_point(packed: np.ndarray) -> np.ndarray:
    """UInt8[N, bytes]: the bits of 22 planes (UInt8[N, 22, P/8]) with those of each of the P points together.

    Eight points in eight planes are an 8x8 matrix of bits in one UInt64, which is transposed by three swaps. That takes
    half the time of `unpackbits` and `packbits`.
    """
    rows, _, width = packed.shape
    squares = np.zeros((3, rows, width, 8), np.uint8)
    for group in range(3):
        part = packed[:, 8 * group : 8 * group + 8].transpose(0, 2, 1)
        squares[group, ..., : part.shape[2]] = part
    bits = squares.view("<u8")
    for shift, mask in ((9, 0x0055005500550055), (18, 0x0000333300003333), (36, 0x000000000F0F0F0F)):
        swapped = bits >> np.uint64(shift)
        swapped ^= bits
        swapped &= np.uint64(mask)
        bits ^= swapped
        swapped <<= np.uint64(shift)
        bits ^= swapped
    first, second, third = squares.reshape(3, rows, -1, 4).astype(np.uint32)
    point = first << np.uint32(14) | second << np.uint32(6) | third >> np.uint32(2)  # 22 bits
    one, two, three, four = (point[..., place].astype(np.uint64) for place in range(4))
    found = np.empty((rows, point.shape[1]), _FOUR)
    found["start"] = one << np.uint64(42) | two << np.uint64(20) | three >> np.uint64(2)
    rest = three << np.uint64(22) | four
    found["middle"], found["end"] = rest >> np.uint64(8), rest
    return found.view(np.uint8).reshape(rows, -1)


def _policies(targets: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Float16[2, N, A]: probabilities, 0 where the weight (Float32[N, 2]) is; `rows` are their numbers in the file.

    OptionError if a policy whose weight is not 0 cannot be right.
    """
    found = np.empty((2, len(targets), targets.shape[2]), np.uint16)
    ones = np.ones(targets.shape[2], np.float32)
    for begin in range(0, len(targets), _BLOCK):
        shares, used = targets[begin : begin + _BLOCK].astype(np.float32), weights[begin : begin + _BLOCK] > 0
        total = shares @ ones  # exact: less than 2**24
        bad = used & ((total <= 0) | (shares.min() < 0 and shares.min(-1) < 0))
        if bad.any():
            row = rows[begin + int(bad.any(-1).argmax())]
            raise OptionError(f"policyTargetsNCMove: row {row}: expected weights of at least 0, not all 0")
        # Rounding to half precision in a third of NumPy's time: with 2**-112 the exponents of both formats agree.
        shares *= np.where(used, 2.0**-112 / np.maximum(total, 1), 0).astype(np.float32)[..., None]
        halves = shares.view(np.uint32)
        halves += np.uint32(2**12)
        halves >>= np.uint32(13)
        found[:, begin : begin + _BLOCK] = halves.swapaxes(0, 1)
    return found.view(np.float16)


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
    with np.errstate(invalid="ignore"):  # numbers that do not fit are found elsewhere
        low, middle, high = (targets[:, _HASH + piece].astype(np.int64).view(np.uint64) for piece in range(3))
    number = low | middle << np.uint64(22) | high << np.uint64(44)
    return np.stack([number >> np.uint64(32), number & np.uint64(2**32 - 1)], -1).astype(np.uint32)
