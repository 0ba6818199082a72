"""The size of a network and the cost of one evaluation."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from tengen.games.core import Game
from tengen.nets.building import build
from tengen.nets.custom import CustomNetwork
from tengen.nets.heads import PolicyColumns
from tengen.nets.layers import Conv, Dense, PointDense
from tengen.nets.network import Network
from tengen.nets.specs import Spec


class _SameKey(nnx.Rngs):
    """In place of nnx.Rngs, which takes most of the time if no numbers are drawn."""

    def __init__(self) -> None:
        """Makes no streams."""

    def params(self) -> Array:
        return jax.random.key(0)


def shapes(spec: Spec, game: Game) -> Network:
    """The network with shapes in place of numbers: fast for any size."""
    return nnx.eval_shape(lambda: build(spec, game, _SameKey() if spec.function is None else nnx.Rngs(0)))


def parameter_count(net: nnx.Module) -> int:
    """The number of trainable parameters of a network or of a part of one."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(nnx.state(net, nnx.Param)))


def parts(net: Network) -> Iterator[tuple[str, int]]:
    """The parts of a network, such as `stem` and `blocks.3`, with the parameters of each."""
    for name, child in sorted(nnx.iter_children(net), key=lambda named: named[0] != "stem"):
        if isinstance(child, nnx.List):
            for number, module in enumerate(child, start=1):
                yield f"{name}.{number}", parameter_count(module)
        elif isinstance(child, nnx.Module):
            yield str(name), parameter_count(child)


def operations(net: Spec | Network, game: Game) -> int:
    """Multiplications and additions of the layers for one position; norms and activations are not counted."""
    net = shapes(net, game) if isinstance(net, Spec) else net
    if isinstance(net, CustomNetwork):
        return _by_compiler(net, game)
    height, width, _ = game.planes_shape
    total = 0
    for _, module in nnx.iter_modules(net):
        if isinstance(module, Conv | Dense):
            everywhere = isinstance(module, Conv | PointDense)
            times = height * width if everywhere else width if isinstance(module, PolicyColumns) else 1
            times *= module.times if isinstance(module, Dense) else 1
            total += 2 * times * math.prod(module.kernel.shape)
    return total


def _by_compiler(net: CustomNetwork, game: Game) -> int:
    graph, state = nnx.split(net)
    planes = jax.ShapeDtypeStruct((1, *game.planes_shape), jnp.bool_)
    scalars = jax.ShapeDtypeStruct((1, game.num_scalars), jnp.float32)
    lowered = jax.jit(lambda state, x, y: nnx.merge(graph, state)(x, y)).lower(state, planes, scalars)
    found: Any = lowered.cost_analysis()
    return int((found or {}).get("flops", 0))
