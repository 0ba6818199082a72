"""KataGo's network files (`.bin.gz`): reading and writing, as plain data.

A file is one stream of tokens separated by white space. A block of numbers is `@BIN@` and then float32 in
little-endian order; in a text file (`.txt`) the numbers are written out. Versions 8 to 17 are supported.
"""

import re
from pathlib import Path

import numpy as np

from tengen.errors import TengenError
from tengen.files import packed
from tengen.interop.katago.model import (
    MULTIPLIERS,
    AnyBlock,
    AttentionWeights,
    ConvWeights,
    GatedWeights,
    KataGoModel,
    NestedBottleneck,
    NormWeights,
    OrdinaryBlock,
    PolicyWeights,
    PoolBlock,
    RmsNormWeights,
    ValueWeights,
)
from tengen.interop.katago.model_writer import GLOBALS, MARK, PLANES, ModelWriter
from tengen.schema import quote

VERSIONS = range(8, 18)
_MOST_NUMBERS = 2**28  # of one layer
_LONGEST_TOKEN = 1000
_DEEPEST = 8  # blocks in blocks; KataGo's networks have one or two levels
_BLOCKS = ("ordinary_block", "gpool_block", "nested_bottleneck_block", "transformer_attention_block",
           "transformer_ffn_block")  # fmt: skip
_ACTIVATIONS = {"ACTIVATION_IDENTITY": "identity", "ACTIVATION_RELU": "relu", "ACTIVATION_MISH": "mish",
                "ACTIVATION_SILU": "silu"}  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_-]{1,96}")


def read(path: Path | str) -> KataGoModel:
    """The network in a file. Raises TengenError, with the place in the file, if it is damaged or not supported."""
    path = Path(path)
    return _Reader(path, packed.read(path, "network of KataGo")).model()


