"""Match results: wins, draws and losses, what they say about strength, and the file that collects them.

    {"schema": 1, "a": "s1000", "b": "mcts:200", "wins": 70, "draws": 2, "losses": 28}

A file holds one line per result, in the order of the matches. Adding a result replaces the whole file by rename. One
process writes a file; several processes write several files.
"""

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from tengen import files
from tengen.errors import TengenError
from tengen.schema import REQUIRED, from_json, setting

SURE = 1.959964  # standard deviations on either side that hold 95 % of a normal distribution
ELO = 400 / math.log(10)  # Elo points per unit of log odds
FILE = "results.jsonl"
OF_RUN = Path("ratings", FILE)  # the results of a run, in its directory
_MOST = 2**53 - 1
_NAME = "(?s).+"  # any text that is not empty


@dataclass(frozen=True)
class MatchResult:
    """Games between two players, counted for the first. A draw is half a point.

    The games of a pair depend on each other, so `independent` says how many independent games would be as uncertain;
    None: as many as were played.
    """

    a: str = setting(REQUIRED, "a player", pattern=_NAME, words="the name of a player")
    b: str = setting(REQUIRED, "another player", pattern=_NAME, words="the name of a player")
    wins: int = setting(REQUIRED, "games won by a", low=0, high=_MOST)
    draws: int = setting(REQUIRED, "drawn games", low=0, high=_MOST)
    losses: int = setting(REQUIRED, "games won by b", low=0, high=_MOST)
    independent: float | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of_games(
        cls, a: str, b: str, results: Sequence[float] | np.ndarray, finished: Sequence[bool] | np.ndarray | None = None
    ) -> Self:
        """Counts games with these results for A (above 0 is a win); each two are a pair with colours swapped.

        Games that are not `finished` (Bool[G]) do not count.
        """
        signs = np.sign(np.asarray(results, np.float64))
        if len(signs) % 2:
            raise ValueError(f"a match is pairs of games, got {len(signs)} results")
        there = np.ones(len(signs), bool) if finished is None else np.asarray(finished, bool)
        points, games = np.where(there, (signs + 1) / 2, 0).reshape(-1, 2).sum(1), there.reshape(-1, 2).sum(1)
        played = games > 0
        wins, draws, losses = (int((signs[there] == sign).sum()) for sign in (1, 0, -1))
        independent = independent_games(points[played] / games[played], games[played])
        return cls(a, b, wins, draws, losses, independent)

    def check_together(self) -> list[tuple[str, str]]:
        """In files, a player does not play itself."""
        return [("b", "expected another player than a")] if self.a == self.b else []

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        return self.wins + self.draws / 2

    @property
    def share(self) -> float:
        """A's share of the points; there must be a game."""
        return self.points / self.games

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.share, self.games if self.independent is None else self.independent)

    @property
    def elo(self) -> float:
        """How much stronger A is, as if one more game had been drawn: never infinite."""
        return elo((self.points + 0.5) / (self.games + 1))

    @property
    def elo_interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference; infinite on a side where nothing speaks against it."""
        low, high = self.interval
        return elo(low), elo(high)

    @property
    def counts(self) -> str:
        """`+70 =2 -28`."""
        return f"+{self.wins} ={self.draws} -{self.losses}"

    @property
    def tally(self) -> dict[str, int]:
        return {"wins": self.wins, "draws": self.draws, "losses": self.losses}

    def figures(self) -> dict[str, float | None]:
        """The Elo difference and its interval as JSON data; None where a bound is infinite."""
        low, high = (bound if math.isfinite(bound) else None for bound in self.elo_interval)
        return {"elo": self.elo, "elo_low": low, "elo_high": high}

    def __str__(self) -> str:
        if not self.games:
            return f"{self.a} - {self.b}: no game is over yet"
        (low, high), (elo_low, elo_high) = self.interval, self.elo_interval
        return (
            f"{self.a} - {self.b}: {100 * self.share:.1f} % ({100 * low:.1f} to {100 * high:.1f}) of {self.games} "
            f"games, {self.counts}, Elo {self.elo:+.0f} ({elo_low:+.0f} to {elo_high:+.0f})"
        )


def independent_games(pairs: np.ndarray, games: np.ndarray) -> float:
    """How many independent games are as uncertain as pairs with these shares [P] of the points of 1 or 2 `games` [P].

    The variance counts one more pair, as uncertain as two independent games, so that a few equal pairs do not look
    certain.
    """
    count = float(games.sum())
    share = float((games * pairs).sum()) / count if count else 0.0
    if not 0 < share < 1:
        return count
    single = share * (1 - share)
    return single / ((((games * (pairs - share)) ** 2).sum() + 2 * single) / count**2)


def wilson(share: float, games: float) -> tuple[float, float]:
    """Wilson's 95 % interval for a share of that many independent games."""
    z = SURE**2 / games
    middle = (share + z / 2) / (1 + z)
    half = math.sqrt(z * share * (1 - share) + z * z / 4) / (1 + z)
    # Rounding must not hide that nothing was won, or lost.
    return 0.0 if share <= 0 else middle - half, 1.0 if share >= 1 else middle + half


def elo(share: float) -> float:
    """The difference in Elo at which the stronger player is expected to get that share of the points."""
    if share <= 0:
        return -math.inf
    return math.inf if share >= 1 else ELO * math.log(share / (1 - share))


def expected_share(elo: float) -> float:
    """The share of the points that a player this much stronger is expected to get."""
    return 1 / (1 + math.exp(-elo / ELO))


def read(path: Path) -> list[MatchResult]:
    """All results of a file; none if there is no file. TengenError names the line that is not a result."""
    try:
        text = files.read_text(path)
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise TengenError(f"{path}: not a file of match results (it is not text); move it away to go on") from None
    results = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            results.append(_result(line))
        except ValueError as error:
            raise TengenError(
                f"{path}, line {number}: not the result of a match: {error}; "
                "correct the line or move the file away to go on"
            ) from None
    return results


@functools.lru_cache(maxsize=100_000)  # a run reads its results again and again
def _result(line: str) -> MatchResult:
    """The result in a line of a file. ValueError if it has none."""
    if '"independent":' in line:  # is not in files
        raise ValueError("unknown key independent")
    return from_json(MatchResult, line, strict=True, version=1)


def append(path: Path, *results: MatchResult) -> None:
    """Adds results to a file, which is made if there is none. Existing lines stay as they are."""
    read(path)  # nothing is added to a file that could not be read again
    before = files.read_bytes(path) if path.exists() else b""
    gap = b"\n" if before and not before.endswith(b"\n") else b""
    _write(path, before + gap + _lines(results))


def write(path: Path, *results: MatchResult) -> None:
    _write(path, _lines(results))


def _lines(results: tuple[MatchResult, ...]) -> bytes:
    lines = ({"schema": 1, "a": one.a, "b": one.b, **one.tally} for one in results)
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _write(path: Path, content: bytes) -> None:
    files.make_folder(path.parent)
    files.write_bytes(path, content)
