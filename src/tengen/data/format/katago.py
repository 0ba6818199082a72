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
from collections.abc import Iterator, Sequence
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
_POINTS = 2**16  # points of the boards that are read together, so that what is computed stays in the cache
# The planes of four points, 88 bits: the first 32 and the last 64 of them, which overlap.
_FOUR = np.dtype({"names": ["head", "tail"], "formats": [">u4", ">u8"], "offsets": [0, 3], "itemsize": 11})
# Columns of globalTargetsNC.
_WIN, _LOSS, _NONE, _SEARCH_WIN, _SEARCH_LOSS, _SCORE, _HASH, _TURN, _FORMAT = 0, 1, 2, 16, 17, 20, 41, 51, 63
_NO_SEARCH, _ROW, _POLICY, _FINAL, _REPLY, _NO_VALUE = 24, 25, 26, 27, 28, 35  # weights
_USED = (0, 1, 2, 16, 17, 20, 24, 25, 26, 27, 28, 35, 41, 42, 43, 51, 63)
Blocks = Iterator[tuple[int, np.ndarray]]
"""The rows of an array, some at a time: the number of the first of them, and they."""


class OtherRows(OptionError):
    """A good file, but of another format of KataGo."""


def is_katago(archive: Archive) -> bool:
    """Whether a file was written by KataGo, or by its shuffle, whose arrays have names that end in `.npy`."""
    return any(name in archive.sizes or f"{name}.npy" in archive.sizes for name in (_FIRST, "globalTargetsNC"))


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
    side, board = _side(archive), form.planes_shape[0]
    wanted = shapes(rows, side, archive.header("globalTargetsNC")[0][-1])

    def blocks(name: str) -> Blocks:
        return archive.blocks(name, *wanted[name], _block(side))

    targets = _columns(blocks("globalTargetsNC"), rows)
    _check_weights(targets)
    inputs = archive.read("globalInputNC", *wanted["globalInputNC"])
    _check_sizes("globalInputNC", 0, inputs)
    outcome = _outcome(targets)
    planes, kept = _planes(blocks(_FIRST), rows, side, board)
    if len(kept) < rows:
        targets = {column: values[kept] for column, values in targets.items()}
        inputs, outcome = inputs[kept], outcome[kept]
    policy, reply = _policies(blocks("policyTargetsNCMove"), targets, kept, side, board)
    found = {
        "planes": planes,
        "scalars": inputs,
        "policy": policy,
        "policy_weight": targets[_POLICY],
        "opponent_policy": reply,
        "opponent_weight": targets[_REPLY],
        "outcome": outcome,
        "search_value": np.clip(targets[_SEARCH_WIN] - targets[_SEARCH_LOSS], -1, 1),
        "to_play": (targets[_TURN].astype(np.int64) % 2).astype(np.int8),  # KataGo does not write whose turn it is
        "ply": np.clip(targets[_TURN], 0, np.iinfo(np.int16).max).astype(np.int16),
        "moves_left": np.full(len(kept), UNKNOWN, np.int16),
        "weight": targets[_ROW],
        "game": _games([targets[_HASH + piece] for piece in range(3)]),
        "ownership": _ownership(blocks("valueTargetsNCHW"), kept, board),
        "score": targets[_SCORE],
        "value_weight": 1 - targets[_NO_VALUE],
        "search_weight": 1 - targets[_NO_SEARCH],
        "final_weight": targets[_FINAL],
    }
    return {name: np.ascontiguousarray(found[name], dtype) for name, (_, dtype) in form.fields.items()}


def reading_bytes(archive: Archive, rows: int) -> int:
    """Bytes that `read` needs besides the rows: a packed array, and a block of one, as bytes if boards are cut out."""
    side = _side(archive)
    return archive.largest_packed + min(rows, _block(side)) * side * side * PLANES


