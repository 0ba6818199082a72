"""An ONNX graph as it grows, and its file. Opset 18, which ONNX Runtime reads since 1.14."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tengen.errors import TengenError
from tengen.interop import protobuf

OPSET = 18
_IR_VERSION = 8
_MOST_BYTES = 2**31 - 1  # of a message of protocol buffers
_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
          "float16": 10, "float64": 11, "uint32": 12, "uint64": 13}  # fmt: skip
_SHARED = 1024  # bytes of a constant that is looked for among those already there
BATCH = "batch"  # the name of the dimension

Attribute = int | float | str | Sequence[int]


@dataclass(frozen=True)
class Tensor:
    """A tensor of the graph. In `shape` the number -k is k times the batch."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    constant: np.ndarray | None = None
    broadcast: bool = False  # the tensor still has to be broadcast to `shape`, which most operations do themselves


class OnnxGraph:
    """Nodes in the order in which they are computed, and constants."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._shared: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._count = 0
        self._first = ""  # input; every one has the batch as its first dimension
        self._batch: str | None = None

    def input(self, name: str, shape: tuple[int, ...], dtype: str) -> Tensor:
        self._first = self._first or name
        self._inputs.append(_value_info(name, shape, dtype))
        return Tensor(name, shape, dtype)

    def output(self, name: str, tensor: Tensor) -> None:
        self._node("Identity", [self.expanded(tensor)], name, {})
        self._outputs.append(_value_info(name, tensor.shape, tensor.dtype))

    def node(self, kind: str, inputs: Sequence[Tensor | str], **attributes: Attribute) -> str:
        """Adds an operation and returns the name of its result."""
        name = self._name()
        self._node(kind, [tensor if isinstance(tensor, str) else self.name(tensor) for tensor in inputs], name,
                   attributes)  # fmt: skip
        return name

    def name(self, tensor: Tensor) -> str:
        """The name of a tensor that may still have to be broadcast; a constant is written when it is first used."""
        return tensor.name if tensor.constant is None else self.constant(tensor.constant)

    def expanded(self, tensor: Tensor) -> str:
        """The name of a tensor that has its whole shape."""
        if not tensor.broadcast:
            return self.name(tensor)
        return self.node("Expand", [tensor, self.shape(tensor.shape)])

    def constant(self, array: np.ndarray) -> str:
        """The name of a constant."""
        data = np.ascontiguousarray(array).reshape(array.shape)
        raw = data.astype(data.dtype.newbyteorder("<"), copy=False).tobytes()
        key = (data.dtype.name, data.shape, raw)
        if len(raw) <= _SHARED and key in self._shared:
            return self._shared[key]
        name = self._name()
        if len(raw) <= _SHARED:
            self._shared[key] = name
        sizes = [(1, size) for size in data.shape]
        self._constants.append(protobuf.message([*sizes, (2, type_number(data.dtype.name)), (8, name), (9, raw)]))
        return name

    def shape(self, shape: tuple[int, ...]) -> str:
        """The name of a shape, as a tensor of whole numbers."""
        if all(size >= 0 for size in shape):
            return self.constant(np.array(shape, np.int64))
        if self._batch is None:
            first = self.constant(np.array([0], np.int64))
            self._batch = self.node("Gather", [self.node("Shape", [self._first]), first], axis=0)
        sizes = [self.constant(np.array([abs(size)], np.int64)) for size in shape]
        parts = [
            self.node("Mul", [self._batch, name]) if size < -1 else self._batch if size < 0 else name
            for size, name in zip(shape, sizes, strict=True)
        ]
        return self.node("Concat", parts, axis=0)

    def file(self, name: str, about: Mapping[str, str]) -> bytes:
        """The whole model; `about` becomes its metadata."""
        sections = ((1, self._nodes), (5, self._constants), (11, self._inputs), (12, self._outputs))
        size = sum(len(part) for _, parts in sections for part in parts)
        if size >= _MOST_BYTES:
            raise TengenError(f"{name}: the network has {size:,} bytes, and a file of ONNX has at most {_MOST_BYTES:,}")
        graph = protobuf.message([(2, name), *((number, part) for number, parts in sections for part in parts)])
        metadata = [(14, protobuf.message([(1, key), (2, value)])) for key, value in about.items()]
        opset = protobuf.message([(1, ""), (2, OPSET)])
        return protobuf.message([(1, _IR_VERSION), (2, "tengen"), (7, graph), (8, opset), *metadata])

    def _name(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def _node(self, kind: str, inputs: Sequence[str], output: str, attributes: Mapping[str, Attribute]) -> None:
        named = [(1, name) for name in inputs]
        given = [(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(protobuf.message([*named, (2, output), (4, kind), *given]))


def type_number(dtype: str) -> int:
    if dtype not in _TYPES:
        raise TengenError(f"ONNX has no numbers of the type {dtype}")
    return _TYPES[dtype]


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return protobuf.message([(1, name), (2, value), (20, 1)])
    if isinstance(value, int):
        return protobuf.message([(1, name), (3, value), (20, 2)])
    if isinstance(value, str):
        return protobuf.message([(1, name), (4, value), (20, 3)])
    return protobuf.message([(1, name), *((8, int(item)) for item in value), (20, 7)])


def _value_info(name: str, shape: tuple[int, ...], dtype: str) -> bytes:
    sizes = [protobuf.message([(1, size) if size >= 0 else (2, BATCH)]) for size in shape]
    tensor = protobuf.message([(1, type_number(dtype)), (2, protobuf.message((1, size) for size in sizes))])
    return protobuf.message([(1, name), (2, protobuf.message([(1, tensor)]))])
