"""The metrics of a run, for programs: `RUN/metrics.jsonl`, one JSON object per line, and optional TensorBoard files.

    {"time": "2026-01-31T12:00:00.125+00:00", "elapsed": 130.2, "kind": "progress", "games": 1204, "loss": 2.31}

The file only grows, and every line is written in one piece. `elapsed` is the time of the run in seconds, without the
pauses between its restarts.
"""

import contextlib
import errno
import importlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tengen import files, schema
from tengen.errors import OptionError, TengenError
from tengen.words import counted

NAME = "metrics.jsonl"
FIRST = "first"  # the kind of the lines about the first move and the first step of a process: {"what": "move"}
TENSORBOARD = Path("logs", "tensorboard")
_OURS = b'{"time": "'  # how every line begins
_LONGEST = 1e10  # seconds, 300 years
_TAIL = 1 << 18  # bytes that surely hold a whole line
_RESERVED = ("time", "elapsed", "kind")
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)  # `json.loads` would make one for every line


@dataclass(frozen=True)
class FoundMetrics:
    lines: tuple[dict[str, Any], ...]
    invalid: tuple[int, ...] = ()  # numbers of the other lines, from 1

    def complaint(self, path: Path) -> str:
        """A message about the invalid lines; empty if there are none."""
        few = ", ".join(map(str, self.invalid[:10])) + (", ..." if len(self.invalid) > 10 else "")
        return f"{path}: skipped {counted(len(self.invalid), 'invalid line')}: line {few}" if self.invalid else ""


def read(path: Path) -> FoundMetrics:
    """All lines of a file, none if it does not exist. A last line that is still being written does not count."""
    lines, invalid = [], []
    try:
        with files.reading(path), files.open_buffered(path) as file:
            for number, raw in enumerate(file, 1):
                if (line := parse_line(raw)) is not None:
                    lines.append(line)
                elif raw.endswith(b"\n"):
                    invalid.append(number)
    except FileNotFoundError:
        return FoundMetrics(())
    return FoundMetrics(tuple(lines), tuple(invalid))


def last(path: Path, kind: str | None = None) -> dict[str, Any] | None:
    """The newest line (of a kind), read from the end of the file; None if there is none there."""
    try:
        lines = files.read_end(path, _TAIL).split(b"\n")
    except OSError:
        return None
    found = (line for raw in reversed(lines) if raw and (line := parse_line(raw)) is not None)
    return next((line for line in found if kind is None or line.get("kind") == kind), None)


def time_of(line: Mapping[str, Any] | None) -> datetime | None:
    """When a line was written; None if it does not say so."""
    try:
        found = datetime.fromisoformat(str((line or {}).get("time")))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def last_mode(path: Path) -> str:
    """The mode in which the run was last started: fused, sync, async or cluster."""
    sessions = [line for line in read(path).lines if line["kind"] == "session"]
    if not sessions:
        return "fused"
    mode = sessions[-1].get("mode", "async" if "parts" in sessions[-1] else "fused")
    return mode if mode in ("fused", "sync", "async", "cluster") else "fused"


