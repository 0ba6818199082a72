"""One match of the gate, played in rounds, and when it is decided: by the share of the points, or by a sequential test.

Where the games cannot be divided evenly among the rounds, a few games fewer than allowed are played. The test is the
generalised one of Van den Bergh, over pairs of games with the same opening (docs/gate.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tengen.config.settings.parts import GateSettings
from tengen.games.core import Game
from tengen.games.players import Player
from tengen.match.device_match import MatchLimits, MatchStanding, Stop
from tengen.match.driver import MatchRounds
from tengen.match.match_games import MatchGames
from tengen.match.results import MatchResult, expected_share

_PAIR = 0.125  # variance of a pair of independent, even games; one is added, so that equal pairs are not certainty
_TINY = 1e-9  # rounding must not ask for half a point more than the share


@dataclass(frozen=True)
class Sprt:
    """The test; `error` is how often it may be wrong, on either side."""

    low: float  # Elo: not enough
    high: float  # Elo: enough
    error: float

    @property
    def bound(self) -> float:
        """Beyond this (below its negative) the test is over: Wald's bound for equal errors."""
        return math.log((1 - self.error) / self.error)

    def ratio(self, pairs: np.ndarray) -> float:
        """The log likelihood ratio after pairs with these shares of the points (Float[P], in [0, 1])."""
        count = len(pairs)
        if count == 0:
            return 0.0
        mean = float(pairs.mean())
        variance = (float(((pairs - mean) ** 2).sum()) + _PAIR) / count
        misfit = [variance + (mean - expected_share(elo)) ** 2 for elo in (self.low, self.high)]
        return count / 2 * math.log(misfit[0] / misfit[1])

    def decided(self, pairs: np.ndarray) -> bool | None:
        """True if A is stronger, False if not; None if more games are needed."""
        ratio = self.ratio(pairs)
        return None if abs(ratio) < self.bound else ratio > 0


@dataclass(frozen=True)
class GateDecision:
    accepted: bool
    why: str


class GateMatch:
    """A candidate (A) against the network that it would replace (B)."""

    def __init__(self, game: Game, a: Player, b: Player, settings: GateSettings, key: jax.Array) -> None:
        self.settings = settings
        rounds, pairs = rounds_and_pairs(settings)
        self.games = MatchGames((a.name, b.name), 2 * rounds * pairs)
        self._rounds = MatchRounds(game, a, b, key, rounds * pairs, pairs, settings.opening_moves)
        self._next = 0

    @property
    def result(self) -> MatchResult:
        return self.games.result

    @property
    def note(self) -> str:
        """One line for users if openings repeat, otherwise empty."""
        return self._rounds.openings.note(self._rounds.game)

    @property
    def decision(self) -> GateDecision | None:
        """None while more games are needed."""
        return decide(self.settings, self.games)

    def play_round(
        self, stop: Stop = lambda: False, show: Callable[[MatchStanding], object] = lambda standing: None
    ) -> int:
        """Plays the next games until they are over or the match is decided, and gives how many were finished.

        If `stop` says so before, the round is given up. `show` gets the standing of the round about once a second.
        """
        match = self._rounds.play(self._next, until=self._until(), stop=stop, show=show)
        if match.stopped:
            return 0
        games = match.games(self._rounds.first_pair(self._next))
        self.games.add(*games)
        self._next += 1
        return len(games)

    def to_dict(self) -> dict[str, Any]:
        """The match as a verdict describes it, as JSON data."""
        result, played = self.result, self.games.finished
        about: dict[str, Any] = {
            "opponent": result.b,
            "games": result.games,
            **result.tally,
            "distinct_games": len({(game.seed, game.actions) for game in played}),
            "forfeits": sum(bool(game.fault) for game in played),
            "most_games": self.games.games,
        }
        if result.games:
            about |= {"share": result.share, **result.figures()}
        if self.settings.kind == "sprt":
            test = sprt(self.settings)
            return about | {
                "log_likelihood_ratio": test.ratio(pair_shares(self.games)),
                "bounds": [-test.bound, test.bound],
            }
        needed = needed_points(self.settings, self.games.games)
        return about | {"needed_share": self.settings.share, "needed_points": needed}

    def _until(self) -> MatchLimits:
        """Where the next round may end. The sequential test looks at whole rounds."""
        if self.settings.kind != "share":
            return MatchLimits()
        needed, result = needed_points(self.settings, self.games.games), self.result
        lost = result.games - result.points
        return MatchLimits(needed - result.points, self.games.games - needed + 0.5 - lost)


def rounds_and_pairs(settings: GateSettings) -> tuple[int, int]:
    """How many rounds a match may have, and how many pairs of games each has."""
    rounds = math.ceil(settings.games / settings.round_games)
    return rounds, settings.games // 2 // rounds


def decide(settings: GateSettings, games: MatchGames) -> GateDecision | None:
    """What the finished games have decided; None if nothing yet. For the sequential test only whole pairs count."""
    if settings.kind == "none":
        return GateDecision(True, "every network is accepted")
    return (_by_share if settings.kind == "share" else _by_sprt)(settings, games)


def _by_share(settings: GateSettings, games: MatchGames) -> GateDecision | None:
    needed, result = needed_points(settings, games.games), games.result
    won, lost = result.points, result.games - result.points
    of = f"{needed:g} of {games.games} points that it needed"
    if won >= needed:
        return GateDecision(True, f"it has {won:g} points, and so the {of}")
    if lost > games.games - needed:
        return GateDecision(False, f"it has lost {lost:g} points, and so cannot get the {of}")
    return None


def _by_sprt(settings: GateSettings, games: MatchGames) -> GateDecision | None:
    test, pairs = sprt(settings), pair_shares(games)
    found, ratio = test.decided(pairs), test.ratio(pairs)
    if found is not None:
        bound = f"the {'upper' if found else 'lower'} bound, {test.bound if found else -test.bound:+.2f}"
        return GateDecision(found, f"the log likelihood ratio, {ratio:+.2f}, has reached {bound}")
    if not games.missing:
        return GateDecision(False, f"{games.games} games have not decided: the log likelihood ratio is {ratio:+.2f}")
    return None


def sprt(settings: GateSettings) -> Sprt:
    return Sprt(settings.sprt_low, settings.sprt_high, settings.sprt_error)


def needed_points(settings: GateSettings, games: int) -> float:
    """The fewest points, in halves, that are the share of all games."""
    return math.ceil(2 * games * settings.share - _TINY) / 2


def pair_shares(games: MatchGames) -> np.ndarray:
    """Float[P]: the candidate's share of the points in each whole pair."""
    results, finished = games.outcomes
    whole = finished.reshape(-1, 2).all(1)
    return ((np.sign(results).reshape(-1, 2).mean(1) + 1) / 2)[whole]
