"""What the games of a match say: the score and how sure it is, by seat, how games ended, and whose fault it was."""

import collections
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tengen.match.engines.gtp_client import points
from tengen.match.game_record import PlayedGame
from tengen.match.results import MatchResult
from tengen.match.scores import Score, score

_CLOSE = 0.01  # points: counts that differ by less are the same


@dataclass(frozen=True)
class Tally:
    """Of all finished games, in their order."""

    names: tuple[str, str]
    wanted: int  # games of the whole match
    games: tuple[PlayedGame, ...]

    @cached_property
    def score(self) -> Score | None:
        """For A; None before the first game."""
        if not self.games:
            return None
        values, there = np.zeros(self.wanted), np.zeros(self.wanted, bool)
        numbers = [game.number for game in self.games]
        values[numbers], there[numbers] = [game.result for game in self.games], True
        return score(values, there)

    @property
    def result(self) -> MatchResult:
        """For ratings."""
        return MatchResult(*self.names, *_counts(self.games))

    @property
    def mean_length(self) -> float:
        """Moves of a game, the opening's included."""
        return float(np.mean([len(game.actions) for game in self.games])) if self.games else math.nan

    @property
    def endings(self) -> dict[str, int]:
        """How many games ended how."""
        return dict(collections.Counter(game.ending for game in self.games).most_common())

    def faults(self, side: int) -> list[PlayedGame]:
        """The games that A (0) or B (1) lost by a fault."""
        return [game for game in self.games if game.fault and (game.result < 0) == (side == 0)]

    def other_counts(self, side: int) -> tuple[int, int, int]:
        """Of A's (0) or B's (1) own counts: how many there are, differ from ours, name another winner."""
        there = differ = winner = 0
        for game in self.games:
            theirs = points(game.opinions.get("ab"[side], ""))
            if theirs is not None and game.score is not None:
                there += 1
                differ += abs(theirs - game.score) > _CLOSE
                winner += np.sign(theirs) != np.sign(game.score)
        return there, differ, int(winner)

    def lines(self) -> list[str]:
        """For people."""
        if self.score is None:
            return [f"{self.names[0]} - {self.names[1]}: no game is over yet"]
        lines = [f"{self.names[0]} - {self.names[1]}: {self.score}"]
        for words, first in (("first", True), ("second", False)):
            games = [game for game in self.games if game.a_first == first]
            wins, draws, losses = _counts(games)
            if games:
                share = 100 * (wins + draws / 2) / len(games)
                lines.append(f"  moving {words}: {share:.1f} % of {len(games)}, +{wins} ={draws} -{losses}")
        endings = ", ".join(f"{count} {ending}" for ending, count in self.endings.items())
        lines.append(f"  {self.mean_length:.0f} moves a game; {endings}")
        for side, name in enumerate(self.names):
            faults = self.faults(side)
            for kind, count in collections.Counter(game.fault for game in faults).most_common():
                example = next(game for game in faults if game.fault == kind)
                lines.append(f"  {name} lost {count} by {kind}: game {example.number + 1}: {example.reason}")
            there, differ, winner = self.other_counts(side)
            if differ:
                lines.append(
                    f"  {name} counts {differ} of {there} final positions differently, and names another winner in "
                    f"{winner}; our rules count"
                )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        about: dict[str, Any] = {"a": self.names[0], "b": self.names[1], "games": len(self.games), "of": self.wanted}
        if self.score is None:
            return about
        low, high = (value if math.isfinite(value) else None for value in self.score.elo_interval)
        seats = {}
        for words, first in (("first", True), ("second", False)):
            counts = _counts([game for game in self.games if game.a_first == first])
            seats[words] = dict(zip(("wins", "draws", "losses"), counts, strict=True))
        return about | {
            "wins": self.score.wins,
            "draws": self.score.draws,
            "losses": self.score.losses,
            "share": self.score.share,
            "share_low": self.score.low,
            "share_high": self.score.high,
            "elo": self.score.elo,
            "elo_low": low,
            "elo_high": high,
            "by_seat": seats,
            "mean_length": self.mean_length,
            "endings": self.endings,
            "faults": {
                name: [{"game": game.number + 1, "fault": game.fault, "reason": game.reason} for game in faults]
                for name, faults in ((name, self.faults(side)) for side, name in enumerate(self.names))
                if faults
            },
            "other_counts": {
                name: dict(zip(("counted", "different", "other_winner"), counts, strict=True))
                for name, counts in ((name, self.other_counts(side)) for side, name in enumerate(self.names))
                if counts[0]
            },
        }


def _counts(games: Any) -> tuple[int, int, int]:
    """Wins, draws and losses of A."""
    signs = np.sign([game.result for game in games])
    return int((signs > 0).sum()), int((signs == 0).sum()), int((signs < 0).sum())
