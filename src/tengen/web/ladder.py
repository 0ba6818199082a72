"""Who beat whom: the ratings of a run, its matches, and the matches that were played against others."""

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tengen import schema
from tengen.errors import TengenError
from tengen.match import ratings, results
from tengen.match.match_games import SUMMARY
from tengen.match.results import MatchResult
from tengen.run import networks
from tengen.run.metrics import finite
from tengen.web.curves import AXES, brief
from tengen.web.folders import inside

_MOST_FITTED = 400  # players; the time of a fit grows with their third power
_MOST_POINTS = 600  # of the curve of ratings
_MOST_SHOWN = 400  # players of a table, and pairs of players
_LARGEST = 1 << 20  # bytes of a summary


def ladders(base: Path, lines: Iterable[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The ladders of a run, that of its own ratings first, and messages about files that cannot be read.

    `lines` are the run's metrics, which have the ratings as they were when they were measured.
    """
    found, problems = [], []
    paths = sorted(path for path in inside(base / results.OF_RUN.parent) if path.suffix == ".jsonl")
    for path in sorted(paths, key=lambda path: path.name != results.FILE):
        try:
            played = results.read(path)
        except TengenError as error:
            problems.append(str(error))
            continue
        if played:
            title = "the run's own ratings" if path.name == results.FILE else f"tengen rate, {path.stem}"
            found.append({"title": title, "own": path.name == results.FILE, **ladder(played, lines)})
    return found, problems


def ladder(played: Sequence[MatchResult], lines: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Players with their ratings, the strongest first, and the results between them."""
    names = ratings.players_in(played)
    fitted = len(names) <= _MOST_FITTED
    table = (ratings.rate(list(played)) if fitted else None) or None
    totals: dict[str, list[float]] = {name: [0, 0.0] for name in names}  # games and points
    pairs: dict[tuple[str, str], list[int]] = {}
    for one in played:
        for name, points in ((one.a, one.points), (one.b, one.games - one.points)):
            totals[name][0] += one.games
            totals[name][1] += points
        # Both orders of a pair are one.
        a, b, counts = (one.a, one.b, (one.wins, one.draws, one.losses))
        if (b, a) in pairs:
            a, b, counts = b, a, counts[::-1]
        pairs[a, b] = [x + y for x, y in zip(pairs.get((a, b), [0, 0, 0]), counts, strict=True)]
    known = {one.name: (one.elo, one.error) for one in table.players} if table else measured(lines)
    players = [
        {
            "name": name,
            "elo": brief(known[name][0]) if name in known else None,
            "error": brief(known[name][1]) if name in known else None,
            "games": games,
            "points": points,
            "kind": _kind(name),
        }
        for name, (games, points) in totals.items()
    ]
    players.sort(key=lambda one: (one["elo"] is None, -(one["elo"] or 0.0), one["name"]))
    matches = [
        {"a": a, "b": b, "wins": wins, "draws": draws, "losses": losses}
        for (a, b), (wins, draws, losses) in pairs.items()
    ]
    return {
        "anchor": table.anchor if table else ratings.anchor(names),
        "fitted": fitted,
        "players": players[:_MOST_SHOWN],
        "more_players": max(len(players) - _MOST_SHOWN, 0),
        "matches": matches[-_MOST_SHOWN:],
        "more_matches": max(len(matches) - _MOST_SHOWN, 0),
    }


def measured(lines: Iterable[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """{network: (Elo, error)} as they were when the run measured them."""
    found = {}
    for line in lines:
        if line.get("kind") != "rating":
            continue
        elo, error = finite(line.get("elo")), finite(line.get("error"))
        if elo is not None and error is not None:
            found[str(line.get("network"))] = (elo, error)
    return found


def rating_columns(
    own: Mapping[str, Any] | None, lines: Sequence[Mapping[str, Any]], progress: Mapping[str, Sequence[Any]]
) -> dict[str, list[Any]]:
    """The table of the ratings of the run's own networks: when each was made, Elo, error and name.

    `own` is the run's ladder. Times are those of the ratings (0 for the network that had not learned), or else of when
    the run had the rows in the name.
    """
    then = measured(lines)
    known = {
        one["name"]: (one["elo"], one["error"]) for one in (own or {}).get("players", ()) if one["elo"] is not None
    }
    if own is None or not own["fitted"]:
        known = then
    at = {str(line.get("network")): line for line in lines if line.get("kind") == "rating"}
    order = sorted(known, key=lambda name: networks.parse_counts(name) or (0, 0))
    step = max(1, math.ceil(len(order) / _MOST_POINTS))
    elapsed_at = made_at(progress)
    games_at = Interpolation(progress.get("elapsed", ()), progress.get("games", ()))
    rows = []
    for name in dict.fromkeys([*order[::step], *order[-1:]]):
        elo, error = known[name]
        about = networks.parse_counts(name)
        if name not in at and about is None:
            continue
        line = {"elapsed": 0.0, "steps": 0} if name == networks.UNTRAINED else at.get(name, {})
        elapsed = line.get("elapsed")
        samples, made_of = about or (0, 0)
        if elapsed is None:
            elapsed = elapsed_at(name)
        rows.append(
            {
                "elapsed": elapsed,
                "games": games_at(elapsed),
                "rows": made_of,
                "samples": samples,
                "steps": line.get("steps"),
                "elo": brief(elo),
                "error": brief(error),
                "name": name,
            }
        )
    rows = sorted((row for row in rows if row["elapsed"] is not None), key=lambda row: row["elapsed"])
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def with_axes(table: Mapping[str, list[Any]], progress: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The table with the games, rows, samples and steps that the run had at its times, where it does not say so."""
    found: dict[str, list[Any]] = {}
    times = table.get("elapsed")
    if times is None:
        return dict(table)
    for name in (axis for axis in AXES if axis not in table):
        if known := Interpolation(progress.get("elapsed", ()), progress.get(name, ())):
            found[name] = [known(elapsed) for elapsed in times]
    return {**table, **found}


def made_at(progress: Mapping[str, Sequence[Any]]) -> Callable[[str], float | None]:
    """When a network of a run was made, by its name: when training had its samples, or else the run its rows.

    Trainers of a run in parts make several networks of the same rows.
    """
    times = progress.get("elapsed", ())
    by_samples, by_rows = (Interpolation(progress.get(name, ()), times) for name in ("samples", "rows"))

    def find(name: str) -> float | None:
        samples, rows = networks.parse_counts(name) or (None, None)
        return by_samples(samples) if by_samples else by_rows(rows)

    return find


class Interpolation:
    """y at any x, between known points, of which both coordinates grow; the nearest y outside of them."""

    def __init__(self, xs: Sequence[Any], ys: Sequence[Any]) -> None:
        known = [(a, b) for a, b in zip(xs, ys, strict=False) if a is not None and b is not None]
        self._known = np.array(known, np.float64).reshape(-1, 2)

    def __len__(self) -> int:
        return len(self._known)

    def __call__(self, x: float | None) -> float | None:
        if x is None or not len(self._known):
            return None
        return round(float(np.interp(x, self._known[:, 0], self._known[:, 1])), 3)


def match_summaries(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """The results of the matches in these folders of `tengen match`, as far as they can be read."""
    return [found for folder in folders if (found := _match_summary(folder)) is not None]


def _match_summary(folder: Path) -> dict[str, Any] | None:
    with contextlib.suppress(TengenError):
        found = schema.read_json(MatchResult, folder / SUMMARY, _LARGEST)
        if found.games:
            numbers = {"share": found.share, **found.figures()}
            about = {"a": found.a, "b": found.b, **found.tally, "folder": folder.name}
            return about | {name: brief(finite(x)) for name, x in numbers.items()}
    return None


def _kind(name: str) -> str:
    if networks.parse(name) is not None or name == networks.UNTRAINED:
        return "network"
    return "reference" if ratings.is_reference(name) else "other"
