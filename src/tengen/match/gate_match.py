"""One match of the gate, in rounds: whether it is decided, and what there is to tell of it.

Where the games cannot be shared out evenly among the rounds, a few games fewer than allowed are played.
"""

import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tengen.config.settings.gate import GateSettings
from tengen.data.records.records import Record
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.match.device_match import Match, MatchLimits, MatchUnderway
from tengen.match.game_record import of_match
from tengen.match.players import Player
from tengen.match.results import MatchResult
from tengen.match.rounds import MatchRounds
from tengen.match.scores import Score, score
from tengen.match.sprt import Sprt

_TINY = 1e-9  # rounding must not ask for half a point more than the share says


@dataclass(frozen=True)
class GateDecision:
    """How a match ended."""

    accepted: bool
    why: str


@dataclass(frozen=True)
class GatePlan:
    """What a match may become."""

    rounds: int
    pairs: int  # of each round

    @staticmethod
    def of(settings: GateSettings) -> "GatePlan":
        rounds = math.ceil(settings.games / settings.round_games)
        return GatePlan(rounds, settings.games // 2 // rounds)

    @property
    def games(self) -> int:
        """Of all rounds."""
        return 2 * self.rounds * self.pairs


class GateMatch:
    """A candidate against the network that it would replace. `a` is the candidate."""

    def __init__(self, game: Game, a: Player, b: Player, settings: GateSettings, key: jax.Array) -> None:
        self.a, self.b, self.settings = a, b, settings
        self.plan = GatePlan.of(settings)
        self.rounds: list[Match] = []
        self._game = game
        pairs = self.plan.rounds * self.plan.pairs
        self._to_play = MatchRounds(game, a, b, key, pairs, self.plan.pairs, settings.opening_moves)

    @property
    def results(self) -> np.ndarray:
        """Float32[G]: of all games so far, for the candidate."""
        return _joined([match.results for match in self.rounds], np.float32)

    @property
    def finished(self) -> np.ndarray:
        """Bool[G]: which of them count."""
        return _joined([match.finished for match in self.rounds], bool)

    @property
    def score(self) -> Score | None:
        """None before the first game."""
        return score(self.results, self.finished) if self.finished.any() else None

    @property
    def result(self) -> MatchResult:
        signs = np.sign(self.results[self.finished])
        return MatchResult(self.a.name, self.b.name, *(int((signs == sign).sum()) for sign in (1, 0, -1)))

    @property
    def decision(self) -> GateDecision | None:
        """None while more games are needed."""
        return decide(self.settings, self.plan, self.results, self.finished)

    def play_round(
        self, stop: Callable[[], bool] = lambda: False, show: Callable[[MatchUnderway], object] = lambda _: None
    ) -> Match | None:
        """The next games, until they are over or the match is decided; None, and nothing, if `stop` says so before.

        `show` is told about once a second how far the round is.
        """
        self._check_openings()
        steps = self._to_play.stepwise(len(self.rounds), self._until())
        while True:
            try:
                show(next(steps))
            except StopIteration as end:
                self.rounds.append(end.value)
                return end.value
            if stop():
                return None

    def records(self) -> Iterator[Record]:
        """Of all games that were finished."""
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        names = (self.a.name, self.b.name)
        games = (game for match in self.rounds for game in of_match(match))
        for number, game in enumerate(games, 1):
            yield game.record(self._game, names, network=self.a.name, date=date, id=f"gate-{number:06d}")

    def told(self) -> dict[str, Any]:
        """What a verdict says of the match, as JSON data."""
        counts = self.result
        about: dict[str, Any] = {
            "opponent": self.b.name,
            "games": counts.games,
            "wins": counts.wins,
            "draws": counts.draws,
            "losses": counts.losses,
            "distinct_games": self._distinct(),
            "forfeits": sum(int(match.forfeits[match.finished].sum()) for match in self.rounds),
            "most_games": self.plan.games,
        }
        if (found := self.score) is not None:
            low, high = (value if math.isfinite(value) else None for value in found.elo_interval)
            about |= {"share": found.share, "elo": found.elo, "elo_low": low, "elo_high": high}
        if self.settings.kind == "sprt":
            test = sprt(self.settings)
            ratio = test.ratio(pair_shares(self.results, self.finished))
            return about | {"log_likelihood_ratio": ratio, "bounds": [-test.bound, test.bound]}
        return about | {"needed_share": self.settings.share, "needed_points": needed_points(self.settings, self.plan)}

    def _distinct(self) -> int:
        """How many games differ in their moves; those of a pair need not."""
        return len(
            {
                (match.seeds[place].tobytes(), match.actions[place, : match.length[place]].tobytes())
                for match in self.rounds
                for place in np.flatnonzero(match.finished)
            }
        )

    def _check_openings(self) -> None:
        try:
            _ = self._to_play.openings
        except TengenError as error:
            raise OptionError(f"gate.games: {error}") from error

    def _until(self) -> MatchLimits:
        """Where the next round may end. The sequential test looks at whole rounds."""
        if self.settings.kind != "share":
            return MatchLimits()
        needed, (won, lost) = needed_points(self.settings, self.plan), _points(self.results, self.finished)
        return MatchLimits(needed - won, self.plan.games - needed + 0.5 - lost)


def decide(settings: GateSettings, plan: GatePlan, results: np.ndarray, finished: np.ndarray) -> GateDecision | None:
    """What games with these results (Float[G], for the candidate) have decided; None if nothing yet.

    Only games that are `finished` (Bool[G]) count, and for the sequential test only whole pairs do.
    """
    if settings.kind == "none":
        return GateDecision(True, "every network is accepted")
    return (_by_share if settings.kind == "share" else _by_sprt)(settings, plan, results, finished)


def _by_share(settings: GateSettings, plan: GatePlan, results: np.ndarray, finished: np.ndarray) -> GateDecision | None:
    needed, (won, lost) = needed_points(settings, plan), _points(results, finished)
    of = f"{needed:g} of {plan.games} points that it needed"
    if won >= needed:
        return GateDecision(True, f"it has {won:g} points, and so the {of}")
    if lost > plan.games - needed:
        return GateDecision(False, f"it has lost {lost:g} points, and so cannot get the {of}")
    return None


def _by_sprt(settings: GateSettings, plan: GatePlan, results: np.ndarray, finished: np.ndarray) -> GateDecision | None:
    test, pairs = sprt(settings), pair_shares(results, finished)
    found, ratio = test.decided(pairs), test.ratio(pairs)
    if found is not None:
        bound = f"the {'upper' if found else 'lower'} bound, {test.bound if found else -test.bound:+.2f}"
        return GateDecision(found, f"the log likelihood ratio, {ratio:+.2f}, has reached {bound}")
    if len(results) >= plan.games:
        return GateDecision(False, f"{plan.games} games have not decided: the log likelihood ratio is {ratio:+.2f}")
    return None


def sprt(settings: GateSettings) -> Sprt:
    """The sequential test that the settings describe."""
    return Sprt(settings.sprt_low, settings.sprt_high, settings.sprt_error)


def needed_points(settings: GateSettings, plan: GatePlan) -> float:
    """The fewest points, in halves, that are the share of all games."""
    return math.ceil(2 * plan.games * settings.share - _TINY) / 2


def pair_shares(results: np.ndarray, finished: np.ndarray) -> np.ndarray:
    """Float[P]: the candidate's share of the points in each whole pair."""
    whole = finished.reshape(-1, 2).all(1)
    return ((np.sign(results).reshape(-1, 2).mean(1) + 1) / 2)[whole]


def _points(results: np.ndarray, finished: np.ndarray) -> tuple[float, float]:
    """The candidate's and the other's; a draw is half a point to each."""
    won = float((np.sign(results[finished]) + 1).sum() / 2)
    return won, float(finished.sum()) - won


def _joined(parts: Sequence[np.ndarray], dtype: Any) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype), *parts])
