"""Training on games of others: the train part of a run whose rows all come from `tengen data from-games` or KataGo.

No other part works on this run, so the trainer also shuffles, as often as `train.samples_per_row` allows, and exports.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tengen.config.sections import Config
from tengen.data.shuffle.folders import newest
from tengen.data.store.store import Store
from tengen.errors import TengenError
from tengen.loop.parts.export import ExportPart
from tengen.loop.parts.running import Say
from tengen.loop.parts.shuffle import ShufflePart
from tengen.loop.parts.train import TrainPart
from tengen.run import part_status
from tengen.run.part import Part, Progress, Stop


def is_supervised(base: Path) -> bool:
    """Whether all rows of the run come from games of others, and no other part works on it."""
    others = (part for part in part_status.look(base) if part.alive and part.kind in ("shuffle", "export"))
    return Store(base / "selfplay").is_imported and not any(others)


class SupervisedPart(Part):
    """A trainer that makes its own shuffles and exports its networks."""

    kind = "train"

    def __init__(
        self, config: Config, base: Path, stop: Stop, say: Say, train: Callable[..., TrainPart], *, ends: bool
    ) -> None:
        """`train` makes the trainer; `ends`: end when no more samples are allowed."""
        self._train = train(end_when_limited=False)
        self.name, self._base, self._stop, self._say, self._ends = self._train.name, base, stop, say, ends
        self._batch, alone = config.train.batch, _alone(config)
        self._shuffle = ShufflePart(alone, self._train.trainer.config.game, base, stop, say, single=True)
        self._export = ExportPart(alone, base, stop, say, name=self.name)

    def change(self, config: Config) -> None:
        self._batch, alone = config.train.batch, _alone(config)
        self._train.change(config)
        self._shuffle.change(alone)
        self._export.change(alone)

    def run_once(self) -> Progress:
        self._train.show = self._shuffle.show = self.show
        progress = self._train.run_once()
        if progress.worked:
            exported = self._export.run_once()
            return exported if exported.worked else progress
        trainer, last = self._train.trainer, newest(self._base)
        again = last is not None and trainer.affordable > 0 and sum(file.rows for file in last.train) >= self._batch
        made = self._shuffle.run_once(again=again)
        if made.worked or last is None:
            if self._ends and not made.worked and (reason := self._shuffle.unusable()):
                raise TengenError(f"{self._base}: there are no rows to learn from: {reason}")
            return replace(made, ended=False)
        if not self._ends or progress.ended:
            return progress
        words = f"learned {trainer.samples:,} samples of {trainer.bucket.rows:,} rows; more would take {progress.words}"
        return Progress(words, ended=True)

    def flush(self) -> None:
        """Write a checkpoint, and export the network as it is."""
        if self._train.trainer.step:
            self._train.export_now()
        while not self._stop() and (made := self._export.run_once()).worked:
            self._say(made.words)
        self._train.flush()

    def close(self) -> None:
        self._train.close()


def _alone(config: Config) -> Config:
    """The first rows may be all that ever come, and there is no gate."""
    return replace(config, data=replace(config.data, first_rows=1), gate=replace(config.gate, kind="none"))
