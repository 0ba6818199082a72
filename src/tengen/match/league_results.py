"""All results that a league is rated by: those of the run itself, of earlier ratings, and of matches."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from tengen.files import lock
from tengen.match import results
from tengen.match.results import MatchResult

FOLDER = "ratings"
_RUNS_OWN = "results.jsonl"


class LeagueResults:
    """What was played, here and on disk. Only `note` writes, and only into a file of its own."""

    def __init__(self, path: Path, others: Sequence[Path]) -> None:
        """Results are added to the file `path`, and read from `others` too. TengenError names a line that is none."""
        self.path = path
        self.mine = results.read(path)
        self._others = tuple(others)
        self._known: list[MatchResult] = []
        self.refresh()

    @classmethod
    def of_run(cls, run: Path, simulations: int, own: bool, more: Sequence[Path] = ()) -> Self:
        """Of networks that search so many positions per move; `own`: as many as in the ratings of the run itself.

        `more`: files of results, or folders of matches.
        """
        others = [run / FOLDER / _RUNS_OWN] if own else []
        others += [path / _RUNS_OWN if path.is_dir() else path for path in more]
        return cls(file_of(run, simulations), others)

    @property
    def all(self) -> list[MatchResult]:
        """Every result so far."""
        return [*self._known, *self.mine]

    @property
    def names(self) -> list[str]:
        """Of all who have played."""
        return list(dict.fromkeys(name for result in self.all for name in (result.a, result.b)))

    def refresh(self) -> None:
        """Take in what a run that goes on has added."""
        self._known = [result for path in self._others for result in results.read(path)]

    def note(self, number: int, result: MatchResult) -> None:
        """The match of that number, 0 for the first in the file, stands so. It is on the disk when this returns."""
        if result.games:
            self.mine[number:] = [result]
            results.write(self.path, *self.mine)


def file_of(run: Path, simulations: int) -> Path:
    """Where results of networks that search so many positions per move are added."""
    return run / FOLDER / f"rate-s{simulations}.jsonl"


@contextlib.contextmanager
def locked(run: Path) -> Iterator[None]:
    """Only one process adds results; the run itself may go on meanwhile."""
    with lock.locked(run / FOLDER, name=".rate-lock", what=f"the rating of {run}", other="run"):
        yield
