"""How the games of a group find their moves: with a search tree each, or from the policy alone.

Both are pure functions of a *mind* (a pytree, [G, ...] for G games), with the same names and meaning.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game, Observation
from tengen.nets.outputs import Evaluation
from tengen.search.result import SearchResult
from tengen.search.simulation import Leaves
from tengen.search.tree import Tree


class LeafQuery(NamedTuple):
    """What a group wants to know: K positions of each of G games, [G * K, ...], those of one game together."""

    wanted: Array  # Bool[G * K]: the others need no answer
    observation: Observation
    legal: Array  # Bool[G * K, A]
    player: Array  # Int32[G * K]: who moves in the position
    colour: Array  # Int32[G * K]: who moves in the game, and so is thinking
    notes: Any  # what `answer` needs to find its place again


class Thinking(Protocol):
    """What the two have in common. `which` and what is returned without a word are Bool[G]."""

    @property
    def leaves(self) -> int:
        """K."""
        ...

    def plant(self, states: Any) -> Any:
        """The mind of games at these positions, with nothing to do."""
        ...

    def states(self, mind: Any) -> Any:
        """[G, ...] the positions of the games."""
        ...

    def begin(self, mind: Any, key: Array, which: Array) -> Any:
        """Think about a move in the games `which`."""
        ...

    def ask(self, mind: Any) -> LeafQuery:
        """What has to be known before they can go on."""
        ...

    def answer(self, mind: Any, notes: Any, evaluation: Evaluation) -> Any:
        """Go on with what was asked."""
        ...

    def ready(self, mind: Any) -> Array:
        """Who has thought enough, and may move."""
        ...

    def conclude(self, mind: Any, key: Array, temperature: Array) -> SearchResult:
        """What was found out."""
        ...

    def move(self, mind: Any, actions: Array, keep: Array, which: Array) -> Any:
        """Play the moves in the games `which`; where `keep` says so, what is known about what follows is kept."""
        ...

    def restart(self, mind: Any, states: Any, which: Array) -> Any:
        """Put other positions in the place of the games `which`."""
        ...


@dataclass(frozen=True)
class Searching:
    """A tree for each game."""

    game: Game
    settings: SearchSettings
    reuse: bool

    @property
    def leaves(self) -> int:
        return self.settings.leaves

    @property
    def slots(self) -> int | None:
        """Of a tree; None for room for what earlier searches leave."""
        return None if self.reuse else self.settings.simulations + 1

    def plant(self, states: Any) -> Tree:
        return search.plant(self.game, self.settings, states, self.slots)

    def states(self, mind: Tree) -> Any:
        return mind.states(mind.root)

    def begin(self, mind: Tree, key: Array, which: Array) -> Tree:
        budget = jnp.full(which.shape, self.settings.simulations, jnp.int32)
        return search.begin(mind, key, budget, which)

    def ask(self, mind: Tree) -> LeafQuery:
        leaves = search.select(mind)
        path = jax.tree.map(lambda x: x.reshape(-1), leaves.path)
        # Walks that end where the tree has been before take the value from there, if it had room to keep it.
        wanted = path.active & ~leaves.over & (path.fresh | (path.node < 0))
        colour = mind.player[jnp.arange(len(mind.root)), mind.root].astype(jnp.int32)
        colour = jnp.repeat(colour, self.leaves)
        return LeafQuery(wanted, leaves.observation, leaves.legal, leaves.player, colour, leaves)

    def answer(self, mind: Tree, notes: Leaves, evaluation: Evaluation) -> Tree:
        return search.expand(mind, notes, evaluation)

    def ready(self, mind: Tree) -> Array:
        return ~search.unfinished(mind) & (mind.budget > 0)

    def conclude(self, mind: Tree, key: Array, temperature: Array) -> SearchResult:
        return search.summarise(mind, key, temperature)

    def move(self, mind: Tree, actions: Array, keep: Array, which: Array) -> Tree:
        after = jax.vmap(self.game.step)(self.states(mind), actions)
        if not self.reuse:
            return search.restart(mind, after, which)
        # Only one network has spoken in a tree: if another one moves next, it begins with an empty one.
        same = jax.vmap(self.game.to_play)(after) == mind.player[jnp.arange(len(mind.root)), mind.root]
        kept = which & (keep | same)
        return search.restart(search.advance(mind, actions, kept), after, which & ~kept)

    def restart(self, mind: Tree, states: Any, which: Array) -> Tree:
        return search.restart(mind, states, which)


class Guess(NamedTuple):
    """The mind of `Guessing`."""

    states: Any
    stage: Array  # Int8[G]: IDLE, ASKING or READY
    logits: Array  # Float32[G, A]: -inf for what is not legal
    value: Array  # Float32[G]: for the player to move


IDLE, ASKING, READY = range(3)


@dataclass(frozen=True)
class Guessing:
    """The policy as it is: one evaluation for each move."""

    game: Game
    leaves: int = 1

    def plant(self, states: Any) -> Guess:
        count = len(jax.tree.leaves(states)[0])
        nothing = jnp.zeros((count, self.game.num_actions)), jnp.zeros(count)
        return Guess(states, jnp.full(count, IDLE, jnp.int8), *nothing)

    def states(self, mind: Guess) -> Any:
        return mind.states

    def begin(self, mind: Guess, key: Array, which: Array) -> Guess:
        del key
        return mind._replace(stage=jnp.where(which, ASKING, mind.stage).astype(jnp.int8))

    def ask(self, mind: Guess) -> LeafQuery:
        stay = jnp.ones(mind.stage.shape, bool)
        states, look = self.game.step_and_look(mind.states, jnp.zeros(stay.shape, jnp.int32), stay)
        player = jax.vmap(self.game.to_play)(states)
        return LeafQuery((mind.stage == ASKING) & ~look.over, look.observation, look.legal, player, player, look.legal)

    def answer(self, mind: Guess, notes: Array, evaluation: Evaluation) -> Guess:
        here = mind.stage == ASKING
        logits = jnp.where(notes, jnp.maximum(evaluation.logits, jnp.finfo(jnp.float32).min), -jnp.inf)
        return mind._replace(
            stage=jnp.where(here, READY, mind.stage).astype(jnp.int8),
            logits=jnp.where(here[:, None], logits, mind.logits),
            value=jnp.where(here, evaluation.value, mind.value),
        )

    def ready(self, mind: Guess) -> Array:
        return mind.stage == READY

    def conclude(self, mind: Guess, key: Array, temperature: Array) -> SearchResult:
        keys = jax.random.split(key, len(temperature))
        drawn = jax.vmap(jax.random.categorical)(keys, mind.logits / jnp.maximum(temperature, 1e-6)[:, None])
        action = jnp.where(temperature > 0, drawn, jnp.argmax(mind.logits, 1)).astype(jnp.int32)
        policy = jax.nn.softmax(mind.logits)
        return SearchResult(jnp.zeros(policy.shape, jnp.int32), policy, mind.value, action)

    def move(self, mind: Guess, actions: Array, keep: Array, which: Array) -> Guess:
        del keep
        return self.restart(mind, jax.vmap(self.game.step)(mind.states, actions), which)

    def restart(self, mind: Guess, states: Any, which: Array) -> Guess:
        def chosen(new: Array, old: Array) -> Array:
            return jnp.where(which.reshape(-1, *[1] * (old.ndim - 1)), new, old)

        stage = jnp.where(which, IDLE, mind.stage).astype(jnp.int8)
        return mind._replace(states=jax.tree.map(chosen, states, mind.states), stage=stage)
