"""The device's part of a group of games, compiled once for all groups of a context.

Openings, histories and finished games are those of `tengen.selfplay`; here evaluations come from the host.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from tengen.config.settings.selfplay import SelfplaySettings
from tengen.context.listeners import Features
from tengen.context.thinking import LeafQuery, Thinking
from tengen.data.format.rows import RowFormat
from tengen.nets.outputs import Evaluation
from tengen.selfplay.history import FinishedGames, History, Moment, begun, blank, finish, remember
from tengen.selfplay.openings import prepare


class GroupState(NamedTuple):
    thinking: Any  # the state of `ContextPlan.thinking`
    history: History
    live: Array  # Bool[G]: places where a game is being played
    key: Array


@dataclass(frozen=True)
class ContextPlan:
    thinking: Thinking
    size: int  # G
    opening_moves: int
    row_format: RowFormat | None  # None if nobody wants rows
    features: tuple[tuple[str, Features], ...] = ()  # label -> a function of the states of its batches


@lru_cache(maxsize=16)
def program(plan: ContextPlan) -> "ContextProgram":
    """The same program for the same plan: compiling takes long."""
    return ContextProgram(plan)


class ContextProgram:
    """Compiled functions of a `GroupState`, which is donated for the state that they return."""

    def __init__(self, plan: ContextPlan) -> None:
        self.plan, self.thinking, self.game = plan, plan.thinking, plan.thinking.game
        self._features = dict(plan.features)
        self._openings = SelfplaySettings(games=plan.size, opening_moves=plan.opening_moves)
        key, which = jax.random.key(0), jax.ShapeDtypeStruct((plan.size,), bool)
        state = jax.eval_shape(self._start, key, which)
        notes = jax.eval_shape(self._ask, state)[0].notes
        logits = jax.ShapeDtypeStruct((plan.size * plan.thinking.leaves, self.game.num_actions), jnp.float32)
        value = jax.ShapeDtypeStruct(logits.shape[:1], jnp.float32)
        number, real = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((), jnp.float32)
        # Everything is compiled here, so that the playing thread, which must stop quickly, never compiles.
        self.start = compiled(self._start, key, which)
        self.ask = compiled(self._ask, state)
        self.answer = compiled(self._answer, state, notes, logits, value, donate=0)
        self.move = compiled(self._move, state, which, real, number, donate=0)
        self.end = compiled(self._end, state, number)
        self.renew = compiled(self._renew, state, which, which, donate=0)
        self.begin = compiled(self._begin, state, which, donate=0)

    def _start(self, key: Array, live: Array) -> GroupState:
        """New games in the places `live` (Bool[G]), thinking about their first moves."""
        draw, key = jax.random.split(key)
        openings = prepare(self.game, self._openings, self.plan.size, draw)
        history = blank(self.plan.row_format, self.plan.size, self.game.max_moves)
        history = history._replace(value=history.value.astype(jnp.float32))  # `game_end` reports them unrounded
        state = GroupState(self.thinking.plant(openings.states), begun(history, openings, live), live, key)
        return self._begin(state, live)

    def _begin(self, state: GroupState, which: Array) -> GroupState:
        draw, key = jax.random.split(state.key)
        return state._replace(thinking=self.thinking.begin(state.thinking, draw, which & state.live), key=key)

    def _ask(self, state: GroupState) -> tuple[LeafQuery, Array, dict[str, dict[str, Array]]]:
        """The positions to evaluate, Int32[G * K] the moves made in their games, and the features of each label."""
        query = self.thinking.ask(state.thinking)
        states = self.thinking.asked(state.thinking, query)
        labels = ((label, function) for label, function in self._features.items() if label != "train")
        features = {label: dict(function(states)) for label, function in labels}
        return query, jnp.repeat(state.history.ply, self.thinking.leaves), features

    def _answer(self, state: GroupState, notes: Any, logits: Array, value: Array) -> tuple[GroupState, Array]:
        """Go on with the answers; also returns Bool[G]: where a move can be made."""
        thinking: Any = self.thinking.answer(state.thinking, notes, Evaluation(logits, value))
        return state._replace(thinking=thinking), self.thinking.ready(thinking) & state.live

    def _move(self, state: GroupState, keep: Array, temperature: Array, moves: Array) -> tuple[GroupState, Array]:
        """Make the moves of the games that are ready; also returns Bool[G]: which games are over then.

        The first `moves` of a game are drawn at the temperature. `keep` Bool[G]: both colours have the same network.
        """
        thinking, game = self.thinking, self.game
        ready = thinking.ready(state.thinking) & state.live
        draw, key = jax.random.split(state.key)
        result = thinking.conclude(state.thinking, draw, jnp.where(state.history.ply < moves, temperature, 0.0))
        positions, stay = thinking.positions(state.thinking), jnp.ones(ready.shape, bool)
        _, look = game.step_and_look(positions, jnp.zeros(ready.shape, jnp.int32), stay)
        player, value = jax.vmap(game.to_play)(positions), jnp.clip(result.value, -1, 1)
        moment = Moment(result.action, player, value, result.surprise, stay, look.observation, result.policy, {})
        after: Any = thinking.move(state.thinking, result.action, keep, ready)
        over = jax.vmap(game.is_over)(thinking.positions(after)) & state.live
        return GroupState(after, remember(state.history, moment, ready), state.live, key), over

    def _end(self, state: GroupState, place: Array) -> FinishedGames:
        """ONE game that is over."""
        positions = self.thinking.positions(state.thinking)
        history, last = jax.tree.map(lambda leaf: leaf[place][None], (state.history, positions))
        number, extra = jnp.zeros((1, 2), jnp.uint32), jax.vmap(self.game.record_facts)(last)
        found = finish(self.game, self.plan.row_format, history, last, number, extra, jnp.ones(1, bool))
        if "train" not in self._features:
            return found
        return found._replace(rows=found.rows | dict(self._features["train"](self._replayed(history))))

    def _replayed(self, history: History) -> Any:
        """[M, ...]: the positions before the moves of ONE game; those after its end mean nothing."""
        start = self.game.init_varied(jax.random.wrap_key_data(history.seed[0]), self._openings.komi_spread)
        actions = jnp.maximum(history.action[0], 0).astype(jnp.int32)
        return lax.scan(lambda state, action: (self.game.step(state, action), state), start, actions)[1]

    def _renew(self, state: GroupState, over: Array, again: Array) -> GroupState:
        """Remove the games `over`, and begin new ones in the places `again`."""
        draw, key = jax.random.split(state.key)
        openings = prepare(self.game, self._openings, self.plan.size, draw)
        return GroupState(
            thinking=self.thinking.restart(state.thinking, openings.states, again),
            history=begun(state.history, openings, again),
            live=state.live & (again | ~over),
            key=key,
        )


def compiled(function: Callable[..., Any], *shapes: Any, donate: int | tuple[int, ...] = ()) -> Callable[..., Any]:
    return jax.jit(function, donate_argnums=donate).lower(*shapes).compile()
