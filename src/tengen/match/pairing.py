"""Chooses the next match, so that ratings become certain soonest; docs/rate.md has the formula.

As the chance p to win is itself uncertain, w is the mean of p (1 - p) over what the difference of the two may be: a
normal distribution of variance v, for which the mean of the logistic curve is about another, flatter logistic curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tengen.match.ratings import Ratings
from tengen.match.results import ELO

SPREAD = 300.0  # Elo: how far a network that has not played may be from its neighbour in the run


@dataclass(frozen=True)
class PairChoice:
    a: str
    b: str
    gain: float  # Elo squared: by how much the variances of all ratings together are expected to shrink


@dataclass(frozen=True, eq=False)
class Beliefs:
    """About N players, in the order of `Ratings.players`."""

    strength: np.ndarray  # Float64[N]: in log odds
    covariance: np.ndarray  # Float64[N, N]: in log odds squared


def choose(ratings: Ratings, able: Sequence[str], games: int, run: Sequence[str] = ()) -> PairChoice | None:
    """The pair of players who are `able` to play whose match of this many games gains most; None if there is no pair.

    All of them must be in the ratings. `run`: the networks of a run in the order in which they were saved.
    """
    here = [ratings.places[name] for name in dict.fromkeys(able)]
    if len(here) < 2:
        return None
    found = gains(beliefs(ratings, run), games)[np.ix_(here, here)]
    found[np.tril_indices(len(here))] = -np.inf  # every pair once
    first, second = np.unravel_index(int(np.argmax(found)), found.shape)
    a, b = (ratings.players[here[i]].name for i in (first, second))
    return PairChoice(a, b, float(found[first, second]) * ELO**2)


def gains(known: Beliefs, games: int) -> np.ndarray:
    """Float64[N, N]: how much a match of each pair is expected to take off the trace of the covariance."""
    squares = known.covariance @ known.covariance
    moved = _of_differences(squares)  # |Cd|^2
    variance = _of_differences(known.covariance)
    flatter = 1 / np.sqrt(1 + np.pi / 8 * variance)
    gap = known.strength[:, None] - known.strength[None, :]
    chance = 1 / (1 + np.exp(np.clip(-gap * flatter, -700, 700)))
    information = games * flatter * chance * (1 - chance)
    return moved * information / (1 + information * variance)


def beliefs(ratings: Ratings, run: Sequence[str] = ()) -> Beliefs:
    """The assumptions about all players before the next match."""
    place = ratings.places
    played = {rating.name for rating in ratings.players if rating.games or rating.name == ratings.anchor}
    strength = np.array([rating.elo for rating in ratings.players])
    like, apart = np.arange(len(place)), np.zeros(len(place))
    in_run = [name for name in run if name in place]
    known = [number for number, name in enumerate(in_run) if name in played]
    for number, name in enumerate(in_run):
        if name not in played:
            nearest = min(known, key=lambda other, number=number: (abs(other - number), other), default=None)
            like[place[name]] = place[ratings.anchor if nearest is None else in_run[nearest]]
            apart[place[name]] = SPREAD**2
    unknown = [i for i, rating in enumerate(ratings.players) if rating.name not in played and not apart[i]]
    if unknown and len(unknown) < len(strength):  # an engine that has not played is assumed to be average
        strength[unknown] = np.delete(strength, unknown).mean()
    covariance = ratings.covariance[np.ix_(like, like)] + np.diag(apart)
    return Beliefs(strength[like] / ELO, covariance / ELO**2)


def _of_differences(matrix: np.ndarray) -> np.ndarray:
    """[i, j]: d'Md for d = e_i - e_j."""
    own = np.diag(matrix)
    return np.maximum(own[:, None] + own[None, :] - matrix - matrix.T, 0.0)
