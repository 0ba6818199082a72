"""The status of a run, from its folders alone, wherever its parts run. For `tengen status`.

Changes nothing in the run and needs no JAX. What cannot be read is listed among the problems.
"""

import contextlib
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from tengen import schema
from tengen.config import reader, source
from tengen.config.settings.run import GoalSection
from tengen.config.source import RUN_FILE, as_config
from tengen.data.shuffle import folders as shuffled
from tengen.data.store.store import Store
from tengen.errors import ConfigError, TengenError
from tengen.files import inside
from tengen.match.ratings import Rating
from tengen.monitor import totals
from tengen.monitor.totals import PlayedTotals
from tengen.run import changes, diverged, goals, metrics, networks, part_status
from tengen.run.changes import SettingChange
from tengen.run.goals import RunCounts, TimeBudget
from tengen.run.part_status import DRIVERS, PartStatus
from tengen.run.status import SPEEDS, RatedNetwork, RunStatus
from tengen.words import program

SCHEMA = 1
State = Literal["new", "running", "stopped", "killed", "diverged"]
_RATED = ("fused", "sync", "cluster")  # kinds of runs that rate their networks now and then
_T = TypeVar("_T")


@dataclass(frozen=True)
class NetworkInfo:
    name: str
    state: str  # "waiting for the gate", "accepted", "rejected", "extra"; "saved" by the fused loop
    samples: int
    rows: int
    verdict: dict[str, Any] = field(default_factory=dict)
    elo: float | None = None
    error: float | None = None  # half of the 95 % interval


@dataclass(frozen=True)
class ShuffleInfo:
    name: str
    rows: int
    validation_rows: int
    window: tuple[int, int]  # its first row of the run, and the one after its last


@dataclass(frozen=True)
class DiskUse:
    """Disk space used by a run, and free."""

    folders: dict[str, int] = field(default_factory=dict)  # bytes by name; "" for files outside of folders
    free: int | None = None

    @property
    def used(self) -> int:
        return sum(self.folders.values())


@dataclass(frozen=True)
class RunOverview:
    """The status of a run, and everything else that its folders show."""

    base: Path
    status: RunStatus  # `network` is the one with the rating
    state: State
    driver: PartStatus | None = None  # the process that runs all of it, or did until it was killed
    running: float = 0.0  # seconds since a living run was started
    since: datetime | None = None  # when that was; of a dead run, the time of its last line of metrics
    silent: float | None = None  # seconds since the last line of a dead run
    reached: str = ""  # the part of the goal that is reached, in words
    diverged: str = ""  # that training diverged, at which step, and how to go on, in several lines
    losses: Mapping[str, float] = field(default_factory=dict)  # the last of training, by name
    next_rating: float | None = None  # seconds; negative if it is due
    commands: Mapping[str, str] = field(default_factory=dict)  # purpose -> command
    networks: tuple[NetworkInfo, ...] = ()  # in the order of training
    played: PlayedTotals = field(default_factory=PlayedTotals)
    shuffle: ShuffleInfo | None = None
    disk: DiskUse = field(default_factory=DiskUse)
    metrics: dict[str, Any] | None = None  # the last line
    evaluation: dict[str, Any] | None = None  # the last one of a training of roles
    changes: tuple[tuple[float, SettingChange], ...] = ()  # of settings, after so many seconds of the run
    problems: tuple[str, ...] = ()


def look(base: Path) -> RunOverview:
    """The current state of a run directory. TengenError if there is no run in it."""
    check(base)
    problems: list[str] = []

    def attempt(read: Callable[[Path], _T], otherwise: _T) -> _T:
        try:
            return read(base)
        except (TengenError, OSError) as error:
            problems.append(str(error))
            return otherwise

    ratings = attempt(totals.ratings, None)
    rated = {rating.name: rating for rating in ratings.players} if ratings else {}
    networks = [
        network
        for state, entries in _STATES.items()
        for network in attempt(lambda base, s=state, e=entries: [_network(s, one, rated) for one in e(base)], [])
    ]
    networks.sort(key=lambda network: (network.samples, network.name))
    played = attempt(lambda base: totals.TotalsCounter(base, totals.memory_of(base)).look(), PlayedTotals())
    line = metrics.last(base / metrics.NAME, "progress") or {}
    if not played.chunks:  # a training of roles keeps its samples in memory
        played = replace(played, **{name: line[name] for name in ("rows", "games") if isinstance(line.get(name), int)})
    strongest = [
        (one.name, RatedNetwork(one.elo, one.error or 0.0, ratings.anchor))
        for one in networks
        if ratings and one.elo is not None
    ]
    found = summarise(
        base,
        attempt(part_status.look, []),
        {"games": played.games, "rows": played.rows},
        strongest[-1] if strongest else None,
        playable=any(network.state in ("accepted", "saved") for network in networks),
        networks=tuple(networks),
        played=played,
        shuffle=attempt(newest_shuffle, None),
        disk=attempt(disk_use, DiskUse()),
        metrics=metrics.last(base / metrics.NAME),
        evaluation=metrics.last(base / metrics.NAME, "evaluation"),
        changes=tuple(attempt(changes.over_time, [])),
    )
    return replace(found, problems=tuple(dict.fromkeys((*problems, *played.unreadable))))


