"""Networks that users bring: `net.name: package.module:function` in a configuration. See docs/nets.md.

    def tiny(game, heads, rngs, width=16):  # `net.options: {width: 64}`; a parameter `dtype` is the number format
        return Tiny(game, rngs, width)      # a flax.nnx.Module: module(planes, scalars) -> nets.Outputs

Variables of any kind are kept: parameters (`nnx.Param`), which learn, batch statistics, and the random keys of dropout.
"""

import inspect
import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.errors import TraceContextError
from jax import Array

from tengen import games, importing
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.nets.network import Network, Planes, Scalars
from tengen.nets.outputs import Outputs
from tengen.nets.specs import Dtype, Spec

_BATCH = 2  # positions that a new network is tried on
_BATCHES = (_BATCH, 37)  # and that it is traced with
_FOLDED = 1e-2  # how far outputs may move when norms are merged
_ONLY_IN_TRAINING = "; a module changes its variables in training only (flax's module.train())"


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
            with importing.told(self.spec.function or "", fold):
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
    """OptionError if a new network of a user gives numbers that are not finite for the first positions of a game.

    Also if its `fold` changes them.
    """
    if not isinstance(net, CustomNetwork):
        return

    def look(net: CustomNetwork) -> dict[str, Any]:
        seen = jax.vmap(game.look)(jax.vmap(game.init)(jax.random.split(jax.random.key(0), _BATCH))).observation
        graph, state = nnx.split(net)
        return jax.jit(lambda state: nnx.merge(graph, state)(seen.planes, seen.scalars))(state).by_name()

    outputs = look(net)
    for name, found in outputs.items():
        if not np.isfinite(found).all():
            raise OptionError(f"{net.place}: {name} holds numbers that are not finite, for a new network")
    if not callable(fold := getattr(net.module, "fold", None)):
        return
    folded = nnx.clone(net)
    folded.fold_norms()
    for name, found in look(folded).items():
        if not np.allclose(found, outputs[name], rtol=_FOLDED, atol=_FOLDED):
            far = float(np.abs(np.asarray(found) - outputs[name]).max())
            where = f"{net.spec.function}: {importing.where(fold)}"
            raise OptionError(f"{where}: fold must not change the outputs; {name} differs by up to {far:.3g}")


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
            raise OptionError(
                f"{net.place}: {name} is {value.dtype}; variables are float32, whatever computes with them"
            )
    for batch, train in itertools.product(_BATCHES, (False, True)):
        planes = jax.ShapeDtypeStruct((batch, *game.planes_shape), jnp.bool_)
        scalars = jax.ShapeDtypeStruct((batch, game.num_scalars), jnp.float32)
        try:
            found = jax.eval_shape(partial(_called, graph, train), state, planes, scalars)
        except (Exception, SystemExit) as error:
            if isinstance(error, TengenError):
                raise
            words = f"{batch} positions of {game.name} for {'training' if train else 'play'}"
            hint = _ONLY_IN_TRAINING if isinstance(error, TraceContextError) else ""
            raise OptionError(f"{net.place}: evaluating {words} failed: {importing.explain(error)}{hint}") from error
        for problem in _problems(found, net.spec, game, batch):
            raise OptionError(f"{net.place}: {problem}")


def _called(graph: Any, train: bool, state: Any, planes: Array, scalars: Array) -> Any:
    net = nnx.merge(graph, state)
    if train:
        return net.called(planes, scalars, train)
    # Search compiles the network inside of loops, where it cannot change its variables.
    return jax.eval_shape(lambda planes, scalars: net.called(planes, scalars, train), planes, scalars)


def _problems(found: Any, spec: Spec, game: Game, batch: int) -> Iterator[str]:
    """What is wrong with the outputs (shapes in place of numbers) for a batch of positions."""
    if not isinstance(found, Outputs):
        yield f"expected nets.Outputs, got {type(found).__name__}"
        return
    if not isinstance(found.extra, Mapping | None):
        yield f"extra: expected a dictionary of outputs by name, got {type(found.extra).__name__}"
        return
    given = found.by_name()
    for name, shape in shapes(game).items():
        output, wanted = given.get(name), (batch, *shape)
        if output is None and name in ("policy", "value", *spec.heads):
            yield f"the outputs have no {name}" + (", which net.heads asks for" if name in spec.heads else "")
        elif output is not None and getattr(output, "shape", None) != wanted:
            got = list(output.shape) if hasattr(output, "shape") else type(output).__name__
            yield f"{name}: expected the shape {list(wanted)}, got {got} for {batch} positions of {game.name}"


def _is_callable(module: type) -> bool:
    """Whether a module has a `__call__`; a class itself can always be called."""
    return any("__call__" in vars(base) for base in module.__mro__)


def _parameters(function: Any) -> Any:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions in C have none
        return {}
