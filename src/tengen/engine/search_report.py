"""The report of a search, and the raw output of a network."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tengen.engine.programs import Roots


@dataclass(frozen=True)
class Candidate:
    action: int
    visits: int
    value: float  # in [-1, 1], for the player who makes it
    prior: float  # what the network thought of it before the search
    line: tuple[int, ...]  # how the search expects the game to go on, this move first


@dataclass(frozen=True)
class SearchReport:
    """The result of a search. Values are in [-1, 1], for the player to move."""

    player: int  # who moves
    visits: int  # of the whole tree, with what was known before
    value: float
    seconds: float  # that this thinking took
    evaluations: int  # positions that the network looked at in it
    candidates: Sequence[Candidate]  # the best first; empty where the game is over
    nodes: int  # positions in the tree

    @property
    def action(self) -> int | None:
        """The move to play; None where the game is over."""
        return self.candidates[0].action if self.candidates else None


@dataclass(frozen=True)
class NetworkView:
    """The raw output of a network for a position, from the side of the player to move."""

    player: int  # who moves
    policy: np.ndarray  # Float32[A]: probabilities of the legal moves, 0 for others
    win: float
    draw: float
    loss: float
    ownership: np.ndarray | None  # Float32[H, W]: from 1, the mover's at the end, to -1, the opponent's
    score: float | None  # the final score in points, komi included
    score_spread: float | None  # its standard deviation
    opponent_policy: np.ndarray | None  # Float32[A]: probabilities of the opponent's reply; illegal ones not left out
    moves_left: float | None  # until the game ends
    targets: dict[str, np.ndarray] = field(default_factory=dict)
    """Other targets of the game that the network has a head for: Float32[H, W], Float32[A] or Float32[]."""

    @property
    def value(self) -> float:
        """In [-1, 1]."""
        return self.win - self.loss


def candidates(roots: Roots) -> list[Candidate]:
    """The moves of a root: by visits, then by prior. Before any search, all legal moves by prior."""
    visits, prior = np.asarray(roots.child_visits), np.asarray(roots.prior)
    values, lines = np.asarray(roots.child_value), np.asarray(roots.lines)
    known = np.flatnonzero(visits > 0)
    if len(known) == 0:
        known = np.flatnonzero(prior > 0)
    order = known[np.lexsort((-prior[known], -visits[known]))]
    return [
        Candidate(
            action=int(action),
            visits=int(visits[action]),
            value=float(np.clip(values[action] if visits[action] else roots.value, -1, 1)),
            prior=float(prior[action]),
            line=tuple(int(move) for move in lines[action] if move >= 0) or (int(action),),
        )
        for action in order
    ]