class _Reader:
    """Reads tokens and layers from the start of the data to its end."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path, self._data, self._at = path, data, 0
        self._version = 0
        self._is_text = MARK not in data[: 1 << 16]

    def model(self) -> KataGoModel:
        name = self._token("the network's name")
        self._version = version = self._number("the version")
        if version not in VERSIONS:
            what = "it is newer than this Tengen knows" if version > VERSIONS[-1] else "it is too old"
            raise self._error(f"version {version}: {what}, expected a version from {VERSIONS[0]} to {VERSIONS[-1]}")
        for expected, what in ((PLANES, "planes"), (GLOBALS, "global inputs")):
            if (found := self._number(what)) != expected:
                raise self._error(f"expected {expected} {what}, got {found}: another version of KataGo's inputs")
        multipliers, areas_by_suicide = MULTIPLIERS, False
        if version >= 13:
            multipliers = tuple(self._real("a multiplier") for _ in MULTIPLIERS)
        if version >= 15:
            if self._number("the version of the metadata encoder"):
                raise self._error("networks with metadata inputs, as of human play, are not supported")
            areas_by_suicide = bool(self._number("how pass-alive areas are computed", 0, 1))
            self._zeros(6)
        self._token("the trunk's name")
        count, channels = self._number("the number of blocks", 1, 1000), self._number("the trunk's channels", 1, 65536)
        for _ in range(4):
            self._number("channels")
        by_square = 0
        if version >= 15:
            by_square = self._number("the kind of the trunk's norms", 0, 1)
            self._zeros(5)
        stem, from_globals = self._conv(PLANES, channels), self._matrix(GLOBALS, channels)
        blocks = tuple(self._block(channels) for _ in range(count))
        tip, tip_activation = self._square_norm(channels) if by_square else self._norm(channels), self._activation()
        policy, value = self._policy(channels), self._value(channels)
        if self._data[self._at :].strip():
            raise self._error("the network is complete here, but the file goes on")
        layers = stem, from_globals, blocks, tip, tip_activation, policy, value
        return KataGoModel(name, version, *layers, multipliers, areas_by_suicide)

    def _block(self, channels: int, depth: int = 0) -> AnyBlock:
        kind = self._token("the kind of a block")
        self._token("the block's name")
        if kind == "ordinary_block":
            first, second = self._step(channels), None
            second = self._step(first[2].kernel.shape[3], channels)
            return OrdinaryBlock((first[0], second[0]), (first[2], second[2]), (first[1], second[1]))
        if kind == "gpool_block":
            return self._pool_block(channels)
        if kind == "nested_bottleneck_block":
            count = self._number("the number of inner blocks", 1, 100)
            down = self._step(channels)
            inside = down[2].kernel.shape[3]
            if depth == _DEEPEST:
                raise self._error(f"blocks in blocks, more than {_DEEPEST} deep")
            blocks = tuple(self._block(inside, depth + 1) for _ in range(count))
            up = self._step(inside, channels)
            return NestedBottleneck((down[0], up[0]), (down[2], up[2]), (down[1], up[1]), blocks)
        if kind == "transformer_attention_block":
            return self._attention(channels)
        if kind == "transformer_ffn_block":
            return self._gated(channels)
        raise self._error(f"a block of the kind {quote(kind)} is not supported, expected one of {', '.join(_BLOCKS)}")

    def _step(self, inputs: int, outputs: int | None = None) -> tuple[NormWeights, str, ConvWeights]:
        return self._norm(inputs), self._activation(), self._conv(inputs, outputs)

    def _pool_block(self, channels: int) -> PoolBlock:
        norm, before = self._norm(channels), self._activation()
        regular, pooled = self._conv(channels), self._conv(channels)
        kept, summed = regular.kernel.shape[3], pooled.kernel.shape[3]
        pooled_norm, of_pool = self._norm(summed), self._activation()
        to_bias = self._matrix(3 * summed, kept)
        second_norm, between = self._norm(kept), self._activation()
        second = self._conv(kept, channels)
        kinds = (before, of_pool, between)
        return PoolBlock(norm, regular, pooled, pooled_norm, to_bias, second_norm, second, kinds)

    def _attention(self, channels: int) -> AttentionWeights:
        heads, kv_heads = (self._number(what, 1, 1024) for what in ("the heads", "the heads of keys and values"))
        key, value = (self._number(f"the width of a {what}", 1, 4096) for what in ("key", "value"))
        turns, learned = (self._number("a flag of the attention", 0, 1) for _ in range(2))
        if heads % kv_heads:
            raise self._error(f"{heads} heads cannot share {kv_heads} of keys and values")
        if turns and key % 2:
            raise self._error(f"expected keys of an even width, which are turned by their place, got {key}")
        norm = self._point_norm(channels)
        query, keys = self._matrix(channels, heads * key), self._matrix(channels, kv_heads * key)
        values, out = self._matrix(channels, kv_heads * value), self._matrix(heads * value, channels)
        place: np.ndarray | float | None = None
        if turns and learned:
            name, shape = self._token("a name"), (kv_heads, key // 2, 2)
            if (found := tuple(self._number(f"the shape of {name}") for _ in range(3))) != shape:
                raise self._error(f"{name}: has the shape {found}, expected {shape}")
            place = self._numbers(name, *shape)
        elif turns:
            place = self._real(f"{self._token('a name')}, the base of the angles")
            if not 1 <= place <= 1e6:
                raise self._error(f"expected a base of the angles from 1 to 1,000,000, got {place:g}")
        return AttentionWeights(norm, query, keys, values, out, heads, kv_heads, place)

    def _gated(self, channels: int) -> GatedWeights:
        self._check_inputs("dense layers", self._number("the channels of dense layers", 1, 65536), channels)
        width = self._number("their hidden units", 1, 65536)
        if not self._number("whether they have a gate", 0, 1):
            raise self._error("dense layers without a gate are not supported, nor by KataGo itself")
        norm, first = self._point_norm(channels), self._matrix(channels, width)
        return GatedWeights(norm, first, self._matrix(channels, width), self._matrix(width, channels))

    def _policy(self, channels: int) -> PolicyWeights:
        self._token("the policy head's name")
        outputs = 4 if self._version == 16 else 2 if self._version >= 12 else 1
        if self._version >= 17:
            outputs = self._number("the number of policies", 2, 4)
            if outputs == 3:
                raise self._error("expected 2 or 4 policies, got 3")
            self._zeros(3)
        regular, pooled = self._conv(channels), self._conv(channels)
        kept, summed = regular.kernel.shape[3], pooled.kernel.shape[3]
        pooled_norm, of_pool = self._norm(summed), self._activation()
        to_bias = self._matrix(3 * summed, kept)
        norm, last = self._norm(kept), self._activation()
        points = self._conv(kept, outputs)
        kinds: tuple[str, ...] = (of_pool, last)
        if self._version < 15:
            return PolicyWeights(
                regular, pooled, pooled_norm, to_bias, norm, points, (self._matrix(3 * summed, outputs),), kinds
            )
        first = self._matrix(3 * summed)
        bias = self._bias(first.shape[1])
        kinds = (*kinds, self._activation())
        passes = (first, bias, self._matrix(first.shape[1], outputs))
        return PolicyWeights(regular, pooled, pooled_norm, to_bias, norm, points, passes, kinds)

    def _value(self, channels: int) -> ValueWeights:
        self._token("the value head's name")
        self._zeros(3 if self._version >= 17 else 0)
        conv = self._conv(channels)
        width = conv.kernel.shape[3]
        norm, first = self._norm(width), self._activation()
        hidden = self._matrix(3 * width)
        units = hidden.shape[1]
        bias, second = self._bias(units), self._activation()
        value = self._matrix(units, 3), self._bias(3)
        scores = 4 if self._version == 8 else 6
        score = self._matrix(units, scores), self._bias(scores)
        return ValueWeights(conv, norm, (hidden, bias), value, score, self._conv(width, 1), (first, second))

    def _conv(self, inputs: int, outputs: int | None = None) -> ConvWeights:
        name = self._token("a convolution's name")
        shape = tuple(self._number(f"the shape of {name}", 1, 65536) for _ in range(4))
        for what in ("vertical", "horizontal"):
            if self._number(f"the {what} dilation of {name}") != 1:
                raise self._error(f"{name}: dilated convolutions are not supported")
        if shape[0] != shape[1] or shape[0] % 2 == 0:
            raise self._error(f"{name}: expected a square kernel with an odd side, got {shape[0]} x {shape[1]}")
        self._check_inputs(name, shape[2], inputs)
        self._check_outputs(name, shape[3], outputs)
        return ConvWeights(self._numbers(name, *shape))

    def _matrix(self, inputs: int, outputs: int | None = None) -> np.ndarray:
        name = self._token("a layer's name")
        shape = self._number(f"the inputs of {name}", 1, 10**6), self._number(f"the outputs of {name}", 1, 65536)
        self._check_inputs(name, shape[0], inputs)
        self._check_outputs(name, shape[1], outputs)
        return self._numbers(name, *shape)

    def _bias(self, size: int) -> np.ndarray:
        name = self._token("a bias's name")
        self._check_inputs(name, self._number(f"the size of {name}", 1, 65536), size)
        return self._numbers(name, size)

    def _norm(self, channels: int) -> NormWeights:
        name, epsilon = self._head_of_norm(channels)
        has_scale, has_bias = (self._number(f"a flag of {name}", 0, 1) for _ in range(2))
        mean, variance = self._numbers(name, channels), self._numbers(name, channels)
        if (variance + np.float64(epsilon) <= 0).any():
            raise self._error(f"{name}: a variance is not positive")
        scale = self._numbers(name, channels) if has_scale else np.ones(channels, np.float32)
        bias = self._numbers(name, channels) if has_bias else np.zeros(channels, np.float32)
        return NormWeights(mean, variance, scale, bias, epsilon)

    def _point_norm(self, channels: int) -> RmsNormWeights:
        name, epsilon = self._head_of_norm(channels)
        return RmsNormWeights(self._numbers(name, channels), None, epsilon)

    def _square_norm(self, channels: int) -> RmsNormWeights:
        name, epsilon = self._head_of_norm(channels)
        of_board = self._number(f"a flag of {name}", 0, 1)
        self._zeros(1)
        return RmsNormWeights(self._numbers(name, channels), self._numbers(name, channels), epsilon, bool(of_board))

    def _head_of_norm(self, channels: int) -> tuple[str, float]:
        name = self._token("a norm's name")
        self._check_inputs(name, self._number(f"the channels of {name}", 1, 65536), channels)
        return name, self._real(f"epsilon of {name}")

    def _activation(self) -> str:
        name = self._token("an activation's name")
        if self._version < 11:
            return "relu"
        kind = self._token(f"the kind of {name}")
        if kind not in _ACTIVATIONS:
            raise self._error(f"{name}: unknown activation {quote(kind)}, expected one of {', '.join(_ACTIVATIONS)}")
        return _ACTIVATIONS[kind]

    def _check_inputs(self, name: str, found: int, expected: int) -> None:
        if found != expected:
            raise self._error(f"{name}: has {found} inputs, but the layer before it gives {expected}")

    def _check_outputs(self, name: str, found: int, expected: int | None) -> None:
        if expected is not None and found != expected:
            raise self._error(f"{name}: has {found} outputs, expected {expected}")

    def _zeros(self, count: int) -> None:
        for _ in range(count):
            if self._number("a reserved number"):
                raise self._error("a reserved number is not 0: the file uses a feature that is not supported")

    def _token(self, what: str) -> str:
        match = re.compile(rb"\s*([^\s]+)").match(self._data, self._at, self._at + _LONGEST_TOKEN)
        if match is None:
            raise self._error(f"expected {what}, but the file ends or holds something else here")
        self._at = match.end()
        return match[1].decode("ascii", "backslashreplace")

    def _number(self, what: str, low: int = 0, high: int = 10**9) -> int:
        text = self._token(what)
        if not re.fullmatch(r"-?\d{1,10}", text) or not low <= int(text) <= high:
            raise self._error(f"{what}: expected a whole number from {low} to {high}, got {quote(text)}")
        return int(text)

    def _real(self, what: str) -> float:
        text = self._token(what)
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not np.isfinite(value):
            raise self._error(f"{what}: expected a number, got {quote(text)}")
        return value

    def _numbers(self, name: str, *shape: int) -> np.ndarray:
        count = int(np.prod(shape, dtype=np.int64))
        if count > _MOST_NUMBERS:
            raise self._error(f"{name}: {count:,} numbers are more than any network of KataGo has in one layer")
        if self._is_text:
            found = np.array([self._real(name) for _ in range(count)], np.float32)
        else:
            start = self._data.find(MARK, self._at, self._at + 100)
            if start < 0:
                raise self._error(f"{name}: expected the mark {MARK.decode()} before its numbers")
            start += len(MARK)
            if start + 4 * count > len(self._data):
                raise self._error(f"{name}: the file ends before its {count:,} numbers do")
            found = np.frombuffer(self._data, "<f4", count, start).astype(np.float32)
            self._at = start + 4 * count
        if not np.isfinite(found).all():
            raise self._error(f"{name}: holds numbers that are not finite")
        return found.reshape(shape)

    def _error(self, message: str) -> TengenError:
        return TengenError(f"{self._path}: byte {self._at:,} of the unpacked network: {message}")


def write(model: KataGoModel, path: Path | str) -> None:
    """Writes the network, gzipped if the name ends in .gz. Raises TengenError for a name that KataGo refuses."""
    path = Path(path)
    if not _NAME.fullmatch(model.name):
        raise TengenError(f"{quote(model.name)}: KataGo takes names of 1 to 96 letters, digits, - and _")
    data = ModelWriter(model).data
    # Without a time of writing, the same network gives the same bytes.
    packed.write(path, data)
