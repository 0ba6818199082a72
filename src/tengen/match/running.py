"""A whole match: on the device if both players live there, else in a hall of tables; every game noted as it ends."""

import contextlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial

import jax

from tengen.games.core import Game
from tengen.match.device_match import Match
from tengen.match.engine_match import EngineMatch, Side
from tengen.match.folder import MatchFolder
from tengen.match.game_record import of_match
from tengen.match.openings import openings
from tengen.match.players import Player
from tengen.match.rounds import MatchRounds, final_facts, keys
from tengen.run import safe_exit

Stop = Callable[[], bool]
Say = Callable[[str], None]


@dataclass(frozen=True)
class MatchPlan:
    """How a match is played."""

    games: int
    opening_moves: int
    seed: int
    parallel: int  # engines that think at once
    tables: int  # games at once, if a player is an engine
    at_once: int  # games at once, if both players live on the device


@dataclass(frozen=True)
class MatchStanding:
    """What can be told while games are under way."""

    finished: int
    under_way: int
    moves: int  # played since the start of this process
    compiling: bool = False  # as far as can be told


def run(
    game: Game,
    sides: tuple[Side, Side],
    plan: MatchPlan,
    book: MatchFolder,
    stop: Stop,
    say: Say = lambda text: None,
) -> Iterator[MatchStanding]:
    """Play the games that the book misses, and note them, until all are there or `stop` says so.

    `say` is told, before the first game, where the rules of an engine may differ from those of the match.
    TengenError if there are not so many openings, or an engine does not start.
    """
    a, b = sides
    if not book.missing:
        return
    if isinstance(a, Player) and isinstance(b, Player):
        yield from _on_device(game, a, b, plan, book, stop)
    else:
        yield from _in_hall(game, sides, plan, book, stop, say)


def _on_device(
    game: Game, a: Player, b: Player, plan: MatchPlan, book: MatchFolder, stop: Stop
) -> Iterator[MatchStanding]:
    """Rounds of many games; one that was interrupted is played again, and gives the same games."""
    rounds = MatchRounds(game, a, b, jax.random.key(plan.seed), plan.games // 2, plan.at_once // 2, plan.opening_moves)
    moves = 0
    for number in range(rounds.count):
        first = rounds.first_pair(number)
        here = range(2 * first, 2 * (first + rounds.size))
        if all(game_number in book.played for game_number in here):
            continue
        if stop():
            return
        yield MatchStanding(len(book.played), len(here), moves, compiling=not moves)
        match = yield from _round(rounds, number, len(book.played), len(here), moves, stop)
        if match is None:
            return
        book.add(*of_match(match, first, final_facts(game, match)))
        moves += int((match.length - match.opening_moves).sum())
    yield MatchStanding(len(book.played), 0, moves)


def _round(
    rounds: MatchRounds, number: int, finished: int, games: int, moves: int, stop: Stop
) -> Generator[MatchStanding, None, Match | None]:
    """One round to its end; None if it was left in the middle."""
    steps, compiling = rounds.stepwise(number), not moves
    while True:
        try:
            with safe_exit.possible(compiling):
                found = next(steps)
        except StopIteration as end:
            return end.value
        compiling = False
        if stop():
            return None
        yield MatchStanding(finished + found.over, games - found.over, moves + found.moves)


def _in_hall(
    game: Game, sides: tuple[Side, Side], plan: MatchPlan, book: MatchFolder, stop: Stop, say: Say
) -> Iterator[MatchStanding]:
    opening, playing = keys(jax.random.key(plan.seed))
    missing = book.missing
    start = partial(openings, game, opening, plan.games // 2, plan.opening_moves)
    tables = min(plan.tables, len(missing))
    hall = EngineMatch(game, sides, start, playing, min(plan.parallel, tables), tables, say)
    with contextlib.closing(hall.play(missing, stop)) as games:
        for played in games:
            if played is not None:
                book.add(played)
            yield MatchStanding(len(book.played), hall.under_way, hall.moves, hall.compiling)
