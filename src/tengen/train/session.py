"""A training session: resume from the newest good checkpoint, learn a little at a time, save, and close.

session = TrainingSession(trainer, folder, settings.checkpoints, say)
session.extras                                  # what the checkpoint was saved with; None for a new training
with session.watching():
    session.learn(session.pace.units)           # about a second of learning
session.checkpoint({"epoch": 3})
session.close()
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from tengen import schema
from tengen.config.settings.train import CheckpointSettings
from tengen.data.loader.loader import Loader
from tengen.data.loader.sources import Split
from tengen.errors import Diverged, OptionError, TengenError
from tengen.run import safe_exit
from tengen.selfplay.pacing import Pace
from tengen.train.base import BaseTrainer, Metrics
from tengen.train.checkpoints import Checkpoints

HostRows = Mapping[str, np.ndarray]
"""Rows on the host, [N, ...] each, as `data.format.rows` has them."""


T = TypeVar("T", bound=BaseTrainer[Any])
E = TypeVar("E")


class TrainingSession(Generic[T]):
    """One process's part in a training whose checkpoints are in `folder`."""

    def __init__(
        self,
        trainer: T,
        folder: Path,
        settings: CheckpointSettings,
        say: Callable[[str], object],
        *,
        seconds: float = 1.0,
        amount: float = 10,
        new: bool = False,
    ) -> None:
        """`say` is told about damaged checkpoints. A call to `learn` should take about `seconds`; the first one has
        `amount` steps. A `new` session goes on with the trainer as it is, which is not saved yet.

        TengenError if there are only damaged checkpoints: a training does not silently start from scratch.
        """
        self.trainer, self.folder = trainer, folder
        self.figures: Metrics = {}  # of the last call
        self.seconds = 0.0  # spent learning by this process, without the first call, which compiles
        self.steps_per_second: float | None = None  # smoothed
        self.pace = Pace(seconds, amount=amount)
        self._say, self._interval = say, settings.interval
        self.checkpoints = Checkpoints(folder, settings)
        try:
            self.extras = None if new else self._resume()
        except BaseException:
            self.checkpoints.close()
            raise
        self.saved = -1 if new else trainer.step
        """The step of the newest checkpoint. With -1, even a training that has not taken a step is saved."""

    def _resume(self) -> dict[str, Any] | None:
        found = self.trainer.resume(self.checkpoints)
        if found is None:
            damaged = sorted(path.name for path in self.folder.glob("*.corrupt"))
            if damaged:
                raise TengenError(
                    f"{self.folder}: no good checkpoint is left ({', '.join(damaged)}); "
                    "repair one, or remove them to learn anew from the rows that are there"
                )
            return None
        extras, set_aside = found
        for text in set_aside:
            self._say(f"a damaged checkpoint: {text}")
        return extras

    @property
    def started(self) -> bool:
        """Whether this process has learned anything; the next call compiles if not."""
        return self.pace.calls > 0

    def learn(self, steps: int, work: Callable[[int], Metrics] | None = None, *, may_exit: bool = True) -> int:
        """Take up to `steps` steps, by `work` if it is not `trainer.train`. Returns the number of steps taken.

        With `may_exit`, a process that was asked to stop ends in the middle of compiling (see `safe_exit`).
        """
        step, began = self.trainer.step, time.monotonic()
        with safe_exit.possible(may_exit and not self.started):
            figures = (work or self.trainer.train)(steps)
        taken, seconds = self.trainer.step - step, time.monotonic() - began
        if taken:
            self.figures = figures
            if self.started:
                self.seconds += seconds
                now, before = taken / max(seconds, 1e-9), self.steps_per_second
                self.steps_per_second = now if before is None else 0.7 * before + 0.3 * now
            self.pace = self.pace.after(taken, seconds)
        return taken

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Around learning: if it diverges, rename checkpoints since which no step was finite, and raise the error.

        From such a checkpoint no step would be finite, whatever the learning rate.
        """
        try:
            yield
        except Diverged as error:
            self.checkpoints.wait()
            last_good = self.trainer.step - getattr(self.trainer, "failed", 0)
            for step in self.checkpoints.steps():
                if step >= last_good:
                    self._say(self.checkpoints.set_aside(step, str(error)))
            raise

    @property
    def due(self) -> bool:
        return self.trainer.step - self.saved >= self._interval

    def checkpoint(self, extras: dict[str, Any]) -> bool:
        """Save in the background, with `extras` (JSON data), if anything was learned; returns whether it was saved."""
        if self.trainer.step <= self.saved:
            return False
        with self._saving():
            self.checkpoints.save(self.trainer.checkpoint(extras))
        self.saved = self.trainer.step
        return True

    def wait(self) -> None:
        """Wait until the last checkpoint is on the disk. TengenError if it cannot be written."""
        with self._saving():
            self.checkpoints.wait()

    def close(self) -> None:
        """Finish writing. Nothing new is saved."""
        self.checkpoints.close()

    @contextlib.contextmanager
    def _saving(self) -> Iterator[None]:
        """A checkpoint that could not be written, this one or the one before, does not count as saved."""
        try:
            yield
        except TengenError:
            self.saved = max(self.checkpoints.steps(), default=-1)
            raise


def read_extras(cls: type[E], found: object, folder: Path, *, strict: bool = True) -> E:
    """The dataclass that a checkpoint in `folder` was saved with. TengenError if another kind of run has saved it."""
    try:
        return schema.from_data(cls, found, strict=strict)
    except OptionError as error:
        raise TengenError(f"{folder}: this checkpoint belongs to another kind of run ({error})") from None


def next_rows(loader: Loader, split: Split = "train", timeout: float | None = None) -> HostRows | None:
    """The loader's next batch by name; None at the end of its source."""
    found = loader.get_next_batch(split, timeout)
    return None if found is None else dict(zip(loader.names, found, strict=True))


class BatchCutter:
    """Cuts rows from a loader into blocks of whole batches, for `trainer.learn` and `trainer.validate`."""

    def __init__(self, batch: int, read: Callable[[], HostRows | None]) -> None:
        """`read` gives the next rows, an empty mapping if there are none for now, and None at the end."""
        self._batch, self._read = batch, read
        self._left: HostRows = {}

    def blocks(self, batches: int, interrupted: Callable[[], bool] = lambda: False) -> Iterator[HostRows]:
        """Blocks of `batches` batches in all; fewer at the end of the data, or if interrupted."""
        while batches and not interrupted():
            taken = min(len(self._left["ply"]) // self._batch if self._left else 0, batches)
            if not taken:
                found = self._read()
                if found is None:
                    return
                self._left = found
                continue
            cut = taken * self._batch
            yield {name: values[:cut] for name, values in self._left.items()}
            self._left = {name: values[cut:] for name, values in self._left.items()}
            batches -= taken
