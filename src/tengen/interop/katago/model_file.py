"""KataGo's network files (`.bin.gz`): reading and writing, as plain data.

A file is one stream of tokens separated by white space. A block of numbers is `@BIN@` and then float32 in
little-endian order; in a text file (`.txt`) the numbers are written out. Versions 8 to 15 are supported.
"""

import gzip
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tengen import files
from tengen.errors import TengenError
from tengen.interop import packed
from tengen.interop.katago.model import (
    MULTIPLIERS,
    AnyBlock,
    ConvWeights,
    KataGoModel,
    NestedBottleneck,
    NormWeights,
    OrdinaryBlock,
    PolicyWeights,
    PoolBlock,
    ValueWeights,
)
from tengen.schema import quote

VERSIONS = range(8, 16)
_NEWEST = 17  # of KataGo's versions; the last two have attention
PLANES, GLOBALS = 22, 19
_MARK = b"@BIN@"
_MOST_NUMBERS = 2**28  # of one layer
_LONGEST_TOKEN = 1000
_DEEPEST = 8  # blocks in blocks; KataGo's networks have one or two levels
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
        self._is_text = _MARK not in data[: 1 << 16]

    def model(self) -> KataGoModel:
        name = self._token("the network's name")
        self._version = version = self._number("the version")
        if version not in VERSIONS:
            newer = "networks with attention are not supported" if version <= _NEWEST else "KataGo has no such version"
            what = newer if version > VERSIONS[-1] else "it is too old"
            raise self._error(f"version {version}: {what}, expected a version from {VERSIONS[0]} to {VERSIONS[-1]}")
        for expected, what in ((PLANES, "planes"), (GLOBALS, "global inputs")):
            if (found := self._number(what)) != expected:
                raise self._error(f"expected {expected} {what}, got {found}: another version of KataGo's inputs")
        multipliers = MULTIPLIERS
        if version >= 13:
            multipliers = tuple(self._real("a multiplier") for _ in MULTIPLIERS)
        if version >= 15:
            if self._number("the version of the metadata encoder"):
                raise self._error("networks with metadata inputs, as of human play, are not supported")
            self._zeros(7, ignored=1)
        self._token("the trunk's name")
        count, channels = self._number("the number of blocks", 1, 1000), self._number("the trunk's channels", 1, 65536)
        for _ in range(4):
            self._number("channels")
        if version >= 15:
            if kind := self._number("the kind of the trunk's norms"):
                raise self._error(
                    f"norms of kind {kind} in the trunk, as of networks with attention, are not supported"
                )
            self._zeros(5)
        stem, from_globals = self._conv(PLANES, channels), self._matrix(GLOBALS, channels)
        blocks = tuple(self._block(channels) for _ in range(count))
        tip, tip_activation = self._norm(channels), self._activation()
        policy, value = self._policy(channels), self._value(channels)
        if self._data[self._at :].strip():
            raise self._error("the network is complete here, but the file goes on")
        return KataGoModel(name, version, stem, from_globals, blocks, tip, tip_activation, policy, value, multipliers)

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
        raise self._error(
            f"a block of the kind {quote(kind)} is not supported, expected ordinary_block, gpool_block or "
            "nested_bottleneck_block"
        )

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

    def _policy(self, channels: int) -> PolicyWeights:
        self._token("the policy head's name")
        regular, pooled = self._conv(channels), self._conv(channels)
        kept, summed = regular.kernel.shape[3], pooled.kernel.shape[3]
        pooled_norm, of_pool = self._norm(summed), self._activation()
        to_bias = self._matrix(3 * summed, kept)
        norm, last = self._norm(kept), self._activation()
        outputs = 2 if self._version >= 12 else 1
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
        name = self._token("a norm's name")
        self._check_inputs(name, self._number(f"the channels of {name}", 1, 65536), channels)
        epsilon = self._real(f"epsilon of {name}")
        has_scale, has_bias = (self._number(f"a flag of {name}", 0, 1) for _ in range(2))
        mean, variance = self._numbers(name, channels), self._numbers(name, channels)
        if (variance + np.float64(epsilon) <= 0).any():
            raise self._error(f"{name}: a variance is not positive")
        scale = self._numbers(name, channels) if has_scale else np.ones(channels, np.float32)
        bias = self._numbers(name, channels) if has_bias else np.zeros(channels, np.float32)
        return NormWeights(mean, variance, scale, bias, epsilon)

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

    def _zeros(self, count: int, ignored: int = 0) -> None:
        for index in range(count):
            if self._number("a reserved number") and index >= ignored:
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
            start = self._data.find(_MARK, self._at, self._at + 100)
            if start < 0:
                raise self._error(f"{name}: expected the mark {_MARK.decode()} before its numbers")
            start += len(_MARK)
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
    data = _Writer(model).data
    # Without a time of writing, the same network gives the same bytes.
    files.write_bytes(path, gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data)


