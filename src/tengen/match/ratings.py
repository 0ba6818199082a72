"""Elo ratings of many players from all their games: Bradley-Terry by maximum likelihood, with error bars.

A player rated d points above another is expected to score 1 / (1 + 10 ** (-d / 400)). A draw is half a win and half a
loss. Two weak priors keep everything finite: one game more, drawn, between any two players who met; and a wide normal
distribution around the anchor, for groups of players whom no chain of games connects with it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tengen.errors import TengenError
from tengen.match.results import ELO, SURE, MatchResult

DRAWN = 1.0  # games added between any two players who met
WIDTH = 3000.0  # Elo: standard deviation of the prior around the anchor
_STEPS = 200
_NAME = 48  # columns of the table that a name may take
_CHART, _FEWEST = 40, 12  # columns of the chart at most, and below which there is none


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
    anchor: str
    players: tuple[Rating, ...]
    covariance: np.ndarray  # Float64[N, N]: in Elo squared, in the order of `players`; zeros for the anchor

    def __getitem__(self, name: str) -> Rating:
        return self.players[self.places[name]]

    def difference(self, a: str, b: str) -> tuple[float, float]:
        """How much stronger a is than b, and half of the 95 % interval of that."""
        i, j = self.places[a], self.places[b]
        variance = self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j]
        return self.players[i].elo - self.players[j].elo, SURE * float(np.sqrt(max(variance, 0.0)))

    def centred(self) -> "Ratings":
        """The same ratings, each error being that of the difference to the average of all players.

        An anchor that loses every game makes all errors relative to it large, though the differences between the others
        are well known. In the average, players count by how much is known about them, so that this anchor hardly
        matters. Two players have only one difference, which stays as it is.
        """
        others = np.arange(len(self.players)) != self.places[self.anchor]
        if len(others) < 3:
            return self
        known = np.zeros(len(self.players))
        information = np.linalg.inv(self.covariance[np.ix_(others, others)])
        known[others], known[~others] = np.diag(information), information.sum()
        weights = np.maximum(known, 0.0) / np.maximum(known, 0.0).sum()
        shift = np.eye(len(weights)) - weights
        variance = np.diag(shift @ self.covariance @ shift.T)
        errors = SURE * np.sqrt(np.maximum(variance, 0.0))
        return replace(
            self, players=tuple(replace(one, error=float(e)) for one, e in zip(self.players, errors, strict=True))
        )

    @cached_property
    def places(self) -> dict[str, int]:
        return {rating.name: place for place, rating in enumerate(self.players)}

    @property
    def ranked(self) -> list[Rating]:
        """The players that have played, the strongest first."""
        return [rating for rating in self.players if rating.games]

    @property
    def unplayed(self) -> list[str]:
        return [rating.name for rating in self.players if not rating.games]

    def __str__(self) -> str:
        return self.table(columns=0)

    def table(self, columns: int = 100) -> str:
        """Rank, name, Elo, error, games and score; and a chart where there is room for one."""
        players = self.ranked
        if not players:
            return "no games so far"
        width = min(_NAME, max(len("player"), *(len(rating.name) for rating in players)))
        room = min(_CHART, columns - width - 40)
        low, high = _range(players)
        head = f"{'':>4} {'player':<{width}} {'Elo':>6} {'+-':>5} {'games':>6} {'score':>7}"
        lines = [f"{head}  {low:<+{room // 2}.0f}{high:>+{room - room // 2}.0f}" if room >= _FEWEST else head]
        for rank, rating in enumerate(players, 1):
            # The end of a name says most: the names of a run begin alike.
            name = rating.name if len(rating.name) <= width else "..." + rating.name[3 - width :]
            error = f"{rating.error:.0f}" if rating.error else ""
            share = f"{100 * rating.points / rating.games:.1f} %"
            chart = "  " + _bar(rating, low, high, room) if room >= _FEWEST else ""
            line = f"{rank:>4} {name:<{width}} {rating.elo:>6.0f} {error:>5} {rating.games:>6} {share:>7}{chart}"
            lines.append(line.rstrip())
        if missing := self.unplayed:
            some = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
            lines.append(f"without a game: {len(missing)} ({some})")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {
            "zero": self.anchor,
            "games": sum(rating.games for rating in self.players) // 2,
            "players": [
                {
                    "rank": rank,
                    "name": rating.name,
                    "elo": round(rating.elo, 3),
                    "error": round(rating.error, 3),
                    "games": rating.games,
                    "points": rating.points,
                }
                for rank, rating in enumerate(self.ranked, 1)
            ],
            "unplayed": self.unplayed,
        }


def _range(players: list[Rating]) -> tuple[float, float]:
    """The Elo that the chart shows: all ratings, and error bars unless they are out of all proportion."""
    elos = [rating.elo for rating in players]
    slack = max(50.0, 0.15 * (max(elos) - min(elos)))
    sure = [rating for rating in players if rating.error <= 4 * slack]
    low = min([*elos, *(rating.elo - rating.error for rating in sure)])
    high = max([*elos, *(rating.elo + rating.error for rating in sure)])
    return (low, high) if high > low else (low - slack, high + slack)


def _bar(rating: Rating, low: float, high: float, room: int) -> str:
    def column(elo: float) -> int:
        return round((min(max(elo, low), high) - low) / (high - low) * (room - 1))

    first, last = column(rating.elo - rating.error), column(rating.elo + rating.error)
    cells = ["-" if first <= place <= last else " " for place in range(room)]
    cells[column(rating.elo)] = "o"
    return "".join(cells)


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


def rate(results: list[MatchResult]) -> Ratings | None:
    """The ratings of all players in the results on their own scale, `centred`; None if there are no results."""
    return fit(results, anchor(players_in(results))).centred() if results else None


def players_in(results: Iterable[MatchResult]) -> list[str]:
    return list(dict.fromkeys(name for result in results for name in (result.a, result.b)))


def anchor(names: Iterable[str], default: str | None = None) -> str:
    """Whose rating is 0: random play, else the weakest plain search, else `default` or the first by name.

    It depends on the players alone, so the scale stays if a run is given other references.
    """
    names = list(names)
    plain = [name for name in names if is_reference(name)]
    return min(plain, key=playouts, default=default or min(names))


def is_reference(name: str) -> bool:
    """Whether a player of that name is the same in every run: `random`, or plain search such as `mcts:200`."""
    return name == "random" or (name.startswith("mcts:") and name[5:].isdigit())


def playouts(name: str) -> int:
    """The playouts per move of a reference; 0 for `random`."""
    return int(name.removeprefix("mcts:")) if name != "random" else 0


@dataclass(frozen=True, eq=False)
class Evidence:
    """The results of N players among each other, the priors included."""

    scored: np.ndarray  # Float64[N, N]: [i, j] is what i scored against j
    tied: np.ndarray  # Bool[N]: players whom only the wide prior connects with the anchor
    anchor: int

    def log_likelihood(self, strength: np.ndarray) -> float:
        """The log likelihood of strengths [N] in log odds, the anchor's being 0."""
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
    """Bool[N]: players whom a chain of games connects with `start`."""
    reached = np.arange(len(met)) == start
    while (wider := reached | met[reached].any(0)).sum() > reached.sum():
        reached = wider
    return reached
