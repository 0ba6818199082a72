"""Rules by which networks play a role, and players by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from tengen import nets
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.games.players import Player
from tengen.match import player_spec
from tengen.nets import saving
from tengen.nets.specs import FILE_NAME

Parameters = dict[str, Array]
"""All variables of a network by name, as `nets.saving.named` gives them."""

NAMES = ("random", "first", "last")


def parameters(net: nnx.Module) -> Parameters:
    return saving.named(nnx.state(net))


def network(graph: Any, params: Mapping[str, Any]) -> Any:
    """The network with this graph (`nnx.graphdef`) and these variables."""
    return nnx.merge(graph, saving.unnamed(params))


def playing(graph: Any, params: Mapping[str, Any]) -> Any:
    """The same in evaluation mode: players use the running statistics of norms, and no dropout."""
    net = network(graph, params)
    net.eval()
    return net


def scores(outputs: Any) -> Array:
    """Float32[B, A]: a network's number per action: its policy output, or its only output."""
    return jnp.asarray(getattr(outputs, "policy", outputs), jnp.float32)


@dataclass(frozen=True)
class GreedyRule:
    """Plays the legal action to which the network gives the largest number. `params` are its variables by name."""

    graph: Any
    game: Game

    def __call__(self, params: Parameters, key: Array, states: Any, which: Array) -> Array:
        return jnp.argmax(self._logits(params, states), 1).astype(jnp.int32)

    def _logits(self, params: Parameters, states: Any) -> Array:
        """Float32[B, A]: the network's numbers, -inf for illegal actions; in a finished game anything will do."""
        look = jax.vmap(self.game.look)(states)
        found = scores(network(self.graph, params)(*look.observation))
        return jnp.where(look.legal | look.over[:, None], found, -jnp.inf)


@dataclass(frozen=True)
class SampledRule(GreedyRule):
    """Draws a legal action from the network's policy, whose logits its numbers are: for trainers that learn one."""

    def __call__(self, params: Parameters, key: Array, states: Any, which: Array) -> Array:
        return jax.random.categorical(key, self._logits(params, states)).astype(jnp.int32)


def greedy(name: str, net: nnx.Module, game: Game) -> Player:
    return Player(name, GreedyRule(nnx.graphdef(net), game), parameters(net))


def load_player(path: Path | str, game: Game, dtype: nets.Dtype = "float32") -> Player:
    """The player that follows a saved network (a file, or its folder), such as one of a trainer.

    TengenError says what is wrong with the file. The player is one for `match.play` and `FusedGame`.
    """
    net = saving.load(path, game, dtype=dtype)
    named = Path(path).parent if Path(path).name == FILE_NAME else Path(path)
    return greedy(named.name.removesuffix(".safetensors"), net, game)


def parse(text: str, game: Game, role: str) -> Player:
    """The player that a text names: random, first or last (legal action), a host of Hironaka's game, or a path.

    TengenError if there is no such player, or if it cannot play the role: in Hironaka's game the roles have different
    actions.
    """
    spec = player_spec.parse_role(text, role, game)
    return load_player(spec.found.path, game) if spec.found else spec.player(game)


def check_outputs(net: nnx.Module, game: Game, what: str) -> None:
    """TengenError unless `net(planes, scalars)` gives a number per action of the game."""
    planes = jax.ShapeDtypeStruct((2, *game.planes_shape), jnp.bool_)
    scalars = jax.ShapeDtypeStruct((2, game.num_scalars), jnp.float32)
    graph, params = nnx.graphdef(net), parameters(net)
    try:
        shape = jax.eval_shape(lambda p, x, y: scores(network(graph, p)(x, y)), params, planes, scalars).shape
    except (TypeError, ValueError, AttributeError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise TengenError(f"{what}: cannot be asked about positions of {game.name}: {first}") from error
    if shape != (2, game.num_actions):
        raise TengenError(f"{what}: expected a number for each of {game.num_actions} actions, got {list(shape[1:])}")
