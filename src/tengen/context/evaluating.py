"""Matches between callbacks, networks and other players, for `GameContext.evaluate`."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from tengen import nets, schema
from tengen.config.settings.match import MatchSettings
from tengen.config.settings.search import SearchSettings
from tengen.context import batches, replies
from tengen.context.batches import Batch
from tengen.context.group import Questions
from tengen.context.listeners import Features, Listener
from tengen.context.settings import ContextSettings
from tengen.context.thinking import LeafQuery, Thinking, TreeSearch
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.games.players import Player
from tengen.match import player_spec, players
from tengen.match.driver import MatchRounds
from tengen.match.results import MatchResult
from tengen.nets.evaluators import evaluator
from tengen.nets.outputs import Evaluation


@dataclass(frozen=True)
class EvaluationMatch:
    """A match whose players think like those of a context, without noise."""

    game: Game
    settings: ContextSettings
    thinking: Thinking
    listeners: Sequence[Listener] = ()

    def player(self, given: Any, seat: str, version: int, params: Callable[[], Mapping[int, Any]]) -> Player:
        """The player that was given for `black` or `white`. TengenError if it cannot play."""
        if isinstance(given, Player):
            return given
        if isinstance(given, nnx.Module):
            return self._network(*evaluator(nets.fold(given)), name=type(given).__name__)  # pyright: ignore
        if isinstance(given, str | os.PathLike):
            return self._named(os.fspath(given))
        if not callable(given):
            raise OptionError(
                f"evaluate: {seat}: expected a function, a network, its path, random or mcts:200, "
                f"got {schema.quote(given)}"
            )
        known = (one for one in self.listeners if one.function == given)
        listener = next(known, Listener(given, self.settings.batch_size))
        rule = CallbackRule(
            self._strongest(), listener, f"actor_{seat}", version, params, self.settings.arrays == "jax"
        )
        return Player(getattr(given, "__name__", type(given).__name__), rule, on_host=True, numpy=False)

    def play(self, black: Player, white: Player, games: int, swap: bool, opening_moves: int, seed: int) -> MatchResult:
        """The result for `black`, who moves first in all games, or with `swap` in every second."""
        given = {"games": games if swap else 2 * games, "opening_moves": opening_moves}
        schema.from_options(MatchSettings, given, "evaluate")
        if black.name == white.name:
            white = replace(white, name=f"{white.name}#2")
        pairs = games // 2 if swap else games
        at_once = max(1, min(pairs, self.settings.num_games // (2 if swap else 1)))
        rounds = MatchRounds(self.game, black, white, jax.random.key(seed), pairs, at_once, opening_moves)
        results, finished = np.zeros(2 * pairs), np.zeros(2 * pairs, bool)
        for number in range(rounds.count):
            played, first = rounds.play(number, swap=swap), 2 * rounds.first_pair(number)
            results[first : first + len(played.results)] = played.results
            finished[first : first + len(played.results)] = played.finished
        return MatchResult.of_games(black.name, white.name, results, finished)

    def _search(self) -> SearchSettings | None:
        return players.strongest(self.thinking.settings) if isinstance(self.thinking, TreeSearch) else None

    def _strongest(self) -> Thinking:
        settings = self._search()
        return self.thinking if settings is None else TreeSearch(self.game, settings, reuse=False)

    def _network(self, evaluate: Any, params: Any, name: str) -> Player:
        settings = self._search()
        if settings is None:
            return players.policy(name, evaluate, self.game, params)
        return players.network(name, evaluate, self.game, settings, params)

    def _named(self, text: str) -> Player:
        spec = player_spec.parse(text)
        if spec.kind == "engine":
            raise OptionError(f"evaluate: {text}: other engines play in `tengen match`")
        spec.check(self.game)
        return spec.player(self.game, self._search())


@dataclass(frozen=True, eq=False)
class CallbackRule:
    """Plays by a callback, which gets batches of positions as in self-play."""

    thinking: Thinking
    listener: Listener
    label: str
    version: int
    params: Callable[[], Mapping[int, Any]]
    on_device: bool

    def __call__(self, params: Any, key: Array, states: Any, which: Array) -> Array:
        del params
        thinking, listener = self.thinking, self.listener
        starting, choosing = jax.random.split(key)
        state = _begun(thinking, states, starting, which)
        batch = batches.for_actor(self.label, thinking.game, listener, self.on_device)
        batch.params = {version: one for version, one in self.params().items() if version == self.version}
        rows = len(which) * thinking.leaves
        questions = Questions(rows, thinking.leaves, thinking.game.num_actions, frozenset(batch), self.on_device)
        numbers, versions = np.arange(len(which)), np.full((2, len(which)), self.version)
        ready = np.zeros(len(which), bool)
        while (np.asarray(which) & ~ready).any():
            query, features = _ask(thinking, listener.features, state)
            questions.ask(query, np.full(rows, -1, np.int32), {self.label: features})
            for start in range(0, questions.missing, listener.batch_size):
                asked = questions.wanted[start : start + listener.batch_size]
                questions.show(asked, batch, 0, numbers, versions)
                self._answer(batch, len(asked))
                questions.hear(asked, batch.reply, 0)
            state, ready = _answer(thinking, state, query.notes, questions.logits, questions.value)
            ready = np.asarray(ready)
        return _conclude(thinking, state, choosing)

    def _answer(self, batch: Batch, count: int) -> None:
        batches.pad(batch, count)
        reply = self.listener.function(batch)
        with replies.given_by(self.listener.function):
            replies.accept(batch, reply)


@partial(jax.jit, static_argnums=0)
def _begun(thinking: Thinking, states: Any, key: Array, which: Array) -> Any:
    return thinking.begin(thinking.plant(states), key, which)  # pyright: ignore[reportArgumentType]


@partial(jax.jit, static_argnums=(0, 1))
def _ask(thinking: Thinking, features: Features | None, state: Any) -> tuple[LeafQuery, dict[str, Array]]:
    query = thinking.ask(state)
    return query, {} if features is None else dict(features(thinking.asked(state, query)))


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _answer(thinking: Thinking, state: Any, notes: Any, logits: Array, value: Array) -> tuple[Any, Array]:
    state = thinking.answer(state, notes, Evaluation(logits, value))
    return state, thinking.ready(state)


@partial(jax.jit, static_argnums=0)
def _conclude(thinking: Thinking, state: Any, key: Array) -> Array:
    return thinking.conclude(state, key, jnp.zeros(len(thinking.ready(state)))).action
