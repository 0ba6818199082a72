"""Results of matches, and the file that collects them: one line of JSON each, in the order in which they were played.

    {"schema": 1, "a": "s1000", "b": "mcts:200", "wins": 70, "draws": 2, "losses": 28}

Adding a result writes the file anew under its final name, so it is always complete. One process writes a file;
several processes write several files, and `read` takes each of them.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tengen import files
from tengen.errors import TengenError

SCHEMA = 1
_COUNTS = ("wins", "draws", "losses")


@dataclass(frozen=True)
class MatchResult:
    """Games between two players, counted for the first."""

    a: str
    b: str
    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """Of player a; a draw is half a point."""
        return self.wins + self.draws / 2


def read(path: Path) -> list[MatchResult]:
    """All results of a file; none if there is no such file. TengenError names the line that is no result."""
    try:
        text = files.read_text(path)
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise TengenError(f"{path}: not a file of match results (it is no text); move it away to go on") from None
    except OSError as error:
        raise TengenError(f"{path}: cannot be read: {error.strerror}") from None
    results = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            results.append(_result(json.loads(line)))
        except (ValueError, RecursionError) as error:
            raise TengenError(
                f"{path}, line {number}: not the result of a match: {error}; "
                "mend the line or move the file away to go on"
            ) from None
    return results


def append(path: Path, *results: MatchResult) -> None:
    """Add results to a file, which is made if there is none. What it held stays as it was."""
    read(path)  # nothing is added to a file that could not be read again
    try:
        before = files.read_bytes(path) if path.exists() else b""
    except OSError as error:
        raise TengenError(f"{path}: cannot be read: {error.strerror}") from None
    gap = b"\n" if before and not before.endswith(b"\n") else b""
    _write(path, before + gap + _lines(results))


def write(path: Path, *results: MatchResult) -> None:
    """A file of these results alone: what it held is gone."""
    _write(path, _lines(results))


def _lines(results: tuple[MatchResult, ...]) -> bytes:
    return "".join(json.dumps({"schema": SCHEMA, **asdict(result)}) + "\n" for result in results).encode()


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_bytes(path, content)
    except OSError as error:
        raise TengenError(f"{path}: the result could not be written: {error.strerror}") from None


def _result(value: Any) -> MatchResult:
    """ValueError says what is wrong."""
    if not isinstance(value, dict):
        raise ValueError("expected an object")
    if value.get("schema") != SCHEMA:
        raise ValueError(f"expected schema {SCHEMA}, got {value.get('schema')!r}")
    names = [value.get(key) for key in ("a", "b")]
    counts = [value.get(key) for key in _COUNTS]
    if not all(isinstance(name, str) and name for name in names) or names[0] == names[1]:
        raise ValueError("a and b must be the names of two players")
    if not all(type(count) is int and 0 <= count < 2**53 for count in counts):
        raise ValueError("wins, draws and losses must be whole numbers of at least 0")
    return MatchResult(*names, *counts)  # pyright: ignore[reportArgumentType]