class _Writer:
    """Collects the tokens of a network in `data`."""

    def __init__(self, model: KataGoModel) -> None:
        self._version = model.version
        self._pieces: list[bytes] = []
        self._add(model.name, model.version, PLANES, GLOBALS)
        if model.version >= 13:
            self._add(*model.multipliers)
        if model.version >= 15:
            self._add(*[0] * 8)
        channels = len(model.tip_norm.mean)
        self._add("trunk", len(model.blocks), *[channels] * 5)
        if model.version >= 15:
            self._add(*[0] * 6)
        self._conv("stem", model.stem)
        self._matrix("stem_globals", model.stem_globals)
        for number, block in enumerate(model.blocks):
            self._block(f"block{number}", block)
        self._norm("tip", model.tip_norm, model.tip_activation)
        self._policy(model.policy)
        self._value(model.value)

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)

    def _add(self, *tokens: object) -> None:
        self._pieces.extend(f"{token}\n".encode() for token in tokens)

    def _numbers(self, values: np.ndarray) -> None:
        self._pieces.extend((_MARK, np.ascontiguousarray(values, "<f4").tobytes(), b"\n"))

    def _conv(self, name: str, conv: ConvWeights) -> None:
        self._add(name, *conv.kernel.shape, 1, 1)
        self._numbers(conv.kernel)

    def _matrix(self, name: str, weights: np.ndarray) -> None:
        self._add(name, *weights.shape)
        self._numbers(weights)

    def _norm(self, name: str, norm: NormWeights, activation: str) -> None:
        """A norm and the activation after it."""
        self._add(f"{name}_norm", len(norm.mean), norm.epsilon, 1, 1)
        for values in (norm.mean, norm.variance, norm.scale, norm.bias):
            self._numbers(values)
        self._activation(name, activation)

    def _activation(self, name: str, activation: str) -> None:
        self._add(f"{name}_activation", *([f"ACTIVATION_{activation.upper()}"] if self._version >= 11 else []))

    def _block(self, name: str, block: AnyBlock) -> None:
        if isinstance(block, OrdinaryBlock):
            self._add("ordinary_block", name)
            self._steps(name, block, (0, 1))
        elif isinstance(block, PoolBlock):
            self._add("gpool_block", name)
            self._norm(f"{name}_first", block.norm, block.activations[0])
            self._conv(f"{name}_regular", block.regular)
            self._conv(f"{name}_pooled", block.pooled)
            self._norm(f"{name}_pooled", block.pooled_norm, block.activations[1])
            self._matrix(f"{name}_bias", block.to_bias)
            self._norm(f"{name}_second", block.second_norm, block.activations[2])
            self._conv(f"{name}_second", block.second)
        else:
            self._add("nested_bottleneck_block", name, len(block.blocks))
            self._steps(name, block, (0,))
            for number, inner in enumerate(block.blocks):
                self._block(f"{name}_{number}", inner)
            self._steps(name, block, (1,))

    def _steps(self, name: str, block: OrdinaryBlock | NestedBottleneck, which: Sequence[int]) -> None:
        for number in which:
            self._norm(f"{name}_{number}", block.norms[number], block.activations[number])
            self._conv(f"{name}_{number}", block.convs[number])

    def _policy(self, head: PolicyWeights) -> None:
        self._add("policy")
        self._conv("policy_regular", head.regular)
        self._conv("policy_pooled", head.pooled)
        self._norm("policy_pooled", head.pooled_norm, head.activations[0])
        self._matrix("policy_bias", head.to_bias)
        self._norm("policy", head.norm, head.activations[1])
        self._conv("policy_points", head.points)
        if len(head.passes) == 1:
            self._matrix("policy_pass", head.passes[0])
            return
        first, bias, second = head.passes
        self._matrix("policy_pass_hidden", first)
        self._bias("policy_pass_hidden_bias", bias)
        self._activation("policy_pass", head.activations[2])
        self._matrix("policy_pass", second)

    def _value(self, head: ValueWeights) -> None:
        self._add("value")
        self._conv("value_conv", head.conv)
        self._norm("value", head.norm, head.activations[0])
        for name, (weights, bias) in (("hidden", head.hidden), ("value", head.value), ("score", head.score)):
            self._matrix(f"{name}", weights)
            self._bias(f"{name}_bias", bias)
            if name == "hidden":
                self._activation("hidden", head.activations[1])
        self._conv("ownership", head.ownership)

    def _bias(self, name: str, values: np.ndarray) -> None:
        self._add(name, len(values))
        self._numbers(values)
