"""What a person wants to know first of a run: whether it lives and since when, how far, how strong, and what is next.

    found = overview.look(base, notices.look(base), {"games": 1204, "rows": 21400})
    print("\n".join(overview.describe(found)))

From the notices, the metrics and the configuration; needs no JAX.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from tengen import schema
from tengen.config import reader, source
from tengen.config.problems import ConfigError
from tengen.config.settings.run import GoalSection
from tengen.config.source import as_config
from tengen.monitor.progress import Goal, Outlook, RatedNetwork, RunProgress, clock
from tengen.run import counts as counting
from tengen.run import metrics
from tengen.run.counts import RunCounts
from tengen.run.part_status import DRIVERS, PartStatus
from tengen.run.time_budget import TimeBudget

State = Literal["new", "running", "stopped", "killed"]
_SPEEDS = ("games_per_second", "rows_per_second", "steps_per_second")
_LONG = 10.0  # seconds of doing the same that are told
_RATED = ("fused", "sync")  # kinds of runs that rate their networks now and then


@dataclass(frozen=True)
class Overview:
    """A run at one look."""

    state: State
    driver: PartStatus | None = None  # what runs the whole of it, or did until it was killed
    running: float = 0.0  # seconds since a living run was started
    since: datetime | None = None  # when that was; or when a dead run gave its last sign
    silent: float | None = None  # seconds since the last sign of a dead run
    elapsed: float = 0.0  # seconds of the run, over all its restarts
    games: int = 0
    rows: int = 0
    steps: int = 0
    outlook: Outlook | None = None
    reached: str = ""  # which part of the goal, in words
    rating: RatedNetwork | None = None
    network: str = ""  # whose rating that is
    next_rating: float | None = None  # seconds; negative: it is due
    commands: Mapping[str, str] = field(default_factory=dict)  # what for -> command


def look(
    base: Path,
    parts: Sequence[PartStatus],
    counts: Mapping[str, int],
    rated: tuple[str, RatedNetwork] | None = None,
    playable: bool = False,
    now: datetime | None = None,
) -> Overview:
    """`counts` are the rows and games on the disk, `rated` the newest network with a rating."""
    now = now or datetime.now(UTC)
    path = base / metrics.NAME
    line, progress = metrics.last(path), metrics.last(path, "progress") or {}
    lives = any(seen.alive for seen in parts)
    driver = next((seen for seen in parts if seen.kind in DRIVERS and seen.alive == lives), None)
    state: State = "running" if lives else "killed" if parts else "stopped" if line else "new"
    last = _time(line)
    silent = None if last is None else max((now - last).total_seconds(), 0.0)
    elapsed = float(line["elapsed"]) if line else 0.0
    since, running = last, 0.0
    if lives:
        running = max(seen.running for seen in parts if seen.alive and driver in (None, seen))
        since = now - timedelta(seconds=running)
        elapsed += min(silent or 0.0, running)
    told = [progress, counts, *([driver.figures] if driver else [])]
    games, rows = (max(_count(figures, name) for figures in told) for name in ("games", "rows"))
    steps = max(_count(figures, "steps") for figures in [*told, *(seen.figures for seen in parts)])
    goal, minutes = _settings(base)
    done = RunCounts(games=games, rows=rows, seconds=elapsed)
    speeds = {name: progress[name] for name in _SPEEDS if isinstance(progress.get(name), int | float)}
    shown = RunProgress(elapsed=elapsed, games=games, rows=rows, steps=steps, **speeds)
    reached = counting.reached(goal, done, steps) if goal and not lives else ""
    rating = metrics.last(path, "rating")
    longer = counting.further(goal, done, steps) if goal and reached else {}
    return Overview(
        state=state,
        driver=driver,
        running=running,
        since=since,
        silent=None if lives else silent,
        elapsed=elapsed,
        games=games,
        rows=rows,
        steps=steps,
        outlook=replace(shown, goal=Goal(**asdict(goal))).outlook() if goal else None,
        reached=reached,
        rating=rated[1] if rated else None,
        network=rated[0] if rated else "",
        next_rating=_next(goal, minutes, rating, elapsed) if driver and lives and driver.kind in _RATED else None,
        commands=_commands(base, driver, state, longer, playable),
    )


def describe(found: Overview) -> list[str]:
    """For people, the state first."""
    lines = [_state(found)]
    if found.state == "new":
        return [*lines, *_next_lines(found)]
    done = [f"{found.games:,} games", f"{found.rows:,} rows", f"{found.steps:,} steps"]
    lines.append(f"how far:  {'; '.join(filter(None, (str(found.outlook or ''), ', '.join(done))))}")
    strength = (
        f"{found.rating.elo:.0f} +-{found.rating.error:.0f} Elo above {found.rating.against} ({found.network})"
        if found.rating
        else "not measured yet"
    )
    lines.append(f"strength: {strength}")
    return [*lines, *_next_lines(found)]


def values(found: Overview) -> dict[str, Any]:
    """For programs."""
    return {
        "state": found.state,
        "running": found.running,
        "mode": None if found.driver is None else found.driver.kind,
        "since": None if found.since is None else found.since.astimezone(UTC).isoformat(timespec="seconds"),
        "silent": found.silent,
        "elapsed": found.elapsed,
        "steps": found.steps,
        "goal": None if found.outlook is None else asdict(found.outlook),
        "reached": found.reached,
        "rating": None if found.rating is None else {**asdict(found.rating), "network": found.network},
        "next_rating": found.next_rating,
        "commands": dict(found.commands),
    }


def _state(found: Overview) -> str:
    driver = found.driver
    who = f" ({driver.kind}, process {driver.process} on {driver.machine})" if driver else ""
    if found.state == "new":
        return "not running, and nothing was done yet"
    if found.state == "running":
        since = found.since.astimezone() if found.since else None
        today = since is None or since.date() == datetime.now().astimezone().date()
        at = "" if since is None else f", since {since:%H:%M:%S}" if today else f", since {since:%Y-%m-%d %H:%M}"
        doing = "" if driver is None else f": {driver.words}"
        if driver is not None and driver.seconds >= _LONG and driver.kind != "async":
            doing += f" (for {clock(driver.seconds)})"
        return f"running for {clock(found.running)}{at}{who or ' (parts without a driver)'}{doing}"
    ago = "at an unknown time" if found.silent is None else f"{_ago(found.silent)} ago"
    after = f" after {clock(found.elapsed)}"
    if found.state == "killed":
        return f"killed {ago}{after}{who}" + (f", while: {driver.words}" if driver else "")
    return f"stopped {ago}{after}" + (f": {found.reached}" if found.reached else "")


def _next_lines(found: Overview) -> list[str]:
    words = []
    if found.state == "running" and found.outlook is not None and found.outlook.left:
        words.append(f"the end in {clock(found.outlook.left)}")
    if found.next_rating is not None:
        words.append(f"a rating in {clock(found.next_rating)}" if found.next_rating > 0 else "a rating, which is due")
    lines = ["; ".join(reversed(words)), *(f"{what}: {command}" for what, command in found.commands.items())]
    lines = [line for line in lines if line]
    return [f"{'next:' if number == 0 else '':<9} {line}" for number, line in enumerate(lines)]


def _commands(
    base: Path, driver: PartStatus | None, state: State, longer: Mapping[str, Any], playable: bool
) -> dict[str, str]:
    found = {}
    if state != "running":
        words = ["tengen", "daemon" if driver and driver.kind == "daemon" else "run", as_config(base)]
        for name, limit in longer.items():
            words += ["--set", f"goal.{name}={limit:g}" if isinstance(limit, float) else f"goal.{name}={limit}"]
        found["train further" if longer else "begin" if state == "new" else "go on"] = shlex.join(words)
    if playable:
        found["play it"] = shlex.join(["tengen", "play", str(base)])
    return found


def _settings(base: Path) -> tuple[GoalSection | None, float | None]:
    """The goal, and the minutes between two ratings, as far as the configuration can be read."""
    try:
        data = reader.parse(source.find(base).text).data
    except ConfigError:
        return None, None
    sections = data if isinstance(data, dict) else {}
    goal, _ = schema.check(GoalSection, sections.get("goal"))
    rating = sections.get("rating")
    minutes = rating.get("minutes") if isinstance(rating, dict) else None
    return goal, minutes if isinstance(minutes, int | float) else None


def _next(
    goal: GoalSection | None, minutes: float | None, rating: dict[str, Any] | None, elapsed: float
) -> float | None:
    """Seconds until the next rating is due; None if nothing tells, or if it is the last, which comes with the end."""
    if goal is None or minutes is None:
        return None
    plan = TimeBudget.of(goal, minutes)
    due = (rating["elapsed"] if rating else 0.0) + plan.every
    if plan.goal is not None and plan.goal - max(due, elapsed) <= plan.every / 2:
        return None
    return due - elapsed


def _time(line: Mapping[str, Any] | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(str((line or {}).get("time")))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _count(figures: Mapping[str, Any], name: str) -> int:
    value = figures.get(name)
    return value if type(value) is int and value >= 0 else 0


def _ago(seconds: float) -> str:
    """3 minutes"""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size or (unit == "minute" and seconds >= size):
            count = int(seconds // size)
            return f"{count:,} {unit}{'s' * (count != 1)}"
    return f"{int(seconds)} second{'s' * (int(seconds) != 1)}"
