"""Elo ratings of many players from all their games: Bradley-Terry by maximum likelihood, with error bars.

A player rated d points above another is expected to score 1 / (1 + 10 ** (-d / 400)). A draw is half a win and half a
loss. Two weak priors keep everything finite: one game more, drawn, between any two players who met; and a wide normal
distribution around the anchor, for groups of players whom no chain of games connects with it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from tengen.errors import TengenError
from tengen.match.results import MatchResult
from tengen.match.scores import ELO, SURE

DRAWN = 1.0  # games added between any two players who met
WIDTH = 3000.0  # Elo: standard deviation of the prior around the anchor
_STEPS = 200


@dataclass(frozen=True)
class Rating:
    """One player. `error` is half of the 95 % interval of the difference to the anchor (but see `Ratings.centred`)."""

    name: str
    elo: float
    error: float
    games: int
    points: float


@dataclass(frozen=True, eq=False)
class Ratings:
    """All players, the strongest first."""

    anchor: str
    players: tuple[Rating, ...]
    covariance: np.ndarray  # Float64[N, N]: in Elo squared, in the order of `players`; zeros for the anchor

    def __getitem__(self, name: str) -> Rating:
        return self.players[self._place(name)]

    def difference(self, a: str, b: str) -> tuple[float, float]:
        """How much stronger a is than b, and half of the 95 % interval of that."""
        i, j = self._place(a), self._place(b)
        variance = self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j]
        return self.players[i].elo - self.players[j].elo, SURE * float(np.sqrt(max(variance, 0.0)))

    def centred(self) -> "Ratings":
        """The same ratings, each error being that of the difference to the average of all players.

        An anchor that loses every game makes all errors relative to it large, though the others know each other well.
        In the average, players count by how much their games tell, so that such an anchor hardly matters. Two players
        have one difference only, which stays as it is.
        """
        others = np.arange(len(self.players)) != self._place(self.anchor)
        if len(others) < 3:
            return self
        told = np.zeros(len(self.players))
        information = np.linalg.inv(self.covariance[np.ix_(others, others)])
        told[others], told[~others] = np.diag(information), information.sum()
        weights = np.maximum(told, 0.0) / np.maximum(told, 0.0).sum()
        shift = np.eye(len(weights)) - weights
        variance = np.diag(shift @ self.covariance @ shift.T)
        errors = SURE * np.sqrt(np.maximum(variance, 0.0))
        return replace(
            self, players=tuple(replace(one, error=float(e)) for one, e in zip(self.players, errors, strict=True))
        )

    def _place(self, name: str) -> int:
        for place, rating in enumerate(self.players):
            if rating.name == name:
                return place
        raise KeyError(name)

    def __str__(self) -> str:
        """A table."""
        width = max(len("player"), *(len(rating.name) for rating in self.players))
        lines = [f"{'player':<{width}} {'Elo':>7} {'+-':>6} {'games':>7} {'score':>7}"]
        for rating in self.players:
            share = f"{100 * rating.points / rating.games:.1f} %" if rating.games else ""
            error = f"{rating.error:.0f}" if rating.error else ""
            lines.append(f"{rating.name:<{width}} {rating.elo:>7.0f} {error:>6} {rating.games:>7} {share:>7}")
        return "\n".join(lines)


def fit(results: Iterable[MatchResult], anchor: str, elo: float = 0.0, also: Iterable[str] = ()) -> Ratings:
    """The ratings of all players in the results; the anchor has the rating `elo`.

    Players who are named in `also` are there even if they have not played: around the anchor, as the wide prior says.
    """
    results = [result for result in results if result.games]
    names = sorted({name for result in results for name in (result.a, result.b)} | {anchor, *also})
    place = {name: number for number, name in enumerate(names)}
    points = np.zeros((len(names), len(names)))  # [i, j]: what i scored against j
    for result in results:
        i, j = place[result.a], place[result.b]
        if i == j:
            raise TengenError(f"ratings: {result.a} cannot be rated by games against itself")
        points[i, j] += result.points
        points[j, i] += result.games - result.points
    strength, hessian = most_likely(evidence(points, place[anchor]))
    others = np.arange(len(names)) != place[anchor]
    covariance = np.zeros_like(points)
    covariance[np.ix_(others, others)] = np.linalg.inv(hessian[np.ix_(others, others)]) * ELO**2
    ratings = [
        Rating(
            name,
            elo + ELO * float(strength[i]),
            SURE * float(np.sqrt(covariance[i, i])),
            int((points[i] + points[:, i]).sum()),
            float(points[i].sum()),
        )
        for i, name in enumerate(names)
    ]
    order = sorted(range(len(names)), key=lambda i: (-ratings[i].elo, names[i]))
    return Ratings(anchor, tuple(ratings[i] for i in order), covariance[np.ix_(order, order)])


def anchor(results: list[MatchResult]) -> str:
    """Who is 0: random play, else the weakest plain search, else whoever comes first by name.

    It depends on what was played alone, so the scale stays if a run is given other references.
    """
    names = {name for result in results for name in (result.a, result.b)}
    return plain_anchor(names) or min(names)


def plain_anchor(names: Iterable[str]) -> str | None:
    """Random play, else the weakest plain search, if any of them is among the names."""
    names = set(names)
    plain = [name for name in names if name.startswith("mcts:") and name[5:].isdigit()]
    return "random" if "random" in names else min(plain, key=lambda name: int(name[5:]), default=None)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known about N players, the priors included."""

    scored: np.ndarray  # Float64[N, N]: [i, j] is what i scored against j
    tied: np.ndarray  # Bool[N]: whom only the wide prior connects with the anchor
    anchor: int

    def log_likelihood(self, strength: np.ndarray) -> float:
        """Of strengths [N], in log odds, the anchor's 0."""
        gap = strength[:, None] - strength[None, :]
        apart = strength[self.tied] * ELO / WIDTH
        return float(-(self.scored * np.logaddexp(0, -gap)).sum() - (apart**2).sum() / 2)

    def derivatives(self, strength: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient [N] of the log likelihood, and minus its second derivatives [N, N]."""
        games = self.scored + self.scored.T
        expected = 1 / (1 + np.exp(np.clip(strength[None, :] - strength[:, None], -700, 700)))
        tight = self.tied * (ELO / WIDTH) ** 2
        weight = games * expected * (1 - expected)
        gradient = (self.scored - games * expected).sum(1) - tight * strength
        return gradient, np.diag(weight.sum(1) + tight) - weight


def evidence(points: np.ndarray, anchor: int) -> Evidence:
    """The priors added to what players scored against each other ([N, N]).

    One player of every group that no chain of games connects with the anchor is tied to it.
    """
    met = (points + points.T) > 0
    tied, reached = np.zeros(len(points), bool), _reachable(met, anchor)
    while not reached.all():
        first = int(np.argmin(reached))
        tied[first] = True
        reached |= _reachable(met, first)
    return Evidence(points + DRAWN / 2 * met, tied, anchor)


def most_likely(known: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """The most likely strengths [N], the anchor's 0, and minus the second derivatives [N, N] there."""
    strength = np.zeros(len(known.scored))
    others = np.arange(len(strength)) != known.anchor
    best = known.log_likelihood(strength)
    for _ in range(_STEPS):  # Newton's method; the function is concave, so halving a step that is too long suffices
        gradient, hessian = known.derivatives(strength)
        step = np.zeros_like(strength)
        step[others] = np.linalg.solve(hessian[np.ix_(others, others)], gradient[others])
        while np.abs(step).max(initial=0.0) > 1e-10 and known.log_likelihood(strength + step) < best:
            step /= 2
        strength = strength + step
        best = known.log_likelihood(strength)
        if np.abs(step).max(initial=0.0) < 1e-9:
            break
    return strength, known.derivatives(strength)[1]


def _reachable(met: np.ndarray, start: int) -> np.ndarray:
    """Bool[N]: whom chains of games connect with `start`."""
    reached = np.arange(len(met)) == start
    while (wider := reached | met[reached].any(0)).sum() > reached.sum():
        reached = wider
    return reached