def count_fitting(archive: Archive, rows: int, form: RowFormat) -> int:
    """How many rows `read` gives. Planes are unpacked only if some may be of boards larger than that of `form`."""
    side = _side(archive)
    if side <= form.planes_shape[0]:
        return rows
    count = 0
    for begin, block in archive.blocks(_FIRST, *shapes(rows, side)[_FIRST], _block(side)):
        _check_boards(block, begin)
        count += int(_fitting(block, side, form.planes_shape[0]).sum())
    return count


def count_games(archive: Archive, rows: int) -> int:
    shape = (rows, archive.header("globalTargetsNC")[0][-1])
    return distinct_games(games_of(archive.read("globalTargetsNC", shape, np.dtype(np.float32))))


def _check_sizes(name: str, begin: int, values: np.ndarray) -> None:
    """OptionError if one of these rows, the first of which is number `begin`, has a number that is too large or NaN."""
    if not (values.min(initial=0) >= -LARGEST and values.max(initial=0) <= LARGEST):
        row, column = np.argwhere(~(abs(values) <= LARGEST))[0]
        raise OptionError(f"{name}: row {begin + row}, column {column}: {values[row, column]:g} is no possible number")


def _columns(blocks: Blocks, rows: int) -> dict[int, np.ndarray]:
    """The columns of globalTargetsNC that are used, Float32[N] each. OptionError for impossible numbers."""
    found = {column: np.empty(rows, np.float32) for column in _USED}
    for begin, block in blocks:
        _check_sizes("globalTargetsNC", begin, block)
        for column, values in found.items():
            values[begin : begin + len(block)] = block[:, column]
    odd = ~np.isin(found[_FORMAT], _FORMATS)
    if odd.any():
        row = int(odd.argmax())
        raise OtherRows(f"globalTargetsNC: row {row}: expected format 2 or 3, got {found[_FORMAT][row]:g}")
    return found


def _check_weights(targets: dict[int, np.ndarray]) -> None:
    for column in (_NO_SEARCH, _ROW, _POLICY, _FINAL, _REPLY, _NO_VALUE):
        weights, most = targets[column], 1 if column in (_NO_SEARCH, _NO_VALUE) else LARGEST
        bad = (weights < 0) | (weights > most)
        if bad.any():
            row = int(bad.argmax())
            raise OptionError(
                f"globalTargetsNC: row {row}, column {column}: expected a weight from 0 to {most:g}, "
                f"got {weights[row]:g}"
            )


def _ownership(blocks: Blocks, kept: np.ndarray, board: int) -> np.ndarray:
    """Int8[N, board, board]: the first plane of valueTargetsNCHW, of the rows that are kept."""
    found, at = np.empty((len(kept), board, board), np.int8), 0
    for begin, block in blocks:
        owners = block[:, 0]
        if owners.min() < -1 or owners.max() > 1:
            row = begin + int((abs(owners.astype(np.int16)) > 1).any((1, 2)).argmax())
            raise OptionError(f"valueTargetsNCHW: row {row}: expected ownership of -1, 0 or 1")
        chosen = _chosen(owners, begin, kept)[:, :board, :board]
        found[at : at + len(chosen)] = chosen
        at += len(chosen)
    return found


def _chosen(block: np.ndarray, begin: int, kept: np.ndarray) -> np.ndarray:
    """The rows of a block that are kept; `kept` are their numbers in the file, in order."""
    first, last = np.searchsorted(kept, (begin, begin + len(block)))
    return block if last - first == len(block) else block[kept[first:last] - begin]


def _side(archive: Archive) -> int:
    return archive.header("valueTargetsNCHW")[0][-1]


def _block(side: int) -> int:
    """Rows that are read together, with boards of that side."""
    return _POINTS // side**2


