"""What an engine thinks, in the words of Leela Zero, KataGo and CGOS."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tengen.engine.engine import Candidate, Engine, NetworkView, SearchReport
from tengen.engine.gtp.protocol import GtpError, whole

_SCORED = 10  # moves that are given a score: each costs an evaluation
_OWNERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_CERTAIN = 1.96  # standard deviations that a lower bound lies below the mean


@dataclass(frozen=True)
class ReportOptions:
    """The options of `lz-analyze` and similar commands."""

    player: int | None = None
    every: float = 0.5  # seconds
    most: int | None = None  # moves
    root: bool = False
    ownership: bool = False


def parse_options(arguments: Sequence[str], colour: Callable[[str], int]) -> ReportOptions:
    """Parse `[COLOUR] [CENTISECONDS] [KEY VALUE ...]`. GtpError for unknown keys."""
    found: dict[str, Any] = {}
    left = list(arguments)
    if left and not left[0].isdigit() and left[0].lower() not in _KEYS:
        found["player"] = colour(left.pop(0))
    if left and left[0].isdigit():
        found["every"] = _every(left.pop(0))
    while left:
        key = left.pop(0).lower()
        if key not in _KEYS:
            raise GtpError(f"syntax error: {key} is not supported here, expected some of {', '.join(_KEYS)}")
        if not left:
            raise GtpError(f"syntax error: a value is missing after {key}")
        name, read = _KEYS[key]
        value = read(left.pop(0))
        if name is not None:
            found[name] = value
    return ReportOptions(**found)


def _every(text: str) -> float:
    return max(whole(text, "a whole number of centiseconds"), 1) / 100


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise GtpError("syntax error: expected true or false")
    return text.lower() == "true"


_KEYS: dict[str, tuple[str | None, Callable[[str], Any]]] = {
    "interval": ("every", _every),
    "maxmoves": ("most", whole),
    "minmoves": (None, whole),  # all moves that were looked at are shown
    "rootinfo": ("root", _truth),
    "ownership": ("ownership", _truth),
}


class GtpReport:
    """Writes reports of an engine's search; the network is asked about each move only once."""

    def __init__(self, engine: Engine, names: Callable[[Sequence[int]], list[str]]) -> None:
        self._engine, self._names = engine, names
        self._look: NetworkView | None = None
        self._scores: dict[int, tuple[float, float]] = {}

    @property
    def look(self) -> NetworkView:
        if self._look is None:
            self._look = self._engine.look()
        return self._look

    def leela(self, report: SearchReport, options: ReportOptions) -> str:
        """One line of `lz-analyze`: winrates, priors and bounds in ten thousandths, for the player to move."""
        moves = []
        for order, move in enumerate(report.candidates[: options.most]):
            rate = winrate(move.value)
            low, line = _points(bound(rate, move.visits)), " ".join(self._names(move.line))
            moves.append(
                f"info move {self._name(move)} visits {move.visits} winrate {_points(rate)} "
                f"prior {_points(move.prior)} lcb {low} order {order} pv {line}"
            )
        return " ".join(moves)

    def katago(self, report: SearchReport, options: ReportOptions) -> str:
        """One line of `kata-analyze`, for the player to move; scores where the network has them."""
        parts = []
        for order, move in enumerate(report.candidates[: options.most]):
            rate = winrate(move.value)
            low = bound(rate, move.visits)
            score = ""
            if order < _SCORED and self.look.score is not None:
                mean, spread = self._score(move.action)
                score = f"scoreMean {mean:.4g} scoreStdev {spread:.4g} scoreLead {mean:.4g} scoreSelfplay {mean:.4g} "
            parts.append(
                f"info move {self._name(move)} visits {move.visits} edgeVisits {move.visits} "
                f"utility {move.value:.6g} winrate {rate:.6g} {score}prior {move.prior:.6g} lcb {low:.6g} "
                f"utilityLcb {2 * low - 1:.6g} order {order} pv {' '.join(self._names(move.line))}"
            )
        if options.root:
            root = f"rootInfo visits {report.visits} utility {report.value:.6g} winrate {winrate(report.value):.6g}"
            if self.look.score is not None:
                spread = self.look.score_spread or 0.0
                root += f" scoreLead {self.look.score:.4g} scoreSelfplay {self.look.score:.4g} scoreStdev {spread:.4g}"
            parts.append(root)
        if options.ownership and self.look.ownership is not None:
            parts.append("ownership " + " ".join(f"{owner:.4g}" for owner in self.look.ownership.reshape(-1)))
        return " ".join(parts)

    def cgos(self, report: SearchReport, options: ReportOptions) -> str:
        """The JSON of `cgos-genmove_analyze`, which has no options."""
        del options
        found: dict[str, Any] = {"winrate": round(winrate(report.value), 4), "visits": report.visits}
        if self.look.score is not None:
            found["score"] = round(self.look.score, 2)
        found["moves"] = []
        for order, move in enumerate(report.candidates):
            one: dict[str, Any] = {
                "move": self._name(move),
                "winrate": round(winrate(move.value), 4),
                "prior": round(move.prior, 6),
                "visits": move.visits,
                "pv": " ".join(self._names(move.line)[1:]),
            }
            if order < _SCORED and self.look.score is not None:
                one["score"] = round(self._score(move.action)[0], 2)
            found["moves"].append(one)
        if self.look.ownership is not None:
            found["ownership"] = owners(self.look.ownership)
        return json.dumps(found, separators=(",", ":"))

    def _name(self, move: Candidate) -> str:
        return self._names(move.line[:1])[0]

    def _score(self, action: int) -> tuple[float, float]:
        """The final score after a move, for the player who makes it, and its standard deviation."""
        if action not in self._scores:
            after = self._engine.look(self._engine.step(self._engine.state, action))
            sign = 1 if after.player == self.look.player else -1
            self._scores[action] = (sign * (after.score or 0.0), after.score_spread or 0.0)
        return self._scores[action]


def winrate(value: float) -> float:
    """A value in [-1, 1] as a chance to win; draws count half."""
    return (value + 1) / 2


def bound(rate: float, visits: int) -> float:
    """A lower bound of the chance to win, as if every visit were an independent game. Trees keep no variance."""
    if visits == 0:
        return 0.0
    uncertain = max(rate * (1 - rate), 1 / (4 * visits))
    return max(rate - _CERTAIN * math.sqrt(uncertain / visits), 0.0)


def owners(ownership: np.ndarray) -> str:
    """Float[H, W] from -1 to 1 as CGOS writes it: a character for each point, row by row from the top."""
    shares = np.clip((ownership.reshape(-1) + 1) / 2, 0, 1)
    return "".join(_OWNERS[round(float(share) * 62)] for share in shares)


def _points(share: float) -> int:
    return round(10_000 * share)
