"""The charts of a run: columns of numbers, made of the lines of its metrics, which are thinned out as they are read."""

import contextlib
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tengen import files, schema
from tengen.monitor import totals
from tengen.monitor.totals import mapping
from tengen.run import metrics
from tengen.run.metrics import finite
from tengen.run.status import SPEEDS

_PROGRESS = b'"kind": "progress"'
_HEAD = 160  # bytes of a line that hold its kind
_RARE = 50_000  # lines of other kinds that are kept
_BUFFER = 1 << 16  # bytes that are read at once; larger buffers are memory maps, which are slower on some machines
_NEWLINE = ord("\n")
AXES = ("elapsed", "games", "rows", "samples", "steps")
"""Columns that a chart may have as its x."""
_TALLIES = ("games", "first", "draws", "second", "moves")
_RECENT = 3  # the calibration of the newest games is that of the last third of the run
# Figures that other charts have, or that none needs.
_SHOWN = ("learning_rate", "loss", "skipped", "bucket", "games", "rows", "samples", "steps")


class MetricsHistory:
    """One file of metrics. `look` reads what was added since the last call."""

    def __init__(self, path: Path, most: int = 800) -> None:
        """About `most` lines of the kind `progress` are kept, evenly spread, and twice as many at most."""
        self._path, self._most = path, most
        self._clear(b"")

    def _clear(self, head: bytes) -> None:
        self._head, self._read = head, 0
        self._kept: list[bytes | dict[str, Any]] = []
        self._newest: bytes | None = None
        self._stride = 1
        self.lines = 0  # of progress, in the whole file
        self.others: list[dict[str, Any]] = []
        """Lines of all other kinds, in the order of the file."""

    @property
    def progress(self) -> list[dict[str, Any]]:
        """Lines of the kind `progress`, evenly spread over the file, and its last one."""
        newest = None if self._newest is None else metrics.parse_line(self._newest)
        kept = [line for line in self._kept if isinstance(line, dict)]
        return [*kept, newest] if newest and (not kept or kept[-1] != newest) else kept

    def look(self) -> bool:
        """Read what is new; whether there was anything. A file that was replaced or cut is read again."""
        before = (self._head, self._read)
        with contextlib.suppress(OSError), io.BufferedReader(files.open_regular(self._path), _BUFFER) as file:
            head = file.read(min(self._read, _HEAD) or _HEAD)
            if head != self._head or os.fstat(file.fileno()).st_size < self._read:
                self._clear(head)
            file.seek(self._read)
            self._scan(file)
        lines = (metrics.parse_line(line) if isinstance(line, bytes) else line for line in self._kept)
        self._kept = [line for line in lines if line is not None]
        self._head = self._head[: self._read]
        return (self._head, self._read) != before

    def _scan(self, file: Iterable[bytes]) -> None:
        """Read to the end. There may be a million lines, so attributes are local variables here."""
        read, lines, stride, kept = self._read, self.lines, self._stride, self._kept
        newest, most = self._newest, 2 * self._most
        for raw in file:
            if raw[-1] != _NEWLINE:  # still being written
                break
            read += len(raw)
            if raw.find(_PROGRESS, 0, _HEAD) >= 0:
                newest = raw
                if lines % stride == 0:  # every n-th line is kept; n doubles when there are too many
                    kept.append(raw)
                    if len(kept) >= most:
                        del kept[1::2]
                        stride *= 2
                lines += 1
            elif len(self.others) < _RARE and (line := metrics.parse_line(raw)) is not None:
                self.others.append(line)
        self._read, self.lines, self._stride, self._newest = read, lines, stride, newest


@dataclass(frozen=True)
class ChartSpec:
    """A chart. `series` are columns of the table, each with its label."""

    id: str
    title: str
    about: str  # one sentence
    series: dict[str, str]
    table: str = "progress"
    unit: str = ""  # "%", "/s" or nothing
    log: bool = False  # begins with a logarithmic scale
    kind: str = "lines"  # "ratings" has error bars


def progress_columns(lines: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """{name: values}: a value for each line, None where it is not known; `new` are the `differences` of the lines."""
    return columns([{**figures_of(line), **_means(tally)} for line, tally in zip(lines, new, strict=True)])


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns with numbers of five digits. Columns without any value are left out."""
    names = dict.fromkeys(name for row in rows for name, value in row.items() if value is not None)
    return {name: [brief(row.get(name)) for row in rows] for name in names}


def brief(value: Any) -> Any:
    """A number with five significant digits, whole ones as they are; None for nan and inf."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.5g}") if math.isfinite(value) else None


