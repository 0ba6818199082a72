"""The rows that a trainer gets from one shuffle, and which of its files they came from."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tengen.data.loader.loader import Loader
from tengen.data.shuffle.folders import Shuffle, ShuffledFile
from tengen.train.session import BatchCutter, HostRows, next_rows


class ShuffledRows:
    """The rows of some files of one shuffle, read in order. Meanwhile the shuffle is not removed."""

    def __init__(
        self, shuffle: Shuffle, files: Sequence[ShuffledFile], batch: int, make_loader: Callable[[], Loader]
    ) -> None:
        self.shuffle, self.waited = shuffle, 0.0  # seconds for batches
        self._files = files
        self._rows = 0  # handed out
        self._begun = 0  # files of which rows were handed out, or that are damaged
        self._begun_rows = 0  # in those of them that are good
        self._damaged: dict[Path, str] = {}  # why
        self._cutter = BatchCutter(batch, self._read)
        with contextlib.ExitStack() as closing:
            closing.enter_context(shuffle.open())
            self._loader = closing.enter_context(make_loader())
            self._loader.start()
            self._closing = closing.pop_all()

    def blocks(self, batches: int) -> Iterator[HostRows]:
        """The next rows, for up to `batches` batches."""
        for block in self._cutter.blocks(batches):
            yield block
            self._rows += len(block["ply"])

    def _read(self) -> HostRows | None:
        began = time.monotonic()
        found = next_rows(self._loader)
        self.waited += time.monotonic() - began
        if found is None:
            self._rows = sum(file.rows for file in self._files) + 1  # so that all have begun, even empty ones
        return found

    def begun(self) -> list[str]:
        """Files of which rows were handed out for the first time since the last call, by content.

        Damaged files are among them: there is no need to try them again.
        """
        self._damaged |= {bad.path: bad.reason for bad in self._loader.get_stats().last_rejected}
        new = []
        for file in self._files[self._begun :]:
            if file.path not in self._damaged:
                if self._begun_rows >= self._rows:
                    break
                self._begun_rows += file.rows
            new.append(file.sha256)
            self._begun += 1
        return new

    def damaged(self) -> list[str]:
        """What is wrong with damaged files."""
        return list(self._damaged.values())

    def close(self) -> None:
        self._closing.close()