def summarise(
    base: Path,
    parts: Sequence[PartStatus],
    on_disk: Mapping[str, int],
    rated: tuple[str, RatedNetwork] | None = None,
    playable: bool = False,
    now: datetime | None = None,
    **more: Any,
) -> RunOverview:
    """The overview with `more` fields; `on_disk` counts rows and games, `rated` is the newest rated network."""
    now = now or datetime.now(UTC)
    path = base / metrics.NAME
    line, progress = metrics.last(path), metrics.last(path, "progress") or {}
    supervised = False
    if line is None and (line := _trained(base)):  # trainers without a driver
        progress = line
        with contextlib.suppress(TengenError):
            supervised = Store(base / totals.SELFPLAY).is_imported
    alive = any(part.alive for part in parts)
    driver = next((part for part in parts if part.kind in DRIVERS and part.alive == alive), None)
    # A daemon writes lines about itself and its networks, and no goal ends it.
    daemon = driver.kind == "daemon" if driver else line is not None and line.get("kind") in ("daemon", "network")
    message = "" if alive else diverged.read(base)
    state: State = "running" if alive else "killed" if parts else "stopped" if line else "new"
    state = "diverged" if message else state
    since, running = metrics.time_of(line), 0.0
    silent = None if since is None else max((now - since).total_seconds(), 0.0)
    elapsed = float(line["elapsed"]) if line else 0.0
    if alive:
        running = max(part.running for part in parts if part.alive and driver in (None, part))
        since = now - timedelta(seconds=running)
        elapsed += min(silent or 0.0, running)
    sources = [progress, on_disk, *([driver.figures] if driver else [])]
    games, rows = (max(_count(figures, name) for figures in sources) for name in ("games", "rows"))
    steps = max(_count(figures, "steps") for figures in [*sources, *(part.figures for part in parts)])
    goal, minutes = (None, None) if daemon else _settings(base)
    counts = RunCounts(games=games, rows=rows, seconds=elapsed)
    speeds = {name: progress.get(f"{name}_per_second") for name in SPEEDS}
    reached = goals.reached(goal, counts, steps) if goal and not alive else ""
    longer = goals.further(goal, counts, steps) if goal and reached else {}
    rates = driver is not None and alive and driver.kind in _RATED
    return RunOverview(
        base=base,
        status=RunStatus(
            counts=counts,
            steps=steps,
            network=rated[0] if rated else "",
            speeds={name: speed for name, speed in speeds.items() if isinstance(speed, int | float)},
            rating=rated[1] if rated else None,
            goal=goal,
            parts=tuple(parts),
        ),
        state=state,
        driver=driver,
        running=running,
        since=since,
        silent=None if alive else silent,
        reached=reached,
        diverged=message,
        losses=totals.losses(progress),
        next_rating=_next_rating(goal, minutes, metrics.last(path, "rating"), elapsed) if rates else None,
        commands=_commands(base, "daemon" if daemon else "train" if supervised else "run", state, longer, playable),
        **more,
    )


def values(found: RunOverview) -> dict[str, Any]:
    """The overview as JSON data, for programs."""
    status, outlook = found.status, found.status.outlook()
    return metrics.plain(
        {
            "schema": SCHEMA,
            "run": str(found.base),
            "overview": {
                **{name: getattr(found, name) for name in ("state", "running", "silent", "reached", "diverged")},
                "mode": None if found.driver is None else found.driver.kind,
                "since": None if found.since is None else found.since.astimezone(UTC).isoformat(timespec="seconds"),
                "elapsed": status.counts.seconds,
                "steps": status.steps,
                "goal": None if outlook is None else asdict(outlook),
                "losses": dict(found.losses),
                "rating": None if status.rating is None else {**asdict(status.rating), "network": status.network},
                "next_rating": found.next_rating,
                "commands": found.commands,
            },
            "parts": [part.values() for part in status.parts],
            "networks": [asdict(network) for network in found.networks],
            **{name: getattr(found.played, name) for name in ("rows", "games", "chunks")},
            "corrupt": [str(path) for path in found.played.corrupt],
            "shuffle": None if found.shuffle is None else asdict(found.shuffle),
            "disk": {"used": found.disk.used, "free": found.disk.free, "folders": found.disk.folders},
            "metrics": found.metrics,
            "evaluation": found.evaluation,
            "changes": [{"elapsed": elapsed, **change.values()} for elapsed, change in found.changes],
            "problems": list(found.problems),
        }
    )


