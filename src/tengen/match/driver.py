"""Plays whole matches: on the device if both players live there, else at tables with engines.

A match on the device is played in rounds of the same size, which share one compiled program. Each has its own key: a
round that is played again gives the same games. Where the pairs cannot be divided evenly, the last round begins early.
"""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tengen.games.batching import choose
from tengen.games.core import Game
from tengen.games.players import Player
from tengen.match.device_match import NO_MOVE, Match, MatchStanding, Stop, play
from tengen.match.engine_match import EngineMatch, Side
from tengen.match.match_games import MatchGames
from tengen.match.openings import MatchOpenings, openings

Show = Callable[[MatchStanding], object]


@dataclass(frozen=True)
class MatchPlan:
    games: int
    opening_moves: int
    seed: int
    parallel: int  # engines that think at once
    tables: int  # games at once, if a player is an engine
    at_once: int  # games at once, if both players live on the device


class MatchRounds:
    """`pairs` pairs of games between A and B on the device, at most `at_once` of them in a round."""

    def __init__(
        self, game: Game, a: Player, b: Player, key: Array, pairs: int, at_once: int, opening_moves: int
    ) -> None:
        self.game, self.a, self.b, self.pairs = game, a, b, pairs
        self.count = math.ceil(pairs / at_once)
        self.size = math.ceil(pairs / self.count)  # pairs of one round
        self._opening, self._playing = jax.random.split(key)
        self._moves = opening_moves

    @cached_property
    def openings(self) -> MatchOpenings:
        return openings(self.game, self._opening, self.pairs, self._moves)

    def first_pair(self, number: int) -> int:
        return min(number * self.size, self.pairs - self.size)

    def play(self, number: int, **options: Any) -> Match:
        """Plays one round; the options are those of `device_match.play`."""
        first = self.first_pair(number)
        start = jax.tree.map(lambda leaf: leaf[first : first + self.size], self.openings)
        return play(self.game, self.a, self.b, jax.random.fold_in(self._playing, number), start=start, **options)


def play_match(
    game: Game,
    sides: tuple[Side, Side],
    plan: MatchPlan,
    games: MatchGames,
    stop: Stop,
    show: Show = lambda standing: None,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Plays and adds the games that are missing, until all are there or `stop` says so.

    `show` gets the standing from time to time; `say` gets, before the first game, where the rules of an engine may
    differ from those of the match, and whether openings repeat. TengenError if an engine does not start.
    """
    a, b = sides
    key, pairs = jax.random.key(plan.seed), plan.games // 2
    if not games.missing:
        return
    if isinstance(a, Player) and isinstance(b, Player):
        rounds = MatchRounds(game, a, b, key, pairs, plan.at_once // 2, plan.opening_moves)
        _tell(rounds.openings, game, say)
        _on_device(rounds, games, stop, show)
        return
    opening, playing = jax.random.split(key)

    def start() -> MatchOpenings:
        return _tell(openings(game, opening, pairs, plan.opening_moves), game, say)

    tables = min(plan.tables, len(games.missing))
    at_tables = EngineMatch(game, sides, start, playing, min(plan.parallel, tables), tables, say)
    with contextlib.closing(at_tables.play(games.missing, stop)) as played:
        for one in played:
            if one is not None:
                games.add(one)
            show(MatchStanding(len(games.played), at_tables.under_way, at_tables.moves, at_tables.compiling))


def _tell(start: MatchOpenings, game: Game, say: Callable[[str], None]) -> MatchOpenings:
    """The openings, after the user was told if they repeat."""
    if note := start.note(game):
        say(note)
    return start


def _on_device(rounds: MatchRounds, games: MatchGames, stop: Stop, show: Show) -> None:
    """Rounds of many games; one that was interrupted is played again later, and gives the same games."""
    moves = 0
    for number in range(rounds.count):
        first, before = rounds.first_pair(number), len(games.played)
        if all(place in games.played for place in range(2 * first, 2 * (first + rounds.size))):
            continue
        if stop():
            return
        show(MatchStanding(before, 2 * rounds.size, moves, compiling=not moves))

        def update(now: MatchStanding, before: int = before, moves: int = moves) -> None:
            show(MatchStanding(before + now.finished, now.under_way, moves + now.moves))

        match = rounds.play(number, stop=stop, show=update, exit_while_compiling=not moves)
        if match.stopped:
            return
        games.add(*match.games(first, final_facts(rounds.game, match).get("score")))
        moves += int((match.length - match.opening_moves).sum())
    show(MatchStanding(len(games.played), 0, moves))


def final_facts(game: Game, match: Match) -> dict[str, np.ndarray]:
    """{name: [G]}: what `Game.record_facts` gives for the final positions of these games."""
    actions = np.full((len(match.actions), game.max_moves), NO_MOVE, np.int32)
    actions[:, : match.actions.shape[1]] = match.actions
    return jax.device_get(_facts(game, jnp.asarray(match.seeds), jnp.asarray(actions)))


@partial(jax.jit, static_argnames="game")
def _facts(game: Game, seeds: Array, actions: Array) -> Any:
    """Plays [G, M] actions again for the facts about the final positions."""

    def move(states: Any, actions: Array) -> tuple[Any, None]:
        moved = jax.vmap(game.step)(states, jnp.maximum(actions, 0))
        return jax.tree.map(partial(choose, actions >= 0), moved, states), None

    states = jax.vmap(game.init)(jax.random.wrap_key_data(seeds))
    states, _ = lax.scan(move, states, actions.T)
    return jax.vmap(game.record_facts)(states)