def _check_boards(packed: np.ndarray, begin: int) -> None:
    """OptionError if plane 0, which marks the board, is empty in a row, the first of which is number `begin`."""
    if (packed[:, 0, 0] >= 128).all():  # boards lie in the top left corner; looking at one byte of a row is faster
        return
    empty = ~packed[:, 0].any(-1)
    if empty.any():
        raise OptionError(f"{_FIRST}: row {begin + int(empty.argmax())}: expected a board in plane 0, which is empty")


def _fitting(packed: np.ndarray, side: int, board: int) -> np.ndarray:
    """Bool[N]: which positions lie on boards of at most `board` x `board` points. Plane 0 marks the board."""
    outside = np.ones((side, side), bool)
    outside[:board, :board] = False
    return np.logical_not((packed[:, 0] & np.packbits(outside)).any(-1))


def _cropped(packed: np.ndarray, side: int, board: int) -> np.ndarray:
    """The top left corner of all planes, `board` x `board` points."""
    bits = np.unpackbits(packed, axis=2, count=side * side).reshape(len(packed), PLANES, side, side)
    return np.packbits(bits[:, :, :board, :board].reshape(len(packed), PLANES, board * board), axis=2)


def _planes(blocks: Blocks, rows: int, side: int, board: int) -> tuple[np.ndarray, np.ndarray]:
    """UInt8[N, bytes] and Int64[N]: the planes as `pack_planes` packs them, all planes of a point together, of the rows
    on boards of at most `board` x `board` points, and the numbers of these rows."""
    area = board * board
    count, at = (area * PLANES + 7) // 8, 0
    found, kept = np.empty((rows, count), np.uint8), np.arange(rows)
    turn = _Turn(min(rows, _block(side)), (area + 7) // 8)
    for begin, block in blocks:
        _check_boards(block, begin)
        if board < side:
            fitting = np.flatnonzero(_fitting(block, side, board))
            kept[at : at + len(fitting)] = begin + fitting
            block = _cropped(block[fitting], side, board)
        found[at : at + len(block)] = turn(block)[:, :count]
        at += len(block)
    found[:, -1] &= 256 - (1 << (8 * count - area * PLANES))  # what is left over is no point
    return (found, kept) if at == rows else (found[:at].copy(), kept[:at])


class _Turn:
    """Turns the bits of 22 planes (UInt8[N, 22, W]) so that those of each of the 8 W points are together.

    Eight points in eight planes are an 8x8 matrix of bits in one UInt64, which is transposed by three swaps. That takes
    a third of the time of `unpackbits` and `packbits`, as long as no new memory is used.
    """

    def __init__(self, rows: int, width: int) -> None:
        """For at most so many rows at a time."""
        self._planes = np.zeros((rows, width, 24), np.uint8)
        self._bits, self._swapped = np.empty((2, rows, width, 3), "<u8")
        self._squares = np.empty((3, rows, width), "<u8")
        self._halves = np.empty((rows, 8 * width), np.uint16)
        self._points = np.empty((rows, 8 * width), "<u4")
        self._pairs = np.empty((rows, 4 * width), np.uint64)
        self._found = np.empty((rows, 2 * width), _FOUR)

    def __call__(self, packed: np.ndarray) -> np.ndarray:
        """UInt8[N, 22 W], valid until the next call."""
        rows = len(packed)
        planes, bits, swapped = self._planes[:rows], self._bits[:rows], self._swapped[:rows]
        planes[:, :, :PLANES] = packed.transpose(0, 2, 1)
        before = planes.view("<u8")
        for shift, mask in ((9, 0x0055005500550055), (18, 0x0000333300003333), (36, 0x000000000F0F0F0F)):
            np.right_shift(before, np.uint64(shift), out=swapped)
            swapped ^= before
            swapped &= np.uint64(mask)
            np.bitwise_xor(before, swapped, out=bits)
            swapped <<= np.uint64(shift)
            before = bits
            if shift < 36:
                bits ^= swapped
        for group, square in enumerate(self._squares):
            np.bitwise_xor(bits[..., group], swapped[..., group], out=square[:rows])
        first, second, third = self._squares[:, :rows].view(np.uint8)
        halves, points, pairs = self._halves[:rows], self._points[:rows], self._pairs[:rows]
        halves[:] = first
        halves <<= np.uint16(8)
        halves |= second
        third >>= np.uint8(2)
        points[:] = halves
        points <<= np.uint32(6)
        points |= third  # 22 bits
        two = points.view("<u8")  # the first of them is the lower half
        np.right_shift(two, np.uint64(32), out=pairs)
        two <<= np.uint64(32)
        two >>= np.uint64(10)
        pairs |= two
        head, tail, found = pairs[:, 0::2], pairs[:, 1::2], self._found[:rows]
        tail |= head << np.uint64(44)
        found["tail"] = tail
        head >>= np.uint64(12)
        found["head"] = head
        return found.view(np.uint8)


def _policies(blocks: Blocks, targets: dict[int, np.ndarray], kept: np.ndarray, side: int, board: int) -> np.ndarray:
    """Float16[2, N, A]: probabilities of the rows that are kept, 0 where the weight is.

    OptionError if a policy whose weight is not 0 cannot be right.
    """
    area = board * board
    found, at = np.empty((2, len(kept), area + 1), np.uint16), 0
    used = np.stack([targets[_POLICY], targets[_REPLY]], -1) > 0
    memory = np.empty((min(_block(side), len(kept)), 2, area + 1), np.float32)
    for begin, block in blocks:
        chosen = _chosen(block, begin, kept)
        if board < side:
            points = chosen[:, :, :-1].reshape(len(chosen), 2, side, side)[:, :, :board, :board]
            chosen = np.concatenate([points.reshape(len(chosen), 2, area), chosen[:, :, -1:]], axis=2)
        here = slice(at, at + len(chosen))
        at = here.stop
        shares = memory[: len(chosen)]
        shares[:] = chosen
        total = np.einsum("nca->nc", shares)  # exact: less than 2**24
        bad = used[here] & ((total <= 0) | (chosen.min(initial=0) < 0 and chosen.min(-1) < 0))
        if bad.any():
            row = kept[here][int(bad.any(-1).argmax())]
            raise OptionError(f"policyTargetsNCMove: row {row}: expected weights of at least 0, not all 0")
        # Rounding to half precision in a third of NumPy's time: with 2**-112 the exponents of both formats agree.
        shares *= np.where(used[here], 2.0**-112 / np.maximum(total, 1), 0).astype(np.float32)[..., None]
        halves = shares.view(np.uint32)
        halves += np.uint32(2**12)
        halves >>= np.uint32(13)
        found[:, here] = halves.swapaxes(0, 1)
    return found.view(np.float16)


def _outcome(targets: dict[int, np.ndarray]) -> np.ndarray:
    """Float32[N, 3]: win, neither, loss; a game without a result counts as drawn."""
    chances = [targets[_WIN], targets[_NONE], targets[_LOSS]]
    total = sum(chances)
    bad = (abs(total - 1) > _SLACK) | (np.minimum.reduce(chances) < -_SLACK)
    if bad.any():
        place = int(bad.argmax())
        raise OptionError(f"globalTargetsNC: row {place}: expected chances of win, loss and no result that sum to 1")
    return np.stack([chance / total for chance in chances], -1)


def games_of(targets: np.ndarray) -> np.ndarray:
    """UInt32[N, 2]: numbers of the games, half of KataGo's hash."""
    return _games([targets[:, _HASH + piece] for piece in range(3)])


def _games(pieces: Sequence[np.ndarray]) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # numbers that do not fit are found elsewhere
        low, middle, high = (piece.astype(np.int64).view(np.uint64) for piece in pieces)
    number = low | middle << np.uint64(22) | high << np.uint64(44)
    return np.stack([number >> np.uint64(32), number & np.uint64(2**32 - 1)], -1).astype(np.uint32)