def figures_of(line: Mapping[str, Any]) -> dict[str, float | None]:
    """All figures of a line by name. A run in parts has those of the learner and of self-play in `parts`."""
    parts, learner, losses = totals.part_figures(line), totals.learner_figures(line), totals.losses(line)
    figures = {**mapping(learner, "figures"), **mapping(line, "figures")}
    found: dict[str, Any] = {name: line.get(name) for name in (*AXES, "window", "learning_rate")}
    found |= {name: learner.get(name) for name in ("samples", "learning_rate") if found[name] is None}
    found["window"] = found["window"] or None
    found |= {f"{name}_per_second": line.get(f"{name}_per_second") for name in SPEEDS}
    if found["evaluations_per_second"] is None:
        speeds = [finite(part.get("evaluations_per_second")) for part in parts.values()]
        found["evaluations_per_second"] = sum(speed for speed in speeds if speed is not None) or None
    steps, samples = finite(learner.get("steps", found["steps"])), finite(found["samples"])
    speed = finite(found["steps_per_second"])
    if found["samples_per_second"] is None and steps and samples and speed is not None:
        found["samples_per_second"] = speed * samples / steps
    found["loss"] = losses.pop("loss", None)
    found |= {f"loss/{name}": value for name, value in losses.items()}
    found |= {
        f"figure/{name}": value
        for name, value in figures.items()
        if not name.endswith("_loss") and name not in _SHOWN and finite(value) is not None
    }
    policy, entropy = finite(losses.get("policy")), finite(figures.get("policy_target_entropy"))
    if policy is not None and entropy is not None:
        found["policy_kl"] = max(policy - entropy, 0.0)
    return {name: finite(value) for name, value in found.items()}


def _means(tally: Mapping[str, Any]) -> dict[str, float]:
    games = tally.get("games", 0)
    if not games:
        return {}
    shares = {name: tally[name] / games for name in ("first", "draws", "second")}
    return {"length": tally["moves"] / games, "decided": 1 - shares["draws"], **shares}


