"""Rating a league: the match that is worth most is played, its result added, and so on."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tengen.errors import TengenError
from tengen.match import player_spec, ratings, running
from tengen.match.engine_match import Side
from tengen.match.engines.engine import Terms
from tengen.match.folder import MatchFolder, UnwrittenFolder
from tengen.match.league import League
from tengen.match.league_results import LeagueResults
from tengen.match.pairing import PairChoice, choose
from tengen.match.player_spec import PlayerSpec
from tengen.match.ratings import Ratings
from tengen.match.results import MatchResult
from tengen.match.running import MatchPlan, MatchStanding

_LOADED = 8  # networks that are kept on the device
Watching = Callable[[MatchFolder], AbstractContextManager[Any]]


@dataclass(frozen=True)
class RatingBudget:
    """When to stop; None: never for that reason."""

    matches: int | None = None
    games: int | None = None
    seconds: float | None = None
    error: float | None = None  # when half of every 95 % interval is at most so many Elo

    def spent(self, matches: int, games: int, seconds: float, most: float) -> str | None:
        """Why to stop, in words; None if there is no reason."""
        if self.error is not None and most <= self.error:
            return f"every error is at most {self.error:g} Elo"
        if self.matches is not None and matches >= self.matches:
            return "one match is played" if matches == 1 else f"{matches} matches are played"
        if self.games is not None and games >= self.games:
            return f"{games} games are played"
        if self.seconds is not None and seconds >= self.seconds:
            return f"{self.seconds / 60:g} minutes are over"
        return None


@dataclass(frozen=True)
class Event:
    """A match that begins (no result yet) or has ended."""

    number: int  # of this start, from 1
    choice: PairChoice
    result: MatchResult | None
    ratings: Ratings  # before a match that begins, after one that has ended


class Venue:
    """Where matches are played."""

    def __init__(self, league: League, simulations: int, plan: MatchPlan, terms: Terms, dtype: Any) -> None:
        self.game = league.game()
        self.plan = plan
        self._search, self._terms, self._dtype = league.search(simulations), terms, dtype
        self._loaded: dict[str, Side] = {}  # the one used last is last
        self._said: set[str] = set()  # about engines, once for all matches

    def side(self, one: PlayerSpec) -> Side:
        """TengenError says why it cannot play."""
        if one.kind == "engine":
            return player_spec.side(one, self.game, self._search, self._terms, self._dtype)
        side = self._loaded.pop(one.name, None)
        if side is None:
            side = player_spec.side(one, self.game, self._search, self._terms, self._dtype)
        self._loaded = dict([*self._loaded.items()][-_LOADED + 1 :]) | {one.name: side}
        return side

    def play(
        self,
        sides: tuple[Side, Side],
        book: MatchFolder,
        seed: int,
        stop: Callable[[], bool],
        say: Callable[[str], None],
    ) -> Iterator[MatchStanding]:
        """The games that the book misses: how it stands, from time to time."""

        def once(text: str) -> None:
            if text not in self._said:
                self._said.add(text)
                say(text)

        plan = dataclasses.replace(self.plan, games=book.games, seed=seed)
        return running.run(self.game, sides, plan, book, stop, once)


class LeagueRating:
    """The ratings of a league, and how they get better."""

    def __init__(self, league: League, ledger: LeagueResults, zero: str | None = None) -> None:
        self.league, self.ledger = league, ledger
        self.zero = zero or league.zero(ledger.names)
        self.notes = list(league.notes)
        self.able = {one.name: one for one in (*league.networks, *league.anchors)}
        known = [*self.able, *ledger.names]
        if self.zero not in known:
            raise TengenError(
                f"--zero {self.zero}: there is no such player; there are {', '.join(dict.fromkeys(known))}"
            )

    @property
    def ratings(self) -> Ratings:
        """Of all who have played or can."""
        return ratings.fit(self.ledger.all, self.zero, also=self.able)

    def choice(self, games: int) -> PairChoice | None:
        """The next match; networks come first in it, the older player last, so that programs are shared."""
        run = [one.name for one in self.league.networks]
        found = choose(self.ratings, list(self.able), games, run)
        if found is None:
            return None
        order = [*reversed(run), *(one.name for one in self.league.anchors)]
        a, b = sorted((found.a, found.b), key=order.index)
        return PairChoice(a, b, found.gain)

    def improve(
        self,
        venue: Venue,
        games: int,
        budget: RatingBudget,
        stop: Callable[[], bool],
        watching: Watching,
        seed: int = 0,
    ) -> Iterator[Event | str]:
        """Play until the budget is spent or `stop` says so: matches as they begin and end, at last why it is over.

        Who cannot be loaded is noted and left out.
        """
        began, matches, played = time.monotonic(), 0, 0
        while not stop():
            self.ledger.refresh()
            now = self.ratings
            most = max((rating.error for rating in now.players if rating.name != self.zero), default=0.0)
            if words := budget.spent(matches, played, time.monotonic() - began, most):
                yield words
                return
            size = games if budget.games is None else max(2, min(games, (budget.games - played) // 2 * 2))
            choice = self.choice(size)
            if choice is None:
                yield "there are no two players who can play"
                return
            sides = self._sides(venue, choice)
            if sides is None:
                continue
            matches += 1
            yield Event(matches, choice, None, now)
            number = len(self.ledger.mine)
            book = UnwrittenFolder((choice.a, choice.b), size)
            with watching(book) as watch:
                noted = 0
                for standing in venue.play(sides, book, seed + number, stop, watch.say):
                    watch.update(standing)
                    if len(book.played) > noted:
                        self.ledger.note(number, book.tally.result)
                        noted = len(book.played)
            result = book.tally.result
            self.ledger.note(number, result)
            played += result.games
            if result.games:
                yield Event(matches, choice, result, self.ratings)

    def _sides(self, venue: Venue, choice: PairChoice) -> tuple[Side, Side] | None:
        """Both players; None if one cannot play, who is then left out from now on."""
        sides: list[Side] = []
        for name in (choice.a, choice.b):
            try:
                sides.append(venue.side(self.able[name]))
            except TengenError as error:
                if self.able[name].kind != "network":
                    raise
                self.notes.append(str(error))
                del self.able[name]
                return None
        return sides[0], sides[1]
