"""Networks as users write them, good ones and faulty ones, for the tests of `net.name: package.module:function`."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from tengen.games.core import Game
from tengen.nets.outputs import Outputs

TINY = "tests.helpers.custom_nets:tiny"


class Tiny(nnx.Module):
    """A convolution, batch normalisation, dropout, and dense heads."""

    def __init__(self, game: Game, heads: tuple[str, ...], rngs: nnx.Rngs) -> None:
        height, width, planes = game.planes_shape
        self.conv = nnx.Conv(planes, 4, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.policy = nnx.Linear(4 * height * width, game.num_actions, rngs=rngs)
        self.value = nnx.Linear(4 * height * width, 3, rngs=rngs)
        self.left = nnx.data(nnx.Linear(4 * height * width, 1, rngs=rngs) if "moves_left" in heads else None)

    def __call__(self, planes: jax.Array, scalars: jax.Array) -> Outputs:
        del scalars
        x = nnx.relu(self.norm(self.conv(planes.astype(jnp.float32))))
        x = self.dropout(x).reshape(len(x), -1)
        left = None if self.left is None else nnx.softplus(self.left(x)[:, 0])
        return Outputs(self.policy(x), self.value(x), moves_left=left)


def tiny(game: Game, heads: tuple[str, ...], rngs: nnx.Rngs) -> nnx.Module:
    return Tiny(game, heads, rngs)


def scaled(game: Game, heads: tuple[str, ...], rngs: nnx.Rngs, scale: float, *, more: object = None) -> nnx.Module:
    net = Tiny(game, heads, rngs)
    net.value.kernel[...] *= scale
    net.extra = nnx.Param(jnp.zeros(len(more)) if isinstance(more, list) else jnp.zeros(1))
    return net


class Faulty(Tiny):
    """What `tiny` is, with one mistake."""

    def __init__(self, game: Game, heads: tuple[str, ...], rngs: nnx.Rngs, fault: str) -> None:
        super().__init__(game, heads, rngs)
        self.fault = fault

    def __call__(self, planes: jax.Array, scalars: jax.Array) -> Any:
        found = super().__call__(planes, scalars)
        if self.fault == "shape":
            return found._replace(value=found.value[:, :1])
        if self.fault == "tuple":
            return found.policy, found.value
        if self.fault == "list":
            return found._replace(policy=[1, 2])
        if self.fault == "extra":
            return found._replace(extra=found.value)
        if self.fault == "batch" and len(planes) != 2:
            raise ValueError(f"a batch of {len(planes)}")
        if self.fault in ("batch", "fold"):
            return found
        if self.fault == "changes":
            self.norm.mean[...] += 1
            return found
        if self.fault == "nan":
            return found._replace(policy=jnp.log(-1 - jnp.abs(found.policy)))
        raise KeyError(self.fault)

    def fold(self) -> None:
        assert self.value.bias is not None
        self.value.bias[...] += jnp.array([2.0, 0, 0])


def faulty(game: Game, heads: tuple[str, ...], rngs: nnx.Rngs, fault: str) -> nnx.Module:
    return Faulty(game, heads, rngs, fault)


def wrong_shape(game: Game, heads: tuple[str, ...], rngs: nnx.Rngs) -> nnx.Module:
    return Faulty(game, heads, rngs, "shape")


def no_outputs(game: Game, heads: tuple[str, ...], rngs: nnx.Rngs) -> nnx.Module:
    return Faulty(game, heads, rngs, "tuple")


def not_finite(game: Game, heads: tuple[str, ...], rngs: nnx.Rngs) -> nnx.Module:
    return Faulty(game, heads, rngs, "nan")


def failing_call(game: Game, heads: tuple[str, ...], rngs: nnx.Rngs) -> nnx.Module:
    return Faulty(game, heads, rngs, "oops")


def failing(game: Game, heads: tuple[str, ...], rngs: nnx.Rngs) -> nnx.Module:
    return nnx.Linear(game.num_actions, "many", rngs=rngs)  # type: ignore[arg-type]


def too_few(game: Game) -> nnx.Module:
    return nnx.Linear(game.num_actions, 1, rngs=nnx.Rngs(0))


def no_module(game: Game, heads: tuple[str, ...], rngs: nnx.Rngs) -> int:
    return 3


class NoCall(nnx.Module):
    """As in other frameworks."""

    def forward(self, planes: Any, scalars: Any) -> Any:
        return planes, scalars


def no_call(game: Game, heads: Any, rngs: nnx.Rngs) -> NoCall:
    return NoCall()
