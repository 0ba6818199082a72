"""What the device does for a group of games, compiled once for all groups of a context."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tengen.config.settings.selfplay import SelfplaySettings
from tengen.context.thinking import Guessing, LeafQuery, Searching, Thinking
from tengen.data.format.rows import RowFormat, Rows
from tengen.games.core import Game
from tengen.nets.outputs import Evaluation
from tengen.selfplay.history import History, Moment, begun, blank, remember, teach
from tengen.selfplay.openings import PreparedGames, prepare


class GamePlace(NamedTuple):
    """G games in the middle of being played."""

    mind: Any
    history: History | None  # None if nobody wants to learn
    ply: Array  # Int32[G]
    live: Array  # Bool[G]: a place where a game is being played
    key: Array


class MovedGames(NamedTuple):
    """What has happened in G games, after those that were ready made their moves."""

    action: Array  # Int32[G]: where one was made
    value: Array  # Float32[G]: what the player who made it expected
    over: Array  # Bool[G]: has ended with it
    result: Array  # Float32[G]: for player 0
    facts: dict[str, Array]  # [G, ...]: see Game.record_facts


@dataclass(frozen=True)
class ContextPlan:
    """What programs are compiled for."""

    thinking: Searching | Guessing
    size: int  # G
    opening_moves: int
    learning: RowFormat | None  # the rows that someone wants


@lru_cache(maxsize=16)
def program(plan: ContextPlan) -> "ContextProgram":
    """The same program for the same plan: compiling takes long."""
    return ContextProgram(plan)


class ContextProgram:
    """Compiled functions of a `GamePlace`, whose memory each of them uses again for the one it gives back."""

    def __init__(self, plan: ContextPlan) -> None:
        self.plan = plan
        self.game: Game = plan.thinking.game
        self.thinking: Thinking = plan.thinking
        self._openings = SelfplaySettings(games=plan.size, opening_moves=plan.opening_moves)
        key, which = jax.random.key(0), jax.ShapeDtypeStruct((plan.size,), bool)
        place, _ = jax.eval_shape(self._start, key, which)
        notes = jax.eval_shape(self._ask, place).notes
        logits = jax.ShapeDtypeStruct((plan.size * plan.thinking.leaves, self.game.num_actions), jnp.float32)
        value = jax.ShapeDtypeStruct(logits.shape[:1], jnp.float32)
        temperature = jax.ShapeDtypeStruct((plan.size,), jnp.float32)
        # All of it is compiled here: later, a thread that others may want to stop must not be busy for long.
        self.start = compiled(self._start, key, which)
        self.ask = compiled(self._ask, place)
        self.answer = compiled(self._answer, place, notes, logits, value, donate=0)
        self.move = compiled(self._move, place, which, temperature, donate=0)
        self.renew = compiled(self._renew, place, which, which, donate=0)
        self.begin = compiled(self._begin, place, which, donate=0)
        number = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((2,), jnp.uint32)
        self.teach = compiled(self._teach, place, *number) if plan.learning else None

    def _start(self, key: Array, live: Array) -> tuple[GamePlace, PreparedGames]:
        """New games, where `live` says so, that think about their first moves."""
        draw, key = jax.random.split(key)
        openings = prepare(self.game, self._openings, self.plan.size, draw)
        form = self.plan.learning
        history = None if form is None else blank(form, self.plan.size, self.game.max_moves)
        if history is not None:
            history = begun(history, openings.actions, live)
        place = GamePlace(self.thinking.plant(openings.states), history, openings.length, live, key)
        return self._begin(place, live), openings

    def _begin(self, place: GamePlace, which: Array) -> GamePlace:
        """Think about the next moves of the games `which`."""
        draw, key = jax.random.split(place.key)
        return place._replace(mind=self.thinking.begin(place.mind, draw, which & place.live), key=key)

    def _ask(self, place: GamePlace) -> LeafQuery:
        """What has to be evaluated."""
        return self.thinking.ask(place.mind)

    def _answer(self, place: GamePlace, notes: Any, logits: Array, value: Array) -> tuple[GamePlace, Array]:
        """Go on with the answers; Bool[G] where a move can be made."""
        mind = self.thinking.answer(place.mind, notes, Evaluation(logits, value))
        return place._replace(mind=mind), self.thinking.ready(mind) & place.live

    def _move(self, place: GamePlace, keep: Array, temperature: Array) -> tuple[GamePlace, MovedGames]:
        """Make the moves of the games that are ready, at a `temperature` Float32[G].

        `keep` Bool[G]: both colours have the same network.
        """
        thinking, game = self.thinking, self.game
        ready = thinking.ready(place.mind) & place.live
        draw, key = jax.random.split(place.key)
        result = thinking.conclude(place.mind, draw, temperature)
        history = self._remember(place, result, ready)
        mind = thinking.move(place.mind, result.action, keep, ready)
        states = thinking.states(mind)
        moved = MovedGames(
            action=result.action,
            value=result.value,
            over=jax.vmap(game.is_over)(states) & place.live,
            result=jax.vmap(game.returns)(states)[:, 0],
            facts=jax.vmap(game.record_facts)(states),
        )
        return GamePlace(mind, history, place.ply + ready, place.live, key), moved

    def _remember(self, place: GamePlace, result: Any, ready: Array) -> History | None:
        """What will teach something when the game is over."""
        if place.history is None:
            return None
        states, stay = self.thinking.states(place.mind), jnp.ones(ready.shape, bool)
        _, look = self.game.step_and_look(states, jnp.zeros(ready.shape, jnp.int32), stay)
        player = jax.vmap(self.game.to_play)(states)
        moment = Moment(result.action, player, result.value, stay, look.observation, result.policy)
        return remember(place.history, place.ply, moment, ready)

    def _renew(self, place: GamePlace, over: Array, again: Array) -> tuple[GamePlace, PreparedGames]:
        """Take the games `over` away, and begin new ones in the places `again`."""
        draw, key = jax.random.split(place.key)
        openings = prepare(self.game, self._openings, self.plan.size, draw)
        history = place.history if place.history is None else begun(place.history, openings.actions, again)
        return GamePlace(
            mind=self.thinking.restart(place.mind, openings.states, again),
            history=history,
            ply=jnp.where(again, openings.length, place.ply),
            live=place.live & (again | ~over),
            key=key,
        ), openings

    def _teach(self, place: GamePlace, slot: Array, number: Array) -> tuple[Rows, Array]:
        """The rows of ONE game that is over, [M, ...], and Bool[M] which of them there are."""
        form, history = self.plan.learning, place.history
        assert form is not None
        assert history is not None
        states = self.thinking.states(place.mind)
        one, last, length = jax.tree.map(lambda leaf: leaf[slot][None], (history, states, place.ply))
        return teach(self.game, form, one, last, length, number[None], 0.0)


def compiled(function: Callable[..., Any], *shapes: Any, donate: int | tuple[int, ...] = ()) -> Callable[..., Any]:
    """The function, compiled for arguments of these shapes."""
    return jax.jit(function, donate_argnums=donate).lower(*shapes).compile()
