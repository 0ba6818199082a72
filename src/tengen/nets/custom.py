"""Networks that users bring: `net.name: package.module:function` in a configuration.

    def tiny(game, heads, rngs, width=16):  # `net.options: {width: 64}`; a parameter `dtype` is the number format
        return Tiny(game, rngs, width)      # a flax.nnx.Module: module(planes, scalars) -> nets.Outputs

The module is called in flax's evaluation mode (`module.eval()`) by players, and in training mode (`module.train()`) by
the learner; one whose `__call__` takes `train` is given it as well. Variables of any kind are kept: parameters
(`nnx.Param`), which learn, batch statistics, and the random keys of dropout. A method `fold()`, if there is one,
prepares a copy of the module for play, in place.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from tengen import games, importing
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.nets.network import Network, Planes, Scalars
from tengen.nets.outputs import Outputs
from tengen.nets.specs import Dtype, Spec

_BATCH = 2  # positions that a new network is tried on


class CustomNetwork(Network):
    """A module of a user, with the interface of Tengen's own networks."""

    def __init__(self, spec: Spec, module: nnx.Module, dtype: Dtype, full_board: bool) -> None:
        super().__init__(spec, dtype, full_board)
        self.module = module
        module.eval()

    def _look(self, planes: Planes, scalars: Scalars, train: bool) -> Outputs:
        given = self.called(planes, scalars, train).by_name()
        return Outputs.of({name: given[name].astype(jnp.float32) for name in ("policy", "value", *self.spec.heads)})

    def called(self, planes: Array, scalars: Array, train: bool) -> Any:
        module: Any = self.module
        more = {"train": train} if "train" in _parameters(type(module).__call__) else {}
        if not train:
            return module(planes, scalars, **more)
        module.train()
        found = module(planes, scalars, **more)
        module.eval()
        return found

    def fold_norms(self) -> None:
        fold = getattr(self.module, "fold", None)
        if callable(fold):
            fold()

    @property
    def place(self) -> str:
        """The file and line of the module's `__call__`."""
        module = type(self.module)
        return f"{self.spec.function}: {importing.where(module.__call__ if _is_callable(module) else module)}"


def build(spec: Spec, game: Game, rngs: nnx.Rngs, dtype: Dtype, full_board: bool) -> CustomNetwork:
    """The network that the user's function builds. OptionError tells what is wrong, with the user's file and line."""
    assert spec.function is not None
    function = importing.load(spec.function, "a function that builds a network")
    more = {"dtype": dtype} if "dtype" in _parameters(function) else {}
    try:
        module = function(game, spec.heads, rngs, **more, **(spec.options or {}))
    except TengenError:
        raise
    except Exception as error:
        explained = importing.explain(error, function)
        raise OptionError(f"{spec.function}: building the network failed: {explained}") from error
    if not isinstance(module, nnx.Module):
        place = importing.where(function)
        raise OptionError(f"{spec.function}: {place}: expected a flax.nnx.Module, got {type(module).__name__}")
    net = CustomNetwork(spec, module, dtype, full_board)
    if not _is_callable(type(module)):
        raise OptionError(f"{net.place}: {type(module).__name__} lacks the method __call__(self, planes, scalars)")
    _check(net, game)
    return net


def check_quickly(
    function: str, options: dict[str, Any], heads: list[str], dtype: Dtype, game: str, game_options: dict[str, Any]
) -> None:
    """OptionError for what a new network of a user shows, before a run begins with it."""
    made = games.make(game, **game_options)
    check_numbers(build(Spec.custom(function, heads, options), made, nnx.Rngs(0), dtype, True), made)


def check_numbers(net: Network, game: Game) -> None:
    """OptionError if a new network of a user gives numbers that are not finite for the first positions of a game."""
    if not isinstance(net, CustomNetwork):
        return
    graph, state = nnx.split(net)

    @jax.jit
    def look(state: Any) -> Outputs:
        seen = jax.vmap(game.look)(jax.vmap(game.init)(jax.random.split(jax.random.key(0), _BATCH))).observation
        return nnx.merge(graph, state)(seen.planes, seen.scalars)

    for name, found in look(state).by_name().items():
        if not np.isfinite(found).all():
            raise OptionError(f"{net.place}: {name} holds numbers that are not finite, for a new network")


def shapes(game: Game) -> dict[str, tuple[int, ...]]:
    """The shape of each possible output for one position."""
    targets = {
        target.name: (*target.shape(game.planes_shape, game.num_actions), *[2] * (target.outputs == 2))
        for target in game.extra_targets
    }
    known = {"policy": (game.num_actions,), "value": (3,), "opponent_policy": (game.num_actions,), "moves_left": ()}
    return targets | known


def _check(net: CustomNetwork, game: Game) -> None:
    """Tries the network without computing anything, as players and as the learner call it."""
    graph, state = nnx.split(net)
    for path, leaf in nnx.to_flat_state(state):
        value: Array = leaf[...]
        if jnp.issubdtype(value.dtype, jnp.floating) and value.dtype != jnp.float32:
            name = ".".join(map(str, path[1:]))
            wanted = "variables are float32, whatever computes with them"
            raise OptionError(f"{net.place}: {name} is {value.dtype}; {wanted}")
    inputs = (
        jax.ShapeDtypeStruct((_BATCH, *game.planes_shape), jnp.bool_),
        jax.ShapeDtypeStruct((_BATCH, game.num_scalars), jnp.float32),
    )
    for train in (False, True):
        try:
            found = jax.eval_shape(lambda net, x, y, t=train: nnx.merge(graph, net).called(x, y, t), state, *inputs)
        except TengenError:
            raise
        except Exception as error:
            words = f"{_BATCH} positions of {game.name} for {'training' if train else 'play'}"
            raise OptionError(f"{net.place}: evaluating {words} failed: {importing.explain(error)}") from error
        for problem in _problems(found, net.spec, game):
            raise OptionError(f"{net.place}: {problem}")


def _problems(found: Any, spec: Spec, game: Game) -> Iterator[str]:
    """What is wrong with the outputs (shapes in place of numbers) for a batch of positions."""
    if not isinstance(found, Outputs):
        yield f"expected nets.Outputs, got {type(found).__name__}"
        return
    given = found.by_name()
    for name, shape in shapes(game).items():
        output, wanted = given.get(name), (_BATCH, *shape)
        if output is None and name in ("policy", "value", *spec.heads):
            yield f"the outputs have no {name}" + (", which net.heads asks for" if name in spec.heads else "")
        elif output is not None and output.shape != wanted:
            got = f"{list(output.shape)} for {_BATCH} positions of {game.name}"
            yield f"{name}: expected the shape {list(wanted)}, got {got}"


def _is_callable(module: type) -> bool:
    """Whether a module has a `__call__`; a class itself can always be called."""
    return any("__call__" in vars(base) for base in module.__mro__)


def _parameters(function: Any) -> Any:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions in C have none
        return {}
