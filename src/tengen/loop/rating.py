"""How strong the networks of a run are: matches on the device, one scale for all of them."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tengen import match as arena
from tengen.config.settings.rating import RatingSection
from tengen.config.settings.search import SearchSettings
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.match import players
from tengen.match.device_match import Match
from tengen.match.ratings import Rating, Ratings, anchor
from tengen.match.rounds import MatchRounds
from tengen.match.scores import ELO, Score, score
from tengen.monitor.summary import RatingPoint
from tengen.monitor.verdict import RatedStrength
from tengen.run import safe_exit
from tengen.run.networks import RunNetworks

UNTRAINED = "untrained"
"""The name of the network that a run begins with, which is rated but not saved."""
_NETWORK = "network"  # what all networks are when it comes to how long a match against them takes
_FEWEST_PAIRS = 4  # of a round, if a match has so many
_OTHERS = 0.6  # of the time that the first match is compiled for, the others take, at a guess
_SLACK = 1.25  # times as much is kept for a match that was never compiled
_TELLS = 0.03  # a match whose expected share is closer to 0 or 1 tells little


@dataclass(frozen=True)
class PlayedMatch:
    """What one match came to."""

    a: str
    b: str
    score: Score

    def __str__(self) -> str:
        return f"{self.a} - {self.b}: {self.score}"


class Rater:
    """Plays each new network against fixed references and against earlier networks of the run.

    Matches are played in two rounds, so that little time is enough for a result. Results are kept in
    RATINGS/results.jsonl and networks in their folder, so nothing is forgotten between two starts.
    """

    def __init__(
        self,
        folder: Path,
        game: Game,
        evaluate: Any,
        search: SearchSettings,
        settings: RatingSection,
        networks: RunNetworks,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = folder / "results.jsonl"
        self.results = arena.read(self.path)
        self.notes: list[str] = []  # about what could not be played, since they were last taken away
        self.spent = 0.0  # seconds of matches, in this process
        self.compiling = 0.0  # seconds that compiling a match takes: a guess, until one was compiled
        self._game, self._evaluate, self._settings, self._networks = game, evaluate, settings, networks
        self._search = players.strongest(search, settings.simulations)
        self._references = [players.parse(text, game) for text in settings.references]
        self._loaded: dict[str, players.Player] = {}
        self._costs: dict[str, float] = {}  # seconds of a round against one kind of opponent, once that is compiled
        self._clock = clock
        pairs = settings.games // 2
        self._at_once = max(math.ceil(pairs / 2), min(_FEWEST_PAIRS, pairs))
        self._rounds = math.ceil(pairs / self._at_once)

    def refresh(self) -> None:
        """Take in what others, such as the gate, have added to the results."""
        self.results = arena.read(self.path)

    def player(self, name: str, params: Any) -> players.Player:
        """A network of the run."""
        return players.network(name, self._evaluate, self._game, self._search, params)

    def opponents(self, name: str) -> list[str]:
        """Whom a network will play: the references, then earlier networks, the newest first.

        The untrained network plays the first reference alone: others would only win, and keep the run from learning.
        """
        if name == UNTRAINED:
            return list(self._settings.references[:1])
        earlier = [saved.name for saved in reversed(self._networks.saved) if saved.name != name]
        return [*self._settings.references, *earlier[: self._settings.earlier]]

    def rate(
        self,
        name: str,
        params: Any,
        key: jax.Array,
        *,
        left: Callable[[], float] = lambda: math.inf,
        show: Callable[[str], None] = lambda words: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[PlayedMatch]:
        """Play the matches of a network: a round against each opponent, then another.

        `left` gives the seconds that there are. A round that would take longer is not begun, and at the end of the
        time, or when `stop` says so, only finished games count. `show` is told what is being done.
        """
        newest = self.player(name, params)
        numbers = {other: number for number, other in enumerate(self.opponents(name))}
        contests: dict[str, MatchRounds] = {}
        for other in self._in_order(name):
            if (opponent := self._opponent(other)) is not None:
                now = jax.random.fold_in(key, numbers[other])
                pairs, moves = self._settings.games // 2, self._settings.opening_moves
                contests[other] = MatchRounds(self._game, newest, opponent, now, pairs, self._at_once, moves)
        matches: dict[str, list[Match]] = {other: [] for other in contests}
        for number in range(self._rounds):
            for other, contest in contests.items():
                if stop() or self._expected(other, self._costs) > left():
                    continue
                match = self._play(contest, number, lambda: stop() or left() <= 0, show)
                if match.finished.any():
                    arena.append(self.path, match.result)
                    self.results.append(match.result)
                    matches[other].append(match)
        for other, rounds in matches.items():
            if rounds:
                results = np.concatenate([match.results for match in rounds])
                finished = np.concatenate([match.finished for match in rounds])
                yield PlayedMatch(name, other, score(results, finished))
        if matches and not any(matches.values()) and not stop():
            self.notes.append(f"{name} was not rated: there was no time for a match")
        self._loaded = {name: newest, **self._loaded}
        kept = {name, *self.opponents("")}
        self._loaded = {known: player for known, player in self._loaded.items() if known in kept}

    def expected(self, most: float) -> float:
        """Seconds that the matches of the next network will take if they may take so long at `most`."""
        earlier = [_NETWORK] * min(self._settings.earlier, len(self._networks.saved))
        known, seconds = dict(self._costs), 0.0
        for _ in range(self._rounds):
            for other in (*self._settings.references, *earlier):
                cost = self._expected(other, known) * (1.0 if _kind(other) in known else _SLACK)
                if seconds + cost <= most:
                    seconds += cost
                    known.setdefault(_kind(other), self._usual())
        return seconds

    def rating(self, name: str) -> Rating | None:
        """Of one player on the run's scale; None if it has not played."""
        ratings = self.ratings
        return next((rating for rating in ratings.players if rating.name == name), None) if ratings else None

    @property
    def ratings(self) -> Ratings | None:
        """Of all that have played, the weakest reference being 0; None before the first match.

        Errors are those of the difference to the average of the players: see `Ratings.centred`.
        """
        return arena.fit(self.results, anchor(self.results)).centred() if self.results else None

    def rated(self) -> RatedStrength | None:
        """The networks of the run that have played, with all that is known of them; None if none has."""
        ratings = self.ratings
        known = {rating.name for rating in ratings.players} if ratings else set()
        times = [(0.0, UNTRAINED), *((saved.seconds, saved.name) for saved in self._networks.saved)]
        own = [(seconds, name) for seconds, name in times if name in known]
        return RatedStrength(ratings, self.results, own) if ratings and own else None

    def curve(self) -> tuple[RatingPoint, ...]:
        """The networks of the run over time, all on the present scale."""
        if (rated := self.rated()) is None:
            return ()
        networks = ((seconds, rated.ratings[name]) for seconds, name in rated.networks)
        return tuple(RatingPoint(seconds, rating.elo, rating.error) for seconds, rating in networks)

    def _play(
        self, contest: MatchRounds, number: int, enough: Callable[[], bool], show: Callable[[str], None]
    ) -> Match:
        """One round; how long it takes is remembered."""
        other, kind = contest.b.name, _kind(contest.b.name)
        show(f"playing against {other}" if kind in self._costs else f"compiling the matches against {other}")
        began = first = self._clock()
        steps = contest.stepwise(number, enough=enough, apart=True)
        before, games = number * 2 * contest.size, 2 * contest.size * contest.count
        while True:
            try:
                # The network is saved, and while the match is compiled it has no games. Once it is played, `enough`
                # ends it: finished games are kept, and the run has its last words.
                with safe_exit.possible(kind not in self._costs and first == began):
                    under_way = next(steps)
            except StopIteration as end:
                match: Match = end.value
                break
            first = self._clock() if first == began else first
            show(f"playing against {other}: {before + under_way.over} of {games} games are over")
        ended = self._clock()
        self.spent += ended - began
        if kind not in self._costs:
            compiling = (first if first > began else ended) - began
            # The first match compiles the network's own search too, which all others share.
            self.compiling = compiling if self._costs else _OTHERS * compiling
            began += compiling
        # A round that was cut short would have taken longer.
        self._costs[kind] = (ended - began) / max(float(match.finished.mean()), 0.25)
        return match

    def _expected(self, other: str, known: Mapping[str, float]) -> float:
        """Seconds of the next round against this opponent, if those of some kinds are `known`."""
        kind = _kind(other)
        return known[kind] if kind in known else self.compiling + self._usual()

    def _usual(self) -> float:
        """Seconds of a round against somebody who has not played yet."""
        return max(self._costs.values(), default=0.0)

    def _in_order(self, name: str) -> list[str]:
        """The opponents of a network, those first from whom most can be learned about it.

        One of them who is on the scale already comes first, since nobody else could tell where the network is on it.
        Then come those who may win or lose, in turn: whoever has waited longest. Results that are certain come last.
        """
        opponents, ratings = self.opponents(name), self.ratings
        known = {rating.name: rating.elo for rating in ratings.players} if ratings else {}
        own = self.curve()
        if not own:
            return opponents
        now = own[-1].elo

        def tells(other: str) -> bool:
            share = 1 / (1 + math.exp((known[other] - now) / ELO)) if other in known else 0.5
            return _TELLS < share < 1 - _TELLS

        def waited(other: str) -> int:
            return max((number for number, result in enumerate(self.results) if result.b == other), default=-1)

        order = sorted(opponents, key=lambda other: (not tells(other), waited(other)))
        references = [other for other in order if other in known and other in self._settings.references]
        return [*references[:1], *(other for other in order if other not in references[:1])]

    def _opponent(self, name: str) -> players.Player | None:
        for reference in self._references:
            if reference.name == name:
                return reference
        if name not in self._loaded:
            try:
                self._loaded[name] = self.player(name, self._networks.parameters(name))
            except TengenError as error:
                self.notes.append(f"an earlier network cannot play: {error}")
                return None
        return self._loaded[name]


def _kind(name: str) -> str:
    """References have programs of their own; all networks share one."""
    return name if name == "random" or name.startswith("mcts:") else _NETWORK
