"""All tensors of a network as a few long vectors, inside a compiled loop.

The optimiser, the moving averages and the norm of the gradient treat every number alike. With one array for each layer
a GPU runs hundreds of kernels for them in every step, each for a few numbers; with vectors it runs a few in all.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tengen.train import optimizers

Tensors = dict[str, Array]

_KERNELS, _OTHERS = "*kernels", "*others"  # weight decay is for the former; no tensor of a network has such a name


class Packing:
    """Which tensors go into which vector, and in which order. What is no float32 array stays as it is."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self._names = frozenset(tensors)
        self._groups: dict[str, dict[str, tuple[int, ...]]] = {}
        for name, tensor in tensors.items():
            if tensor.dtype == jnp.float32:
                group = _KERNELS if optimizers.is_decayed(name, tensor) else _OTHERS
                self._groups.setdefault(group, {})[name] = tensor.shape
        self._packed = {name for group in self._groups.values() for name in group}

    def pack(self, tensors: Tensors) -> Tensors:
        """The tensors as vectors."""
        vectors = {
            group: jnp.concatenate([_flat(tensors[name]) for name in shapes]) for group, shapes in self._groups.items()
        }
        return vectors | {name: tensor for name, tensor in tensors.items() if name not in self._packed}

    def unpack(self, packed: Tensors) -> Tensors:
        """Undoes `pack`."""
        found = {name: tensor for name, tensor in packed.items() if name not in self._groups}
        for group, shapes in self._groups.items():
            start = 0
            for name, shape in shapes.items():
                end = start + math.prod(shape)
                found[name] = _whole(packed[group][start:end], shape)
                start = end
        return found

    def everywhere(self, function: Callable[[Tensors], Tensors], tree: Any) -> Any:
        """The tree with `function` applied to each dictionary in it that has a value for every tensor, or vector."""
        names = self._names, frozenset(self._groups) | (self._names - self._packed)

        def is_ours(part: Any) -> bool:
            return isinstance(part, dict) and part.keys() in names

        return jax.tree.map(lambda part: function(part) if is_ours(part) else part, tree, is_leaf=is_ours)


def decayed(packed: Iterable[str]) -> dict[str, bool]:
    """Which of the vectors weight decay is for."""
    return {name: name == _KERNELS for name in packed}


def _outputs_first(shape: tuple[int, ...]) -> bool:
    """Whether this is the kernel of a convolution: GPUs want the outputs on its first axis."""
    return len(shape) == 4 and shape[0] * shape[1] > 1


def _flat(tensor: Array) -> Array:
    return (jnp.moveaxis(tensor, -1, 0) if _outputs_first(tensor.shape) else tensor).ravel()


def _whole(vector: Array, shape: tuple[int, ...]) -> Array:
    if not _outputs_first(shape):
        return vector.reshape(shape)
    return jnp.moveaxis(vector.reshape(shape[-1], *shape[:-1]), 0, -1)
