"""The metrics of a run, thinned out as they are read: a million lines take a second, and new lines no time at all."""

import contextlib
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tengen import files
from tengen.run import metrics

_PROGRESS = b'"kind": "progress"'
_HEAD = 160  # bytes of a line that hold its kind
_RARE = 50_000  # lines of other kinds that are kept
_BUFFER = 1 << 16  # bytes that are read at once; larger buffers are memory maps, which are slower on some machines
_NEWLINE = ord("\n")


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
