"""The changes of a run's settings, with their times: `RUN/changes.jsonl`, one JSON object a line.

    {"time": "2026-01-31 12:00:00.125 UTC", "key": "train.lr_scale", "from": "1.0", "to": "0.3", "by": "set"}

`RUN/config.yaml` says which settings apply. It is replaced by rename, and its head names the changes that it was last
written for, so a change and its time appear together or not at all. The log comes after it; a change that a killed
process did not add is still in that head, where `read` finds it, and the next writer adds it.
"""

import bisect
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from tengen import files
from tengen.config.source import RUN_FILE
from tengen.run import metrics

NAME = "changes.jsonl"
_WORDS = {"start": "changed", "set": "set"}  # at the head of config.yaml
_COMMENT = re.compile(r"(changed|set) (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? UTC): ([^:]+): (.*?) -> (.*)")


@dataclass(frozen=True)
class SettingChange:
    time: str  # UTC
    key: str
    old: str  # as YAML
    new: str
    by: Literal["start", "set"] = "start"  # the start of a run with other settings, or `tengen set`

    def __str__(self) -> str:
        return f"{self.key}: {self.old} -> {self.new}"

    @property
    def comment(self) -> str:
        """The line in the head of config.yaml."""
        return f"{_WORDS[self.by]} {self.time}: {self}"

    def values(self) -> dict[str, str]:
        return {"time": self.time, "key": self.key, "from": self.old, "to": self.new, "by": self.by}

    @property
    def moment(self) -> datetime:
        return datetime.fromisoformat(self.time.removesuffix(" UTC")).replace(tzinfo=UTC)


def now() -> str:
    """The current time, in the format of `SettingChange.time`."""
    return f"{datetime.now(UTC).replace(tzinfo=None).isoformat(' ', 'milliseconds')} UTC"


def of_comment(line: str) -> SettingChange | None:
    """The change that a comment of config.yaml describes; None for other comments."""
    found = _COMMENT.fullmatch(line)
    if found is None:
        return None
    word, time, key, old, new = found.groups()
    return SettingChange(time, key, old, new, "set" if word == "set" else "start")


def read(base: Path) -> list[SettingChange]:
    """All changes, in the order in which they were made. Invalid lines are skipped."""
    logged = _logged(base)
    return logged + _missing(logged, head(base / RUN_FILE))


def over_time(base: Path) -> list[tuple[float, SettingChange]]:
    """All changes, each with the time of the run, in seconds, at which it was made, according to its metrics."""
    made = read(base)
    if not made:
        return []
    times = sorted(
        (when, line["elapsed"]) for line in metrics.read(base / metrics.NAME).lines if (when := metrics.time_of(line))
    )
    return [(elapsed_at(change.moment, times), change) for change in made]


def elapsed_at(moment: datetime, times: Sequence[tuple[datetime, float]]) -> float:
    """The time of a run, in seconds, at a moment. `times` has both for the lines of its metrics, in order.

    A run's time does not go on while it is stopped, so a moment between two lines is never after the second.
    """
    if not times:
        return 0.0
    index = bisect.bisect_left(times, moment, key=lambda line: line[0])
    if index == 0:
        return times[0][1]
    when, elapsed = times[index - 1]
    return min(elapsed + (moment - when).total_seconds(), times[index][1]) if index < len(times) else elapsed


def head(path: Path) -> list[str]:
    """The comments above a configuration, without #; none if it cannot be read."""
    try:
        text = files.read_bytes(path).decode(errors="replace")
    except OSError:
        return []
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return lines


def append(base: Path, comments: Iterable[str]) -> None:
    """Add the changes in a configuration's comments to the log, unless it has them already."""
    new = _missing(_logged(base), comments)
    if not new:
        return
    text = "".join(json.dumps(change.values()) + "\n" for change in new)
    path = base / NAME
    with files.writing(path), files.open_to_append(path) as file:
        cut = path.stat().st_size > 0 and files.read_end(path, 1) != b"\n"  # by a process that was killed
        file.write(("\n" * cut + text).encode())


def _missing(logged: Sequence[SettingChange], comments: Iterable[str]) -> list[SettingChange]:
    named = [change for line in comments if (change := of_comment(line)) is not None]
    return [change for change in named if change not in logged]


def _logged(base: Path) -> list[SettingChange]:
    try:
        lines = files.read_bytes(base / NAME).splitlines()
    except OSError:
        return []
    return [change for line in lines if (change := _line(line)) is not None]


def _line(raw: bytes) -> SettingChange | None:
    try:
        data = json.loads(raw)
        time, key, old, new = (str(data[name]) for name in ("time", "key", "from", "to"))
        change = SettingChange(time, key, old, new, data["by"])
        return change if change.by in _WORDS and change.moment else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
