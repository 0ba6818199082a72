"""All tensors of a network as a few arrays, inside a compiled loop.

The optimiser, the moving averages and the length of the gradient treat every number alike. With an array for each layer
a GPU runs hundreds of kernels for them in every step, each for a few numbers; with few arrays it runs few in all.
The kernels of layers become matrices, padded with zeros and stacked, as Muon needs them; everything else is one vector.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

Tensors = dict[str, Array]
Shape = tuple[int, ...]

_STACK, _VECTOR = "*stack", "*vector"  # no tensor of a network has such a name
_MOST_PADDING = 3  # how many times as large as its kernels a stack may be


def is_kernel(name: str, tensor: Any) -> bool:
    """Whether this is the kernel of a layer, or a stack of them, and no scale, shift or bias."""
    return name.startswith(_STACK) or (name.rsplit(".", 1)[-1] == "kernel" and len(tensor.shape) > 1)


class Stack(NamedTuple):
    """Kernels as matrices, [number, rows, columns]."""

    rows: int
    columns: int
    shapes: dict[str, Shape]

    def pack(self, kernels: Mapping[str, Array]) -> Array:
        def one(name: str) -> Array:
            matrix = _matrix(kernels[name])
            return jnp.pad(matrix, ((0, self.rows - matrix.shape[0]), (0, self.columns - matrix.shape[1])))

        return jnp.stack([one(name) for name in self.shapes])

    def unpack(self, stack: Array) -> Tensors:
        def one(number: int, shape: Shape) -> Array:
            rows, columns = _sides(shape)
            return _kernel(stack[number, :rows, :columns], shape)

        return {name: one(number, shape) for number, (name, shape) in enumerate(self.shapes.items())}

    @property
    def longest(self) -> Array:
        """Float32[number, 1, 1]: the longer side of each matrix."""
        return jnp.asarray([_sides(shape)[1] for shape in self.shapes.values()], jnp.float32)[:, None, None]


def stacks(shapes: Mapping[str, Shape]) -> list[Stack]:
    """Divides kernels into few stacks without too much padding."""
    found: list[Stack] = []
    for name in sorted(shapes, key=lambda name: (-math.prod(shapes[name]), name)):
        shape = shapes[name]
        rows, columns = _sides(shape)
        if found:
            last = found[-1]
            wider = Stack(max(last.rows, rows), max(last.columns, columns), {**last.shapes, name: shape})
            numbers = sum(map(math.prod, wider.shapes.values()))
            if wider.rows * wider.columns * len(wider.shapes) <= _MOST_PADDING * numbers:
                found[-1] = wider
                continue
        found.append(Stack(rows, columns, {name: shape}))
    return found


def _sides(shape: Shape) -> tuple[int, int]:
    """Rows and columns of a kernel's matrix. The shorter side is first: products with the transpose are smaller."""
    inputs, outputs = math.prod(shape[:-1]), shape[-1]
    return min(inputs, outputs), max(inputs, outputs)


def _matrix(kernel: Array) -> Array:
    inputs, outputs = math.prod(kernel.shape[:-1]), kernel.shape[-1]
    if outputs > inputs:
        return kernel.reshape(inputs, outputs)
    return jnp.moveaxis(kernel, -1, 0).reshape(outputs, inputs)  # as GPUs store the kernels of convolutions


def _kernel(matrix: Array, shape: Shape) -> Array:
    inputs, outputs = math.prod(shape[:-1]), shape[-1]
    if outputs > inputs:
        return matrix.reshape(shape)
    return jnp.moveaxis(matrix.reshape(outputs, *shape[:-1]), 0, -1)


class Packing:
    """Which tensors go into which array, and where. What is not float32 stays as it is."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        floats = {name: tensor for name, tensor in tensors.items() if tensor.dtype == jnp.float32}
        kernels = {name: tensor.shape for name, tensor in floats.items() if is_kernel(name, tensor)}
        self._vector = {name: tensor.shape for name, tensor in floats.items() if name not in kernels}
        self.stacks = {f"{_STACK}{number}": stack for number, stack in enumerate(stacks(kernels))}
        self._names = frozenset(tensors)

    def pack(self, tensors: Tensors) -> Tensors:
        """The tensors as few arrays. There may be only kernels, or only others.

        The barrier makes XLA compute the arrays once: without it, everything that reads them is compiled, and computed,
        with all their parts.
        """
        found: Tensors = {}
        packed: set[str] = set()
        for group, stack in self.stacks.items():
            if stack.shapes.keys() <= tensors.keys():
                found[group] = stack.pack(tensors)
                packed |= stack.shapes.keys()
        if self._vector and self._vector.keys() <= tensors.keys():
            found[_VECTOR] = jnp.concatenate([tensors[name].ravel() for name in self._vector])
            packed |= self._vector.keys()
        found = lax.optimization_barrier(found)
        return found | {name: tensor for name, tensor in tensors.items() if name not in packed}

    def unpack(self, packed: Tensors) -> Tensors:
        """Undoes `pack`."""
        found: Tensors = {}
        for name, array in packed.items():
            if name in self.stacks:
                found |= self.stacks[name].unpack(array)
            elif name == _VECTOR:
                start = 0
                for each, shape in self._vector.items():
                    found[each] = array[start : start + math.prod(shape)].reshape(shape)
                    start += math.prod(shape)
            else:
                found[name] = array
        return found

    def everywhere(self, function: Callable[[Tensors], Tensors], tree: Any) -> Any:
        """The tree with `function` applied to every dictionary of tensors, or of packed ones, in it."""
        names = self._names | self.stacks.keys() | {_VECTOR}

        def is_ours(part: Any) -> bool:
            return isinstance(part, dict) and bool(part) and part.keys() <= names

        return jax.tree.map(lambda part: function(part) if is_ours(part) else part, tree, is_leaf=is_ours)
