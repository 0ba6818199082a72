"""Rates the networks of a run while it trains: matches on the device, one scale for all of them."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tengen.config.settings.match import RatingSection
from tengen.config.settings.search import SearchSettings
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.match import player_spec, players, results
from tengen.match.device_match import Match, MatchStanding
from tengen.match.driver import MatchRounds
from tengen.match.ratings import Rating, Ratings, is_reference, rate
from tengen.match.results import MatchResult, expected_share
from tengen.monitor.strength import RatedStrength
from tengen.monitor.summary import RatingPoint
from tengen.run.networks import UNTRAINED, RunNetworks

_NETWORK = "network"  # the kind of all networks: matches against them share a program and take equally long
_OTHER = "network of another architecture"  # from before the run's network grew
_FEWEST_PAIRS = 4  # of a round, unless a match has fewer
_OTHERS = 0.6  # guess: compiling another match takes this share of the time that compiling the first took
_SLACK = 1.25  # times the expected time is reserved for a match that was never compiled
_TELLS = 0.03  # a match whose expected share is closer to 0 or 1 tells little


class Rater:
    """Plays each new network against fixed references and against earlier networks of the run.

    On CPUs matches are played in two rounds, so that little time is enough for a result. Results are kept in
    RATINGS/results.jsonl and networks in their folder, so nothing is lost between two starts.
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
        self.path = folder / results.FILE
        self.results = results.read(self.path)
        self.notes: list[str] = []  # about matches that could not be played, until the caller clears them
        self._repeating = ""  # the note about openings, once it was given
        self.spent = 0.0  # seconds of matches, in this process
        self.compiling = 0.0  # seconds that compiling a match takes; a guess until one was compiled
        self._game, self._evaluate, self._networks = game, evaluate, networks
        self._clock = clock
        self._use(search, settings)

    def change(self, search: SearchSettings, settings: RatingSection) -> None:
        """Play the matches with other settings from now on; if search or sizes change, they are compiled again."""
        settings = replace(settings, minutes=self._settings.minutes)  # the caller decides when to rate
        if (players.strongest(search, settings.simulations), settings) != (self._search, self._settings):
            self._use(search, settings)

    def _use(self, search: SearchSettings, settings: RatingSection) -> None:
        self._settings = settings
        self._search = players.strongest(search, settings.simulations)
        self._references = [player_spec.parse(text).player(self._game) for text in settings.references]
        self._loaded: dict[str, players.Player] = {}
        self._others: set[str] = set()  # networks of another architecture than the run has now
        self._too_slow: set[str] = set()  # kinds of opponents against whom no game has ended in time
        self._costs: dict[str, float] = {}  # seconds of a round against one kind of opponent, once that is compiled
        pairs = settings.games // 2
        # Small batches leave most of a GPU idle: there, half of the games take as long as all of them.
        half = math.ceil(pairs / 2) if jax.default_backend() == "cpu" else pairs
        self._at_once = max(half, min(_FEWEST_PAIRS, pairs))
        self._rounds = math.ceil(pairs / self._at_once)

    def refresh(self) -> None:
        """Read what others, such as the gate, have added to the results."""
        self.results = results.read(self.path)

    def player(self, name: str, params: Any, evaluate: Any = None) -> players.Player:
        """A network with these parameters, which `evaluate` uses, or the run's evaluator."""
        return players.network(name, evaluate or self._evaluate, self._game, self._search, params)

    def opponents(self, name: str) -> list[str]:
        """The opponents of a network: the references, then earlier networks, the newest first.

        The untrained network plays only the first reference: the others would just win, and cost time.
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
        everybody: bool = True,
    ) -> Iterator[MatchResult]:
        """Play the matches of a network: a round against each opponent, then, on CPUs, another.

        Unless `everybody` is to play, opponents whose results are certain are left out if there are others. `left`
        gives the seconds that remain. A round that would take longer is not begun, and at the end of the time, or when
        `stop` says so, only finished games count. `show` gets words about the progress.
        """
        newest = self.player(name, params)
        numbers = {other: number for number, other in enumerate(self.opponents(name))}
        matches: dict[str, MatchRounds] = {}
        for other in self._in_order(name, everybody=everybody):
            if (opponent := self._opponent(other)) is not None:
                now = jax.random.fold_in(key, numbers[other])
                pairs, moves = self._settings.games // 2, self._settings.opening_moves
                matches[other] = MatchRounds(self._game, newest, opponent, now, pairs, self._at_once, moves)
        played: dict[str, list[Match]] = {other: [] for other in matches}
        for number in range(self._rounds):
            for other, rounds in matches.items():
                if stop() or self._expected(other, self._costs) > left():
                    continue
                match = self._play(rounds, number, lambda: stop() or left() <= 0, show)
                if (note := rounds.openings.note(self._game)) and note != self._repeating:
                    self._repeating = note
                    self.notes.append(note)
                if match.finished.any():
                    results.append(self.path, match.result)
                    self.results.append(match.result)
                    played[other].append(match)
                elif not stop() and self._costs[self._kind(other)] == math.inf:
                    who = f"{other} plays" if is_reference(other) else "earlier networks play"
                    self.notes.append(f"{who} no more matches in this run: no game ended in time")
        for other, found in played.items():
            if found:
                outcomes = np.concatenate([match.results for match in found])
                finished = np.concatenate([match.finished for match in found])
                yield MatchResult.of_games(name, other, outcomes, finished)
        if played and not any(played.values()) and not stop():
            self.notes.append(f"{name} was not rated: there was no time for a match")
        self._loaded = {name: newest, **self._loaded}
        kept = {name, *self.opponents("")}
        self._loaded = {known: player for known, player in self._loaded.items() if known in kept}

    def expected(self, most: float) -> float:
        """Seconds that the matches of the next network will take, at most `most`."""
        earlier = [_NETWORK] * min(self._settings.earlier, len(self._networks.saved))
        known, seconds = dict(self._costs), 0.0
        for _ in range(self._rounds):
            for other in (*self._settings.references, *earlier):
                cost = self._expected(other, known) * (1.0 if self._kind(other) in known else _SLACK)
                if seconds + cost <= most:
                    seconds += cost
                    known.setdefault(self._kind(other), self._usual())
        return seconds

    def rating(self, name: str) -> Rating | None:
        """The rating of one player on the run's scale; None if it has not played."""
        ratings = self.ratings
        return next((rating for rating in ratings.players if rating.name == name), None) if ratings else None

    @property
    def ratings(self) -> Ratings | None:
        """The ratings of all that have played, the weakest reference being 0; None before the first match."""
        return rate(self.results)

    def rated(self) -> RatedStrength | None:
        """The networks of the run that have played, and their results; None if none has."""
        ratings = self.ratings
        known = {rating.name for rating in ratings.players} if ratings else set()
        times = [(0.0, UNTRAINED), *((saved.seconds, saved.name) for saved in self._networks.saved)]
        own = [(seconds, name) for seconds, name in times if name in known]
        return RatedStrength(ratings, self.results, own) if ratings and own else None

    def curve(self) -> tuple[RatingPoint, ...]:
        """The networks of the run over time, all on the current scale."""
        if (rated := self.rated()) is None:
            return ()
        networks = ((seconds, rated.ratings[name]) for seconds, name in rated.networks)
        return tuple(RatingPoint(seconds, rating.elo, rating.error) for seconds, rating in networks)

    def _play(self, rounds: MatchRounds, number: int, stop: Callable[[], bool], show: Callable[[str], None]) -> Match:
        other, kind = rounds.b.name, self._kind(rounds.b.name)
        show(f"playing against {other}" if kind in self._costs else f"compiling the matches against {other}")
        began = first = self._clock()
        before, games = number * 2 * rounds.size, 2 * rounds.size * rounds.count

        def update(standing: MatchStanding) -> None:
            nonlocal first
            first = self._clock() if first == began else first
            show(f"playing against {other}: {before + standing.finished} of {games} games are over")

        # The network is saved, and a match that is being compiled has no games to lose. Once it is played, `stop` ends
        # it: finished games are kept, and the run ends in order.
        new = kind not in self._costs
        match = rounds.play(number, stop=stop, show=update, apart=True, exit_while_compiling=new)
        ended = self._clock()
        self.spent += ended - began
        if new:
            compiling = (first if first > began else ended) - began
            # The first match compiles the network's own search too, which all others share.
            self.compiling = compiling if self._costs else _OTHERS * compiling
            began += compiling
        over = float(match.finished.mean())
        # A round that was cut short would have taken longer. If no game ends twice, there is no third time.
        self._costs[kind] = (ended - began) / max(over, 0.25) if over or new else math.inf
        (self._too_slow.discard if over else self._too_slow.add)(kind)
        return match

    def _expected(self, other: str, known: Mapping[str, float]) -> float:
        """Seconds of the next round against this opponent, given the `known` seconds of some kinds."""
        kind = self._kind(other)
        return known[kind] if kind in known else self.compiling + self._usual()

    def _usual(self) -> float:
        return max((cost for kind, cost in self._costs.items() if kind not in self._too_slow), default=0.0)

    def _in_order(self, name: str, *, everybody: bool = True) -> list[str]:
        """The opponents of a network, those first whose matches tell most about it.

        A reference that is on the scale already comes first, since only it can place the network there. Then come those
        who may win or lose, the one that has waited longest first. Opponents whose results are certain come last, or
        are left out if not `everybody` is wanted.
        """
        opponents, ratings = self.opponents(name), self.ratings
        known = {rating.name: rating.elo for rating in ratings.players} if ratings else {}
        own = self.curve()
        if not own:
            return opponents
        now = own[-1].elo

        def tells(other: str) -> bool:
            share = expected_share(now - known[other]) if other in known else 0.5
            return _TELLS < share < 1 - _TELLS

        def waited(other: str) -> int:
            return max((number for number, result in enumerate(self.results) if result.b == other), default=-1)

        order = sorted(opponents, key=lambda other: (not tells(other), waited(other)))
        if not everybody:
            order = [other for other in order if tells(other)] or order
        references = [other for other in order if other in known and other in self._settings.references]
        return [*references[:1], *(other for other in order if other not in references[:1])]

    def _kind(self, name: str) -> str:
        """Each reference is a separate program; all networks of one architecture share one."""
        return name if is_reference(name) else _OTHER if name in self._others else _NETWORK

    def _opponent(self, name: str) -> players.Player | None:
        for reference in self._references:
            if reference.name == name:
                return reference
        if name not in self._loaded:
            try:
                params, evaluate = self._networks.load(name)
                if evaluate is not None:
                    self._others.add(name)
                self._loaded[name] = self.player(name, params, evaluate)
            except TengenError as error:
                self.notes.append(f"an earlier network cannot play: {error}")
                return None
        return self._loaded[name]
