"""How the games of a group find their moves: each with a search tree, or from the policy alone.

Both ways are pure functions of a state (a pytree, [G, ...] for G games), with the same names; `which` is Bool[G].
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.games.batching import choose
from tengen.games.core import Game, Observation
from tengen.nets.outputs import Evaluation
from tengen.search.result import SearchResult
from tengen.search.simulation import Leaves
from tengen.search.tree import Tree


class LeafQuery(NamedTuple):
    """The positions that a group needs evaluated: K of each of G games, [G * K, ...], those of one game together."""

    wanted: Bool[Array, " rows"]  # the others need no answer
    observation: Observation
    legal: Bool[Array, "rows actions"]
    player: Int32[Array, " rows"]  # who moves in the position
    colour: Int32[Array, " rows"]  # who moves in the game, and so is thinking
    notes: Any  # for `answer`


@dataclass(frozen=True)
class TreeSearch:
    game: Game
    settings: SearchSettings
    reuse: bool

    @property
    def leaves(self) -> int:
        return self.settings.leaves

    @property
    def slots(self) -> int | None:
        """The size of a tree; None for one with room for earlier searches."""
        return None if self.reuse else self.settings.simulations + 1

    def plant(self, states: Any) -> Tree:
        """The state of games at these positions, with nothing to do."""
        return search.plant(self.game, self.settings, states, self.slots)

    def positions(self, tree: Tree) -> Any:
        """[G, ...] the positions of the games."""
        return tree.states(tree.root)

    def begin(self, tree: Tree, key: Array, which: Array) -> Tree:
        """Think about a move in the games `which`."""
        budget = jnp.full(which.shape, self.settings.simulations, jnp.int32)
        return search.begin(tree, key, budget, which)

    def ask(self, tree: Tree) -> LeafQuery:
        """The positions to evaluate before the games can go on."""
        leaves = search.select(tree)
        path = jax.tree.map(lambda x: x.reshape(-1), leaves.path)
        # Walks that end where the tree has been before take the value from there, if it had room to keep it.
        wanted = path.active & ~leaves.over & (path.fresh | (path.node < 0))
        colour = jnp.repeat(_root_player(tree), self.leaves)
        return LeafQuery(wanted, leaves.observation, leaves.legal, leaves.player, colour, leaves)

    def asked(self, tree: Tree, query: LeafQuery) -> Any:
        """[G * K, ...] the positions of a query."""
        del tree
        return query.notes.states

    def answer(self, tree: Tree, notes: Leaves, evaluation: Evaluation) -> Tree:
        """Go on with the evaluation of a query."""
        return search.expand(tree, notes, evaluation)

    def ready(self, tree: Tree) -> Array:
        """Bool[G]: which games have finished their searches and may move."""
        return ~search.unfinished(tree) & (tree.budget > 0)

    def conclude(self, tree: Tree, key: Array, temperature: Array) -> SearchResult:
        """The moves to play, and what led to them."""
        return search.summarise(tree, key, temperature)

    def move(self, tree: Tree, actions: Array, keep: Array, which: Array) -> Tree:
        """Play the moves in the games `which`; where `keep` is set, one network thinks for both colours."""
        after = jax.vmap(self.game.step)(self.positions(tree), actions)
        if not self.reuse:
            return search.restart(tree, after, which)
        # Only one network has spoken in a tree: if another one moves next, it begins with an empty one.
        kept = which & (keep | (jax.vmap(self.game.to_play)(after) == _root_player(tree)))
        return search.restart(search.advance(tree, actions, kept), after, which & ~kept)

    def restart(self, tree: Tree, states: Any, which: Array) -> Tree:
        return search.restart(tree, states, which)


def _root_player(tree: Tree) -> Array:
    return tree.player[jnp.arange(len(tree.root)), tree.root].astype(jnp.int32)


class PolicyState(NamedTuple):
    positions: Any
    stage: Int8[Array, " games"]  # IDLE, ASKING or READY
    logits: Float32[Array, "games actions"]  # -inf for illegal moves
    value: Float32[Array, " games"]  # for the player to move


IDLE, ASKING, READY = range(3)


@dataclass(frozen=True)
class RawPolicy:
    """The policy as it is: one evaluation for each move. The methods are those of `TreeSearch`."""

    game: Game
    leaves: int = 1

    def plant(self, states: Any) -> PolicyState:
        count = len(jax.tree.leaves(states)[0])
        nothing = jnp.zeros((count, self.game.num_actions)), jnp.zeros(count)
        return PolicyState(states, jnp.full(count, IDLE, jnp.int8), *nothing)

    def positions(self, state: PolicyState) -> Any:
        return state.positions

    def begin(self, state: PolicyState, key: Array, which: Array) -> PolicyState:
        del key
        return state._replace(stage=jnp.where(which, ASKING, state.stage).astype(jnp.int8))

    def ask(self, state: PolicyState) -> LeafQuery:
        stay = jnp.ones(state.stage.shape, bool)
        states, look = self.game.step_and_look(state.positions, jnp.zeros(stay.shape, jnp.int32), stay)
        player, wanted = jax.vmap(self.game.to_play)(states), (state.stage == ASKING) & ~look.over
        return LeafQuery(wanted, look.observation, look.legal, player, player, look.legal)

    def asked(self, state: PolicyState, query: LeafQuery) -> Any:
        del query
        return state.positions

    def answer(self, state: PolicyState, notes: Array, evaluation: Evaluation) -> PolicyState:
        here = state.stage == ASKING
        logits = jnp.where(notes, jnp.maximum(evaluation.logits, jnp.finfo(jnp.float32).min), -jnp.inf)
        return state._replace(
            stage=jnp.where(here, READY, state.stage).astype(jnp.int8),
            logits=jnp.where(here[:, None], logits, state.logits),
            value=jnp.where(here, evaluation.value, state.value),
        )

    def ready(self, state: PolicyState) -> Array:
        return state.stage == READY

    def conclude(self, state: PolicyState, key: Array, temperature: Array) -> SearchResult:
        keys = jax.random.split(key, len(temperature))
        drawn = jax.vmap(jax.random.categorical)(keys, state.logits / jnp.maximum(temperature, 1e-6)[:, None])
        action = jnp.where(temperature > 0, drawn, jnp.argmax(state.logits, 1)).astype(jnp.int32)
        policy = jax.nn.softmax(state.logits)
        nothing = jnp.zeros(len(policy), jnp.float32)
        return SearchResult(jnp.zeros(policy.shape, jnp.int32), policy, state.value, action, nothing)

    def move(self, state: PolicyState, actions: Array, keep: Array, which: Array) -> PolicyState:
        del keep
        return self.restart(state, jax.vmap(self.game.step)(state.positions, actions), which)

    def restart(self, state: PolicyState, states: Any, which: Array) -> PolicyState:
        stage = jnp.where(which, IDLE, state.stage).astype(jnp.int8)
        return state._replace(positions=jax.tree.map(partial(choose, which), states, state.positions), stage=stage)


Thinking = TreeSearch | RawPolicy