def differences(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each line the tally of the games since the line before, over all processes that play: each counts from 0."""
    before: dict[str, dict[str, Any]] = {}
    found = []
    for line in lines:
        sources: dict[str, Any] = {"": line.get("played")}
        parts = mapping(line, "parts")
        sources |= {name: mapping(part, "figures").get("played") for name, part in parts.items()}
        new: dict[str, Any] = {}
        for source, tally in sources.items():
            if not _is_tally(tally):
                continue
            last: dict[str, Any] | None = before.get(source)
            if last is None or last["games"] > tally["games"]:
                last = dict.fromkeys(_TALLIES, 0) | {name: [0] * len(tally[name]) for name in ("predicted", "points")}
            before[source] = tally
            for name in _TALLIES:
                new[name] = new.get(name, 0) + tally[name] - last[name]
            for name in ("predicted", "points"):
                change = [a - b for a, b in zip(tally[name], last[name], strict=False)]
                new[name] = [a + b for a, b in zip(new.get(name, [0] * len(change)), change, strict=False)]
        found.append(new)
    return found


def calibration(new: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """{"all" or "recent": bins}, as predicted and actual shares of points, each with the number of searches."""
    found = {}
    for name, first in (("all", 0), ("recent", len(new) - len(new) // _RECENT)):
        tallies = [tally for tally in new[first:] if tally]
        if not tallies or not any(sum(tally["predicted"]) for tally in tallies):
            continue
        counts = [sum(column) for column in zip(*(tally["predicted"] for tally in tallies), strict=False)]
        points = [sum(column) for column in zip(*(tally["points"] for tally in tallies), strict=False)]
        found[name] = [
            {"predicted": round((bin + 0.5) / len(counts), 3), "actual": round(total / count, 4), "count": count}
            for bin, (count, total) in enumerate(zip(counts, points, strict=True))
            if count > 0
        ]
    return found


def epoch_columns(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Columns of the lines that a trainer writes after each epoch, or a daemon after each network."""
    rows = []
    for line in lines:
        if line.get("kind") not in ("epoch", "network"):
            continue
        row = {name: finite(line.get(name)) for name in AXES}
        for place in ("losses", "validation", "test"):
            row |= {f"{place}/{name}": finite(value) for name, value in mapping(line, place).items()}
        rows.append(row)
    return columns(rows)


def evaluation_columns(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    rows = []
    for line in lines:
        if line.get("kind") == "evaluation":
            leaves = schema.leaves(line, between=" ")
            found = {name: value for name, value in leaves if finite(value) is not None}
            rows.append({name: value for name, value in found.items() if name not in ("time", "kind")})
    return columns(rows)


def charts(tables: Mapping[str, Mapping[str, Sequence[Any]]], players: Sequence[str]) -> list[dict[str, Any]]:
    """The charts that the tables have numbers for, ready for JSON."""
    progress = tables.get("progress", {})
    first, second = (players[0], players[1]) if len(players) == 2 else ("first", "second")
    losses = {"loss": "total"} | _labels(progress, "loss/")
    epochs, evaluations = tables.get("epochs", {}), tables.get("evaluations", {})
    measured = [name for name in evaluations if name not in AXES]
    lengths = {name: name for name in measured if name.endswith("length")}
    declared = [
        ChartSpec("ratings", "Rating", "Elo of the run's networks; bars hold 95 %.", {"elo": "Elo"}, "ratings",
                  kind="ratings"),
        ChartSpec("losses", "Losses", "Each head before its weight; the total is weighted.", losses, log=True),
        ChartSpec("training", "Training losses", "After each epoch or network; the total is weighted.",
                  {} if "loss" in progress else
                  _labels(epochs, "losses/"),
                  "epochs", log=True),
        ChartSpec("validation", "Validation losses", "On rows that were not trained on.",
                  _labels(epochs, "validation/"),
                  "epochs", log=True),
        ChartSpec("evaluation", "Evaluation", "Mean results of the evaluations; 1 is the best, -1 the worst.",
                  {name: name for name in measured if name not in lengths}, "evaluations"),
        ChartSpec("evaluation_length", "Length of evaluation games", "Moves per game.", lengths, "evaluations"),
        ChartSpec("accuracy", "Policy accuracy", "How often the network's first choice is the search's.",
                  {"figure/policy_accuracy": "same first choice"}, unit="%"),
        ChartSpec("entropy", "Policy entropy and KL", "In nats; KL is from the search's policy to the network's.",
                  {"figure/policy_entropy": "network", "figure/policy_target_entropy": "search", "policy_kl": "KL"}),
        ChartSpec("value_error", "Value error", "Mean squared difference between the network's value and the result.",
                  {"figure/value_mse": "squared error"}),
        ChartSpec("results", "Results", "Of the games of self-play.",
                  {"first": f"{first} wins", "draws": "draws", "second": f"{second} wins"}, unit="%"),
        ChartSpec("decided", "Decided games", "Games of self-play that were not drawn.", {"decided": "decided"},
                  unit="%"),
        ChartSpec("length", "Game length", "Moves per game of self-play.", {"length": "moves"}),
        ChartSpec("evaluations", "Evaluations", "Positions per second that the network evaluates in self-play.",
                  {"evaluations_per_second": "evaluations"}, unit="/s"),
        ChartSpec("playing", "Rows and games", "Per second, from self-play.",
                  {"rows_per_second": "rows", "games_per_second": "games"}, unit="/s", log=True),
        ChartSpec("learning", "Steps and samples", "Per second, of training.",
                  {"steps_per_second": "steps", "samples_per_second": "samples"}, unit="/s", log=True),
        ChartSpec("learning_rate", "Learning rate", "", {"learning_rate": "learning rate"}),
        ChartSpec("window", "Window and rows", "Rows of the run so far, and how many of them training draws from.",
                  {"rows": "all rows", "window": "window"}),
    ]  # fmt: skip
    shown = {name for chart in declared for name in chart.series}
    declared += [
        ChartSpec(name.replace("/", "-"), name.removeprefix("figure/").replace("_", " ").capitalize(), "", {name: ""})
        for name in progress
        if name.startswith("figure/") and name not in shown
    ]
    found = []
    for order, chart in enumerate(declared):
        table = tables.get(chart.table, {})
        series = {name: label for name, label in chart.series.items() if name in table}
        if series:
            listed = [{"column": name, "label": label} for name, label in series.items()]
            found.append(asdict(chart) | {"series": listed, "order": order})
    return found


def _labels(names: Iterable[str], prefix: str) -> dict[str, str]:
    return {name: name.removeprefix(prefix).replace("_", " ") for name in names if name.startswith(prefix)}


def _is_tally(tally: Any) -> bool:
    if not isinstance(tally, Mapping):
        return False
    lists = all(
        isinstance(tally.get(name), list) and all(finite(x) is not None for x in tally[name])
        for name in ("predicted", "points")
    )
    return lists and all(finite(tally.get(name)) is not None for name in _TALLIES)
