"""The players that matches are made of: networks with and without search, plain search, solvers, fixed rules."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.errors import OptionError
from tengen.games.core import Game, Observation
from tengen.games.hironaka import HOSTS, Fixed, Hironaka
from tengen.games.players import First, Player, Random, Rule, draw
from tengen.nets import evaluators, models, saving
from tengen.nets.outputs import Evaluation

Evaluate = Callable[[Any, Observation], Evaluation]
"""(params, observation [B, ...]) -> the evaluation by a network."""

MOST_PLAYOUTS = 16_000
PLAYING: Mapping[str, Any] = {"algorithm": "puct", "c_init": 0.8}
"""How networks search in matches if nothing else is said; self-play wants more exploration. See docs/log.md."""
_EXPLORATION = 1.0  # times the square root of the number of moves; see docs/match-api.md for how it was chosen


def random(game: Game) -> Player:
    """Every legal move is equally likely."""
    return Player("random", Random(game))


def policy(name: str, evaluate: Evaluate, game: Game, params: Any = (), temperature: float = 0.0) -> Player:
    """The policy of a network without search: its best move, or drawn at a temperature above 0."""
    return _player(name, Policy(evaluate, game, temperature), params)


def network(
    name: str,
    evaluate: Evaluate,
    game: Game,
    settings: SearchSettings,
    params: Any = (),
    temperature: float = 0.0,
) -> Player:
    """A network with search. The settings are taken as they are: `strongest` switches their noise off."""
    return _player(name, Searched(evaluate, game, settings, temperature), params)


def _player(name: str, rule: "Policy | Searched", params: Any) -> Player:
    """A model of another framework is called from the host, with JAX arrays."""
    on_host = getattr(rule.evaluate, "on_host", False)
    return Player(name, rule, params, on_host=on_host, numpy=not on_host)


def strongest(settings: SearchSettings, simulations: int | None = None) -> SearchSettings:
    """The settings without what is there for variety: no noise, no forced playouts."""
    count = settings.simulations if simulations is None else simulations
    return replace(settings, simulations=count, gumbel_scale=0.0, noise_share=0.0, forced_playouts=0.0)


def mcts(playouts: int, game: Game) -> Player:
    """Monte Carlo tree search without a network: equal priors, and one random game from every leaf for its value.

    A game may cut random games off and estimate their results (`Game.playout_moves`), as chess does.
    """
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
        lower_bound=0.0,
    )
    return Player(f"mcts:{playouts}", Playouts(game, settings))


def perfect(name: str, best_moves: Callable[[Any], list[int]]) -> Player:
    """Plays one of the best moves, drawn by the key; `best_moves` lists them for ONE state of NumPy arrays."""
    return Player(name, Perfect(best_moves), on_host=True)


def saved(name: str, path: Path, game: Game, settings: SearchSettings | None = None, dtype: Any = "float32") -> Player:
    """A network on disk, with search or (None) without. TengenError if it does not fit the game."""
    own = game if models.is_model(path) else game.for_network(saving.read(path).options)
    evaluate, params = evaluators.saved(path, own, dtype)
    params = jax.device_put(params, jax.local_devices()[0])
    look = partial(policy, name, evaluate, own) if settings is None else partial(network, name, evaluate, own, settings)
    found = look(params)
    return found if own is game else replace(found, rule=Observing(found.rule, game, own))


def fixed_rules(game: Game, role: str) -> dict[str, Rule]:
    """The rules that need no network, by name, for players of a role; Hironaka's game has more for hosts."""
    rules: dict[str, Rule] = {"random": Random(game), "first": First(game), "last": First(game, last=True)}
    if isinstance(game, Hironaka) and role == "host":
        rules |= {name: Fixed(game, choice) for name, choice in HOSTS.items()}
    return rules


@partial(jax.jit, static_argnums=0)
def _look(game: Game, states: Any) -> Any:
    return jax.vmap(game.look)(states)


@dataclass(frozen=True)
class Observing:
    """The rule of a network with another observation than that of the game which is played."""

    rule: Rule
    game: Game
    own: Game

    def __call__(self, params: Any, key: Array, states: Any, which: Array) -> Array:
        return self.rule(params, key, self.game.states_for(self.own, states), which)


@dataclass(frozen=True)
class Policy:
    """The rule of `policy`."""

    evaluate: Evaluate
    game: Game
    temperature: float

    def __call__(self, params: Any, key: Array, states: Any, which: Array) -> Array:
        del which
        look = _look(self.game, states)
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
        run = search.run_from_host if getattr(self.evaluate, "on_host", False) else search.run
        return run(evaluate, self.game, states, key, self.settings, budget, self.temperature).action


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


def play_out(game: Game, key: Array, states: Any, legal: Array, done: Array) -> Array:
    """Float32[B, 2]: the results of games that random moves finish from `states` [B, ...].

    A game that still runs after `game.playout_moves` has the result that the game estimates. `legal` (Bool[B, A]) are
    the moves in `states`. Games that are over or of no interest are `done` (Bool[B]): their results are zeros.
    """
    longest = game.max_moves if game.playout_moves is None else game.playout_moves

    def running(carry: tuple[Any, ...]) -> Array:
        _, _, _, done, _, moves = carry
        return ~done.all() & (moves < longest)

    def move(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        key, states, legal, done, results, moves = carry
        key, now = jax.random.split(key)
        states, look = game.step_and_look(states, draw(now, legal), done)
        results = jnp.where((look.over & ~done)[:, None], look.returns, results)
        return key, states, look.legal, done | look.over, results, moves + 1

    nothing = jnp.zeros((len(done), 2), jnp.float32)
    _, states, _, done, results, _ = lax.while_loop(running, move, (key, states, legal, done, nothing, jnp.int32(0)))
    if game.playout_moves is None:
        return results
    return jnp.where(done[:, None], results, jax.vmap(game.estimate)(states))
