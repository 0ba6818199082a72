"""Games against an opponent as pure functions of a batch. Nothing here needs gymnasium."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from tengen.games.core import Game, Observation, freeze
from tengen.games.players import Rule


class EnvGames(NamedTuple):
    """B games that wait for the learner, or are over."""

    states: Any  # [B, ...]
    player: Array  # Int8[B]: which player the learner is
    done: Array  # Bool[B]: over, or ended by an illegal move


class EnvStep(NamedTuple):
    observation: Observation  # [B, ...]: of the position in which the learner moves next, or of the last one
    legal: Array  # Bool[B, A]
    reward: Array  # Float32[B]
    terminated: Array  # Bool[B]
    illegal: Array  # Bool[B]: the learner's move was
    final: Observation | None = None  # where games were started anew in this step: of their last positions
    final_legal: Array | None = None


@dataclass(frozen=True)
class EnvProgram:
    """A game, the opponent's rule, and the player that the learner is (None: drawn for every game).

    A rule `on_host` is a Python function of NumPy arrays; with any other, a step is one compiled call.
    """

    game: Game
    rule: Rule
    player: int | None
    on_host: bool

    def step(self, games: EnvGames, actions: Array, params: Any, key: Array, again: str) -> tuple[EnvGames, EnvStep]:
        """The learner's moves (Int32[B]), and the opponent's until it is the learner's turn again.

        Games that are `done` begin anew instead, if `again` is "next"; those that end do so in this very step if it is
        "same".
        """
        return (self._step if self.on_host else self._compiled_step)(games, actions, params, key, again)

    def _step(self, games: EnvGames, actions: Array, params: Any, key: Array, again: str) -> tuple[EnvGames, EnvStep]:
        answer, begin = jax.random.split(key)
        states, illegal = self._move(games, actions)
        _, states = self._answers(games.player, params, (answer, states), games.done | illegal)
        moved = games._replace(states=states)
        found = self._settle(games, moved, illegal)
        moved = moved._replace(done=found.terminated | games.done)
        if again == "never":
            return moved, found
        which = games.done if again == "next" else moved.done
        renewed = self.begin(moved, which, params, begin)
        observation, legal = self._look(renewed.states)
        if again == "next":
            return renewed, found._replace(observation=observation, legal=legal)
        return renewed, found._replace(
            observation=observation, legal=legal, final=found.observation, final_legal=found.legal
        )

    _compiled_step = jax.jit(_step, static_argnames=("self", "again"))

    def start(self, games: int, params: Any, key: Array) -> tuple[EnvGames, EnvStep]:
        everywhere = jnp.ones(games, bool)
        blank = EnvGames(self._blank(games), jnp.zeros(games, jnp.int8), everywhere)
        return self.restart(blank, everywhere, params, key)

    def restart(self, games: EnvGames, which: Array, params: Any, key: Array) -> tuple[EnvGames, EnvStep]:
        """New games in the place of those in `which`."""
        games = (self.begin if self.on_host else self._compiled_begin)(games, which, params, key)
        observation, legal = self._look(games.states)
        nothing = jnp.zeros(which.shape, bool)
        return games, EnvStep(observation, legal, jnp.zeros(which.shape), nothing, nothing)

    def begin(self, games: EnvGames, which: Array, params: Any, key: Array) -> EnvGames:
        """New games in the place of those in `which`, until the learner is to move in them.

        One that ends before, because the opponent moves first, is replaced by another.
        """

        def left(carry: Any) -> Array:
            return carry[2].any()

        def once(carry: Any) -> Any:
            key, games, which = carry
            key, new, play = jax.random.split(key, 3)
            games = self._renew(games, which, new)
            _, states = self._answers(games.player, params, (play, games.states), games.done)
            games = games._replace(states=states)
            return key, games, which & self._over(states)

        return self._while(left, once, (key, games, which))[1]

    _compiled_begin = jax.jit(begin, static_argnames="self")

    def _answers(self, player: Array, params: Any, carry: tuple[Array, Any], idle: Array) -> tuple[Array, Any]:
        """The opponent's moves, until it is the learner's turn or the game is over; none where `idle`."""

        def waiting(carry: Any) -> Array:
            return self._waiting(carry[1], player, idle).any()

        def move(carry: Any) -> Any:
            key, states = carry
            key, now = jax.random.split(key)
            which = self._waiting(states, player, idle)
            if self.on_host:
                actions = jnp.asarray(self.rule(params, now, *jax.device_get((states, which))), jnp.int32)
            else:
                actions = self.rule(params, now, states, which).astype(jnp.int32)
            return key, self._apply(states, actions, which)

        return self._while(waiting, move, carry)

    def _while(self, goes_on: Callable[[Any], Array], body: Callable[[Any], Any], carry: Any) -> Any:
        if not self.on_host:
            return lax.while_loop(goes_on, body, carry)
        while goes_on(carry):
            carry = body(carry)
        return carry

    # The pieces, which are compiled one by one for an opponent on the host.

    @partial(jax.jit, static_argnames="self")
    def _move(self, games: EnvGames, actions: Array) -> tuple[Any, Array]:
        """The learner's moves, where they are legal; which are not."""
        legal = jax.vmap(self.game.legal_actions)(games.states)
        inside = (actions >= 0) & (actions < self.game.num_actions)
        good = inside & jnp.take_along_axis(legal, jnp.where(inside, actions, 0)[:, None], 1)[:, 0] & ~games.done
        return self._apply(games.states, jnp.where(good, actions, 0), good), ~good & ~games.done

    @partial(jax.jit, static_argnames="self")
    def _apply(self, states: Any, actions: Array, which: Array) -> Any:
        moved = jax.vmap(self.game.step)(states, actions)
        return jax.vmap(freeze)(~which, states, moved)

    @partial(jax.jit, static_argnames="self")
    def _waiting(self, states: Any, player: Array, idle: Array) -> Array:
        return ~idle & ~self._over(states) & (jax.vmap(self.game.to_play)(states) != player)

    @partial(jax.jit, static_argnames="self")
    def _settle(self, before: EnvGames, games: EnvGames, illegal: Array) -> EnvStep:
        look = jax.vmap(self.game.look)(games.states)
        result = jnp.take_along_axis(look.returns, games.player[:, None].astype(jnp.int32), 1)[:, 0]
        reward = jnp.where(illegal, -1.0, jnp.where(look.over, result, 0.0))
        ended = (look.over | illegal) & ~before.done
        return EnvStep(
            look.observation, look.legal, jnp.where(before.done, 0.0, reward).astype(jnp.float32), ended, illegal
        )

    @partial(jax.jit, static_argnames="self")
    def _renew(self, games: EnvGames, which: Array, key: Array) -> EnvGames:
        first, seats = jax.random.split(key)
        new = jax.vmap(self.game.init)(jax.random.split(first, len(which)))
        player = jnp.where(which, self._seats(seats, len(which)), games.player)
        return EnvGames(jax.vmap(freeze)(~which, games.states, new), player, games.done & ~which)

    @partial(jax.jit, static_argnames="self")
    def _look(self, states: Any) -> tuple[Observation, Array]:
        look = jax.vmap(self.game.look)(states)
        return look.observation, look.legal

    @partial(jax.jit, static_argnames="self")
    def _over(self, states: Any) -> Array:
        return jax.vmap(self.game.is_over)(states)

    @partial(jax.jit, static_argnames=("self", "games"))
    def _blank(self, games: int) -> Any:
        return jax.vmap(self.game.init)(jax.random.split(jax.random.key(0), games))

    def _seats(self, key: Array, games: int) -> Array:
        if self.player is not None:
            return jnp.full(games, self.player, jnp.int8)
        return jax.random.bernoulli(key, 0.5, (games,)).astype(jnp.int8)
