"""How a run stands, from its folders alone: for people who look at it from outside, whoever runs its parts and where.

    found = status.look(base)
    print(status.describe(found))

Changes nothing in the run, needs no JAX. Whatever cannot be read is among the problems, and the rest is told.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from tengen import files
from tengen.data.shuffle import folders as shuffled
from tengen.data.shuffle.plan import in_bytes
from tengen.errors import TengenError
from tengen.match.ratings import Rating
from tengen.monitor import overview, totals
from tengen.monitor.overview import Overview
from tengen.monitor.progress import RatedNetwork, clock
from tengen.monitor.totals import PlayedTotals
from tengen.run import chunk_counts, metrics, networks, part_status
from tengen.run.part_status import DRIVERS, PartStatus

SCHEMA = 1
_CONFIG = "config.yaml"
_LISTED = 5  # of things that are all alike, so many are named
_NEWEST = 20  # networks that are listed
_T = TypeVar("_T")


@dataclass(frozen=True)
class NetworkInfo:
    """One network, and what is known about it."""

    name: str
    state: str  # "waiting for the gate", "accepted", "rejected", "extra"; "saved" by the fused loop
    samples: int
    rows: int
    verdict: dict[str, Any] = field(default_factory=dict)
    elo: float | None = None
    error: float | None = None  # half of the 95 % interval


@dataclass(frozen=True)
class ShuffleInfo:
    """The newest shuffle."""

    name: str
    rows: int
    validation_rows: int
    window: tuple[int, int]  # first row of the run in it, and the one after the last


@dataclass(frozen=True)
class DiskUse:
    """What a run takes, and what is left."""

    folders: dict[str, int]  # bytes by name; "" has the files that lie in none
    free: int | None

    @property
    def used(self) -> int:
        return sum(self.folders.values())


@dataclass(frozen=True)
class RunStatus:
    """All of it."""

    base: Path
    overview: Overview
    parts: tuple[PartStatus, ...]
    networks: tuple[NetworkInfo, ...]  # in the order of training
    played: PlayedTotals
    shuffle: ShuffleInfo | None
    disk: DiskUse
    metrics: dict[str, Any] | None  # the last line
    evaluation: dict[str, Any] | None  # the last of a training of roles
    problems: tuple[str, ...]  # in words


def look(base: Path) -> RunStatus:
    """A run directory as it is now. TengenError if it is none."""
    check(base)
    problems: list[str] = []

    def asked(ask: Callable[[Path], _T], otherwise: _T) -> _T:
        try:
            return ask(base)
        except (TengenError, OSError) as error:
            problems.append(str(error))
            return otherwise

    ratings = asked(totals.ratings, None)
    rated = {rating.name: rating for rating in ratings.players} if ratings else {}
    networks = [
        network
        for state, ask in _STATES.items()
        for network in asked(lambda base, s=state, a=ask: [_network(s, e, rated) for e in a(base)], [])
    ]
    played = asked(lambda base: totals.TotalsCounter(base, chunk_counts.place(base)).look(), PlayedTotals())
    if not played.chunks:
        played = replace(played, **_told(base))
    networks.sort(key=lambda network: (network.samples, network.name))
    parts = tuple(asked(part_status.look, []))
    strongest = [
        (one.name, RatedNetwork(one.elo, one.error or 0.0, ratings.anchor))
        for one in networks
        if ratings and one.elo is not None
    ]
    counts = {"games": played.games, "rows": played.rows}
    usable = any(network.state in ("accepted", "saved") for network in networks)
    found = RunStatus(
        base=base,
        overview=overview.look(base, parts, counts, strongest[-1] if strongest else None, usable),
        parts=parts,
        networks=tuple(networks),
        played=played,
        shuffle=asked(_shuffle, None),
        disk=asked(_disk, DiskUse({}, None)),
        metrics=metrics.last(base / metrics.NAME),
        evaluation=metrics.last(base / metrics.NAME, "evaluation"),
        problems=(),
    )
    problems += played.unreadable
    return RunStatus(**{**vars(found), "problems": tuple(dict.fromkeys(problems))})


def check(base: Path) -> None:
    """TengenError if there is no run in the folder."""
    try:
        if base.is_dir():
            if (base / _CONFIG).exists():
                return
            what = "no run, because it has no config.yaml" if any(base.iterdir()) else "empty, so there is no run"
            raise TengenError(f"{base}: is {what}; `tengen run CONFIG --base {base}` starts one")
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
        elo=None if rating is None else rating.elo,
        error=None if rating is None else rating.error,
    )


def _told(base: Path) -> dict[str, int]:
    """Rows and games by what the run says: a training of roles keeps its samples in memory."""
    line = metrics.last(base / metrics.NAME, "progress") or {}
    return {name: line[name] for name in ("rows", "games") if isinstance(line.get(name), int)}


def _shuffle(base: Path) -> ShuffleInfo | None:
    found = shuffled.newest(base)
    if found is None:
        return None
    try:
        train, validation = (sum(int(file.rows) for file in side) for side in (found.train, found.validation))
        return ShuffleInfo(found.name, train, validation, (int(found.window[0]), int(found.window[1])))
    except (ValueError, TypeError, OverflowError) as error:
        raise TengenError(f"{found.folder / shuffled.INDEX}: not the index of a shuffle: {error}") from None


def _disk(base: Path) -> DiskUse:
    folders = {"": 0}
    for path in files.inside(base):
        with contextlib.suppress(OSError):
            if path.is_dir():  # which may be a link to another disk
                folders[path.name] = sum(_sizes(path))
            else:
                folders[""] += path.lstat().st_size
    with contextlib.suppress(OSError):
        return DiskUse(folders, shutil.disk_usage(base).free)
    return DiskUse(folders, None)


def _sizes(folder: Path) -> Iterator[int]:
    """Of all files below; those that vanish meanwhile are nothing."""
    stack = [str(folder)]
    while stack:
        with contextlib.suppress(OSError), os.scandir(stack.pop()) as found:
            for entry in found:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
                    else:
                        yield entry.stat(follow_symlinks=False).st_size


def values(found: RunStatus) -> dict[str, Any]:
    """For programs, in JSON values."""
    told = {
        "schema": SCHEMA,
        "run": str(found.base),
        "overview": overview.values(found.overview),
        "parts": [{**vars(seen), "figures": dict(seen.figures)} for seen in found.parts],
        "networks": [asdict(network) for network in found.networks],
        "rows": found.played.rows,
        "games": found.played.games,
        "chunks": found.played.chunks,
        "corrupt": [str(path) for path in found.played.corrupt],
        "shuffle": None if found.shuffle is None else asdict(found.shuffle),
        "disk": {"used": found.disk.used, "free": found.disk.free, "folders": found.disk.folders},
        "metrics": found.metrics,
        "evaluation": found.evaluation,
        "problems": list(found.problems),
    }
    return metrics.plain(told)


def describe(found: RunStatus, every: bool = False) -> str:
    """For people: every network, or the newest."""
    head = [_printable(line) for line in overview.describe(found.overview)]
    sections = [
        head,
        _parts(found),
        _networks(found, every),
        _data(found) + _evaluation(found),
        _disk_words(found.disk),
    ]
    corrupt = [str(path) for path in found.played.corrupt]
    if corrupt:
        count = f"{len(corrupt)} chunk{'s' * (len(corrupt) != 1)}"
        sections.append([f"{count} that cannot be used:", *_few(corrupt)])
    if found.problems:
        sections.append(["problems:", *(f"  {problem}" for problem in found.problems)])
    return "\n\n".join("\n".join(section) for section in sections if section)


def part_words(seen: PartStatus) -> str:
    """What one part does, or waits for."""
    if not seen.alive:
        return _printable(f"was killed (process {seen.process} on {seen.machine}), while: {seen.words}")
    what = f"waiting for {clock(seen.seconds)}: " if seen.waiting else ""
    return _printable(f"{what}{seen.words}")


def _printable(text: str) -> str:
    """Notices and verdicts may hold anything; a terminal shall not obey it."""
    return "".join(c if c.isprintable() else " " for c in text)


def _parts(found: RunStatus) -> list[str]:
    """Those besides the driver, of which the overview tells."""
    parts = [seen for seen in found.parts if seen.kind not in DRIVERS]
    width = max((len(seen.part) for seen in parts), default=0) + 1
    return [f"{seen.part + ':':<{width}} {part_words(seen)}" for seen in parts]


def _networks(found: RunStatus, every: bool) -> list[str]:
    if not found.networks:
        return ["no networks yet"]
    shown = found.networks if every else found.networks[-_NEWEST:]
    width = max(len(network.name) for network in shown)
    lines = [f"{'network':<{width}} {'Elo':>7} {'+-':>6}  verdict"]
    for network in shown:
        elo = "" if network.elo is None else f"{network.elo:.0f}"
        error = "" if not network.error else f"{network.error:.0f}"
        lines.append(f"{network.name:<{width}} {elo:>7} {error:>6}  {_verdict(network)}".rstrip())
    states = [network.state for network in found.networks]
    if len(states) > len(shown):
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        lines.append(f"and {len(states) - len(shown)} older ones, which --all shows; together: {counts}")
    return lines


def _verdict(network: NetworkInfo) -> str:
    """`accepted: 56.0 % of 200 games against x; why`, as far as it says so: it may have been written by anybody."""
    share, games, opponent, why = (network.verdict.get(key) for key in ("share", "games", "opponent", "why"))
    result = [
        f"{100 * share:.1f} %" if isinstance(share, int | float) else "",
        f"{'of ' if share is not None else ''}{games:,} games" if isinstance(games, int) and games else "",
        f"against {opponent}" if isinstance(opponent, str) and opponent else "",
    ]
    told = " ".join(filter(None, result)), why if isinstance(why, str) else ""
    words = _printable("; ".join(filter(None, told)))
    return f"{network.state}: {words}" if words else network.state


def _data(found: RunStatus) -> list[str]:
    played = found.played
    chunks = f", in {played.chunks:,} chunks" if played.chunks or not played.rows else ""
    lines = [f"played:   {played.rows:,} rows, {played.games:,} games{chunks}"]
    if (made := found.shuffle) is not None:
        first, last = made.window
        window = f"drawn from rows {first:,} to {last:,}"
        lines.append(
            f"shuffled: {made.rows:,} rows and {made.validation_rows:,} for validation, {window} ({made.name})"
        )
    if found.overview.steps:
        lines.append(f"learned:  {found.overview.steps:,} steps")
    return lines


def _evaluation(found: RunStatus) -> list[str]:
    """Mean results of the roles of a training, as its last evaluation found them."""
    line = found.evaluation or {}
    pairs = [
        f"{_printable(name)} {line[name]:.2f} ({length:.1f} moves)"
        for name in line
        if isinstance(line[name], float) and isinstance(length := line.get(f"{name}_length"), int | float)
    ]
    at = f"step {line['steps']:,}: " if isinstance(line.get("steps"), int) else ""
    return [f"results:  {at}{', '.join(pairs)}"] if pairs else []


def _disk_words(disk: DiskUse) -> list[str]:
    largest = sorted(((size, name or "other files") for name, size in disk.folders.items() if size), reverse=True)
    free = "" if disk.free is None else f", {in_bytes(disk.free)} free"
    folders = ", ".join(f"{name} {in_bytes(size)}" for size, name in largest)
    return [f"disk:     {in_bytes(disk.used)}{free}" + (f" ({folders})" if folders else "")]


def _few(lines: list[str]) -> list[str]:
    shown = [f"  {line}" for line in lines[:_LISTED]]
    return shown if len(lines) <= _LISTED else [*shown, f"  and {len(lines) - _LISTED:,} more"]
