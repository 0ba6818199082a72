"""The finished games of a match: the score and its interval, by seat, how games ended, and whose fault it was."""

import collections
import datetime
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tengen.data.records.records import Record
from tengen.games.core import Game
from tengen.match.engines.gtp_client import points
from tengen.match.game_record import PlayedGame
from tengen.match.results import MatchResult

_CLOSE = 0.01  # points: final scores that differ by less are equal


class MatchGames:
    """The games of one match, in memory; a `MatchFolder` also keeps them on disk."""

    def __init__(self, names: tuple[str, str], games: int, played: Mapping[int, PlayedGame] | None = None) -> None:
        """`games` are those of the whole match, `played` those that are finished, by number."""
        self.names, self.games = names, games
        self.played: Mapping[int, PlayedGame] = played or {}

    def add(self, *games: PlayedGame) -> None:
        """Adds finished games; those that are there already stay as they are."""
        # Not in place: another thread may be reading it.
        self.played = {**{game.number: game for game in games}, **self.played}

    @property
    def missing(self) -> list[int]:
        """The numbers of the games that are still to be played."""
        return [number for number in range(self.games) if number not in self.played]

    @property
    def finished(self) -> list[PlayedGame]:
        """The finished games in order."""
        return [self.played[number] for number in sorted(self.played)]

    @property
    def outcomes(self) -> tuple[np.ndarray, np.ndarray]:
        """Float64[G]: the results for A, 0 for games that are missing; Bool[G]: which games are finished."""
        values, there = np.zeros(self.games), np.zeros(self.games, bool)
        for number, game in self.played.items():
            values[number], there[number] = game.result, True
        return values, there

    @property
    def result(self) -> MatchResult:
        """The finished games, counted for A."""
        return MatchResult.of_games(*self.names, *self.outcomes)

    def by_seat(self) -> dict[str, MatchResult]:
        """The result of the games in which A moved first, and of those in which it moved second."""
        values, there = self.outcomes
        first = np.arange(self.games) % 2 == 0
        seats = {"first": there & first, "second": there & ~first}
        return {seat: MatchResult.of_games(*self.names, values, which) for seat, which in seats.items()}

    @property
    def mean_length(self) -> float:
        """Moves per game, the opening's included; there must be a game."""
        return float(np.mean([len(game.actions) for game in self.played.values()]))

    @property
    def endings(self) -> dict[str, int]:
        """How many games ended how."""
        return dict(collections.Counter(game.ending for game in self.finished).most_common())

    def faults(self, side: int) -> list[PlayedGame]:
        """The games that A (0) or B (1) lost by a fault."""
        return [game for game in self.finished if game.fault and (game.result < 0) == (side == 0)]

    def other_counts(self, side: int) -> tuple[int, int, int]:
        """How many final scores A (0) or B (1) gave, how many of them differ from ours, and name another winner."""
        there = differ = winner = 0
        for game in self.played.values():
            theirs = points((game.opinions.a, game.opinions.b)[side] or "")
            if theirs is not None and game.score is not None:
                there += 1
                differ += abs(theirs - game.score) > _CLOSE
                winner += np.sign(theirs) != np.sign(game.score)
        return there, differ, int(winner)

    def records(self, game: Game, id: str = "game-{}", **rest: Any) -> Iterator[Record]:
        """All finished games for people, with today's date."""
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        for one in self.finished:
            yield one.record(game, self.names, date=date, id=id.format(one.number + 1), **rest)

    def lines(self) -> list[str]:
        """A summary for people."""
        lines = [str(self.result)]
        if not self.played:
            return lines
        for seat, result in self.by_seat().items():
            if result.games:
                lines.append(f"  moving {seat}: {100 * result.share:.1f} % of {result.games}, {result.counts}")
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
        """The summary as JSON data."""
        result = self.result
        about: dict[str, Any] = {"a": result.a, "b": result.b, "games": result.games, "of": self.games}
        if not self.played:
            return about
        low, high = result.interval
        faults = {name: self.faults(side) for side, name in enumerate(self.names)}
        counts = {name: self.other_counts(side) for side, name in enumerate(self.names)}
        return about | {
            **_counts(result),
            "share": result.share,
            "share_low": low,
            "share_high": high,
            **result.figures(),
            "by_seat": {seat: _counts(found) for seat, found in self.by_seat().items()},
            "mean_length": self.mean_length,
            "endings": self.endings,
            "faults": {
                name: [{"game": game.number + 1, "fault": game.fault, "reason": game.reason} for game in games]
                for name, games in faults.items()
                if games
            },
            "other_counts": {
                name: dict(zip(("counted", "different", "other_winner"), found, strict=True))
                for name, found in counts.items()
                if found[0]
            },
        }


def _counts(result: MatchResult) -> dict[str, int]:
    return {"wins": result.wins, "draws": result.draws, "losses": result.losses}