class Metrics(contextlib.AbstractContextManager["Metrics"]):
    """Writes the metrics of a run. One process at a time opens them.

    `notes` are messages for users about what was repaired or is invalid.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic, since: float | None = None) -> None:
        """`since` is when the process began, by the clock, if that was earlier."""
        self.path = folder / NAME
        self.notes: tuple[str, ...] = ()
        with files.writing(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            # Unbuffered, so that a line is written in one piece, and appending, so that nothing is overwritten.
            self._file = files.open_to_append(self.path)
        try:
            repaired = self._repair()
            found = read(self.path)
        except BaseException:
            self._file.close()
            raise
        self.notes = tuple(filter(None, (repaired, found.complaint(self.path))))
        self._before: float = found.lines[-1]["elapsed"] if found.lines else 0.0
        self._clock = clock
        self._opened = clock() if since is None else since

    @property
    def elapsed(self) -> float:
        """Seconds of the run: up to the last line of earlier processes, and since this one opened the file."""
        return self._before + self._clock() - self._opened

    def advance(self, seconds: float) -> None:
        """Count at least this long for earlier processes; if they were killed, their last line shows less."""
        self._before = max(self._before, seconds)

    def reach(self, seconds: float) -> None:
        """Count at least this much time as used, also what was reserved for the end and not needed."""
        self._before += max(seconds - self.elapsed, 0.0)

    def write(self, kind: str, values: Mapping[str, Any]) -> None:
        """Add a line. nan and inf become null; NumPy's numbers and arrays are fine.

        Raises TengenError if it cannot be written, and leaves the file unchanged then.
        """
        if taken := [key for key in _RESERVED if key in values]:
            raise ValueError(f"metrics {kind}: {taken[0]} is written automatically, and cannot be among the values")
        head = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "elapsed": round(self.elapsed, 3),
            "kind": kind,
        }
        line = json.dumps({**head, **plain(values)}, allow_nan=False).encode() + b"\n"
        size = os.fstat(self._file.fileno()).st_size
        with files.writing(self.path):
            try:
                if self._file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, "no space left on the disk")
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(size)
                raise

    def close(self) -> None:
        self._file.close()

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _repair(self) -> str:
        """Make the file end with a complete line; returns a message if one was removed. Foreign lines are kept."""
        with files.writing(self.path):
            content = files.read_bytes(self.path)
            rest = content[content.rfind(b"\n") + 1 :]
            if not rest:
                return ""
            half_of_ours = rest.startswith(_OURS) or _OURS.startswith(rest) or not rest.strip(b"\0")
            if parse_line(rest) is not None or not half_of_ours:
                self._file.write(b"\n")
                return ""
            self._file.truncate(len(content) - len(rest))
            return f"{self.path}: removed the last line, of which only {len(rest)} bytes had been written"


class TensorBoard(contextlib.AbstractContextManager["TensorBoard"]):
    """The same figures for TensorBoard, in `RUN/logs/tensorboard`: scalars `kind/key` by `values["steps"]`.

    Without steps the last ones apply. Values that are not finite numbers are left out.
    """

    def __init__(self, folder: Path) -> None:
        try:
            library = importlib.import_module("tensorboardX")
        except ImportError:
            raise OptionError(
                "TensorBoard files need the tensorboardX library: pip install 'tengen-zero[tensorboard]'"
            ) from None
        self.path = folder / TENSORBOARD
        try:
            self._writer = library.SummaryWriter(str(self.path), flush_secs=10)
        except OSError as error:
            raise TengenError(f"{self.path}: TensorBoard files cannot be written: {error.strerror}") from None
        self._steps = 0

    def write(self, kind: str, values: Mapping[str, Any]) -> None:
        """Add the numbers among the values; those in mappings are named `kind/key/inner`."""
        found = schema.leaves(plain(values), f"{kind}/", "/")
        scalars = {name: value for name, value in found if is_number(value)}
        self._steps = int(scalars.get(f"{kind}/steps", self._steps))
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, self._steps)

    def close(self) -> None:
        self._writer.close()

    def __exit__(self, *exception: object) -> None:
        self.close()


def plain(value: Any) -> Any:
    """The value in JSON's types, with None for nan and inf."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # arrays, and NumPy's own numbers
        return plain(value.tolist())
    return value


def is_number(value: object) -> bool:
    """Whether a plain value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def finite(value: Any) -> float | None:
    """A number as it is; None for nan, inf and everything else."""
    return value if is_number(value) and (isinstance(value, int) or math.isfinite(value)) else None


def parse_line(raw: bytes) -> dict[str, Any] | None:
    """The values of a line, None if it is invalid."""
    try:
        line = _DECODER.decode(raw.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or not isinstance(line.get("kind"), str):
        return None
    elapsed: Any = line.get("elapsed")
    return line if is_number(elapsed) and 0 <= elapsed < _LONGEST else None