def check(base: Path) -> None:
    """TengenError if there is no run in the folder."""
    try:
        if base.is_dir():
            if (base / RUN_FILE).exists():
                return
            what = f"not a run, because it has no {RUN_FILE}" if any(base.iterdir()) else "empty, so there is no run"
            raise TengenError(f"{base}: is {what}; `{program()} run CONFIG --base {base}` starts one")
        what = "is a file, expected the folder of a run" if base.exists() else "there is no such folder"
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
    raise TengenError(f"{base}: {what}")


_STATES: dict[str, Callable[[Path], list[networks.NetworkEntry]]] = {
    "accepted": networks.accepted,
    "waiting for the gate": networks.candidates,
    "rejected": networks.rejected,
    "extra": networks.extra,
}


def _network(state: str, entry: networks.NetworkEntry, rated: dict[str, Rating]) -> NetworkInfo:
    verdict = networks.verdict(entry.path)
    rating = rated.get(entry.name)
    return NetworkInfo(
        name=entry.name,
        state="saved" if state == "accepted" and not verdict else state,
        samples=entry.samples,
        rows=entry.rows,
        verdict={key: value for key, value in verdict.items() if key != "schema"},
        **({} if rating is None else {"elo": rating.elo, "error": rating.error}),
    )


def newest_shuffle(base: Path) -> ShuffleInfo | None:
    found = shuffled.newest(base)
    if found is None:
        return None
    train, validation = (sum(file.rows for file in side) for side in (found.train, found.validation))
    return ShuffleInfo(found.name, train, validation, found.window)


def disk_use(base: Path) -> DiskUse:
    folders = {"": 0}
    for path in inside(base):
        with contextlib.suppress(OSError):
            if path.is_dir():  # which may be a link to another disk
                folders[path.name] = sum(_sizes(path))
            else:
                folders[""] += path.lstat().st_size
    with contextlib.suppress(OSError):
        return DiskUse(folders, shutil.disk_usage(base).free)
    return DiskUse(folders)


def _sizes(folder: Path) -> Iterator[int]:
    """The sizes of all files below; files that vanish meanwhile are left out."""
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(place, name)).st_size


def goal_options(limits: Mapping[str, float | int]) -> list[str]:
    """Options of the command line that set these limits of the goal."""
    values = {name: f"{limit:g}" if isinstance(limit, float) else limit for name, limit in limits.items()}
    return [word for name, value in values.items() for word in ("--set", f"goal.{name}={value}")]


def _trained(base: Path) -> dict[str, Any] | None:
    lines = (metrics.last(path) for path in base.glob(f"train/*/{metrics.NAME}"))
    return max(filter(None, lines), key=lambda line: str(line["time"]), default=None)


def _commands(
    base: Path, command: str, state: State, longer: Mapping[str, float | int], playable: bool
) -> dict[str, str]:
    found = {}
    if state not in ("running", "diverged"):  # after a divergence, the message has the command
        purpose = "train further" if longer else "begin" if state == "new" else "go on"
        found[purpose] = shlex.join([program(), command, as_config(base), *goal_options(longer)])
    if playable:
        found["play it"] = shlex.join([program(), "play", str(base)])
    return found


def _settings(base: Path) -> tuple[GoalSection | None, float | None]:
    """The goal, and the minutes between two ratings, as far as the configuration can be read."""
    with contextlib.suppress(ConfigError):
        return _settings_in(source.find(base).text)
    return None, None


@lru_cache(maxsize=16)  # reading YAML takes most of the time of an overview
def _settings_in(text: str) -> tuple[GoalSection | None, float | None]:
    sections = data if isinstance(data := reader.parse(text).data, dict) else {}
    goal, _ = schema.check(GoalSection, sections.get("goal"))
    minutes = rating.get("minutes") if isinstance(rating := sections.get("rating"), dict) else None
    return goal, minutes if isinstance(minutes, int | float) else None


def _next_rating(
    goal: GoalSection | None, minutes: float | None, rating: dict[str, Any] | None, elapsed: float
) -> float | None:
    """Seconds until the next rating is due; None if that is not known, or if only the last one is left."""
    if goal is None or minutes is None:
        return None
    budget = TimeBudget.of(goal, minutes)
    due = (rating["elapsed"] if rating else 0.0) + budget.every
    if budget.goal is not None and budget.goal - max(due, elapsed) <= budget.every / 2:
        return None
    return due - elapsed


def _count(figures: Mapping[str, Any], name: str) -> int:
    value = figures.get(name)
    return value if type(value) is int and value >= 0 else 0
