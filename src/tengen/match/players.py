"""Players: whoever chooses moves for a batch of positions.

A player is a name, a rule and what the rule needs to know (the parameters of a network). Rules are values: two players
whose rules are equal share one compiled program, so the next network of a run costs no new compilation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tengen import schema, search
from tengen.config.settings.search import SearchSettings
from tengen.errors import OptionError
from tengen.games.core import Game, Observation
from tengen.games.players import Player, Random
from tengen.match.playouts import play_out
from tengen.nets.outputs import Evaluation

Evaluate = Callable[[Any, Observation], Evaluation]
"""(params, observation [B, ...]) -> what the network says."""

MOST_PLAYOUTS = 16_000
_EXPLORATION = 1.0  # times the square root of the number of moves; see docs/match-api.md for how it was chosen


def random(game: Game) -> Player:
    """Every legal move is equally likely."""
    return Player("random", Random(game))


def policy(name: str, evaluate: Evaluate, game: Game, params: Any = (), temperature: float = 0.0) -> Player:
    """The policy of a network without search: its best move, or drawn at a temperature above 0."""
    return Player(name, Policy(evaluate, game, temperature), params)


def network(
    name: str,
    evaluate: Evaluate,
    game: Game,
    settings: SearchSettings,
    params: Any = (),
    temperature: float = 0.0,
) -> Player:
    """A network with search. The settings are taken as they are: `strongest` switches their noise off."""
    return Player(name, Searched(evaluate, game, settings, temperature), params)


def strongest(settings: SearchSettings, simulations: int | None = None) -> SearchSettings:
    """The settings without what is there for variety: no noise, no forced playouts."""
    count = settings.simulations if simulations is None else simulations
    return replace(settings, simulations=count, gumbel_scale=0.0, noise_share=0.0, forced_playouts=0.0)


def mcts(playouts: int, game: Game) -> Player:
    """Monte Carlo tree search without a network: equal priors, and one random game from every leaf for its value."""
    if not 1 <= playouts <= MOST_PLAYOUTS:
        raise OptionError(f"mcts: expected 1 to {MOST_PLAYOUTS} playouts per move, got {playouts}")
    settings = SearchSettings(
        algorithm="puct",
        simulations=playouts,
        c_init=_EXPLORATION * game.num_actions**0.5,
        fpu_reduction=0.0,
        root_fpu_reduction=0.0,
        noise_share=0.0,
        forced_playouts=0.0,
    )
    return Player(f"mcts:{playouts}", Playouts(game, settings))


def perfect(name: str, best_moves: Callable[[Any], list[int]]) -> Player:
    """Plays one of the best moves, drawn by the key; `best_moves` lists them for ONE state of NumPy arrays."""
    return Player(name, Perfect(best_moves), on_host=True)


def parse(text: str, game: Game) -> Player:
    """The player without a network that a text names: `random` or `mcts:200`. OptionError says what is wrong."""
    kind, colon, count = text.strip().partition(":")
    if kind == "random" and not colon:
        return random(game)
    if kind == "mcts":
        if not (count.isascii() and count.isdigit()):
            raise OptionError(f"{text}: expected the number of playouts per move, as in mcts:200")
        return mcts(int(count), game)
    if kind == "random":
        raise OptionError(f"{text}: random takes no number")
    raise OptionError(f"{text}: {schema.unknown('player', kind, ('random', 'mcts'))}; write random or mcts:200")


@dataclass(frozen=True)
class Policy:
    """The rule of `policy`."""

    evaluate: Evaluate
    game: Game
    temperature: float

    def __call__(self, params: Any, key: Array, states: Any, which: Array) -> Array:
        del which
        look = jax.vmap(self.game.look)(states)
        logits = self.evaluate(params, look.observation).logits.astype(jnp.float32)
        logits = jnp.where(look.legal, logits, -jnp.inf)
        if self.temperature > 0:
            return jax.random.categorical(key, logits / self.temperature).astype(jnp.int32)
        return jnp.argmax(logits, 1).astype(jnp.int32)


@dataclass(frozen=True)
class Searched:
    """The rule of `network`."""

    evaluate: Evaluate
    game: Game
    settings: SearchSettings
    temperature: float

    def __call__(self, params: Any, key: Array, states: Any, which: Array) -> Array:
        budget = jnp.where(which, self.settings.simulations, 0).astype(jnp.int32)
        evaluate = partial(self.evaluate, params)
        return search.run(evaluate, self.game, states, key, self.settings, budget, self.temperature).action


@dataclass(frozen=True)
class Playouts:
    """The rule of `mcts`."""

    game: Game
    settings: SearchSettings

    def __call__(self, params: Any, key: Array, states: Any, which: Array) -> Array:
        del params
        count = self.settings.simulations
        starting, playing, choosing = jax.random.split(key, 3)
        tree = search.plant(self.game, self.settings, states, slots=count + 1)
        tree = search.begin(tree, starting, jnp.where(which, count, 0).astype(jnp.int32), which)

        def simulate(number: Array, tree: search.Tree) -> search.Tree:
            leaves = search.select(tree)
            now = jax.random.fold_in(playing, number)
            results = play_out(self.game, now, leaves.states, leaves.legal, leaves.over | ~which)
            value = jnp.take_along_axis(results, leaves.player[:, None], 1)[:, 0]
            return search.expand(tree, leaves, Evaluation(jnp.zeros(leaves.legal.shape), value))

        # The root's own evaluation is not a simulation.
        tree = lax.fori_loop(0, count + 1, simulate, tree)
        return search.summarise(tree, choosing).action


@dataclass(frozen=True)
class Perfect:
    """The rule of `perfect`."""

    best_moves: Callable[[Any], list[int]]

    def __call__(self, params: Any, key: Array, states: Any, which: Array) -> Any:
        del params
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        actions = np.zeros(len(which), np.int32)
        for number in np.flatnonzero(which):
            state = jax.tree.map(lambda leaf, number=number: np.asarray(leaf)[number], states)
            actions[number] = rng.choice(self.best_moves(state))
        return actions
