"""Learning as a part: trains on the newest shuffle, and leaves its network for the export every few epochs.

The checkpoint knows which files were learned from (by their content), how far the epoch has come, and how many more
samples the rows allow.
"""

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tengen.config.sections import Config
from tengen.config.settings.data import LoaderSettings
from tengen.config.source import RUN_FILE
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.loader import Loader
from tengen.data.loader.sources import FileList
from tengen.data.shuffle.folders import ShuffledFile, ShuffleGone, newest
from tengen.errors import TengenError
from tengen.loop.parts import export
from tengen.loop.parts.running import Once, Say
from tengen.loop.parts.shuffle import ShuffledRows
from tengen.run import config_file, first_network, goals, networks, safe_exit
from tengen.run.metrics import Metrics
from tengen.run.part import Part, Progress, Stop, waiting
from tengen.run.status import losses
from tengen.train.alpha_zero import AlphaZeroConfig, AlphaZeroTrainer
from tengen.train.session import BatchCutter, TrainingSession, next_rows, read_extras
from tengen.words import counted

Role = Literal["main", "extra", "trainonly"]
_READERS = 4  # threads
_REMEMBERED = 20_000  # files that were learned from


@dataclass(frozen=True)
class EpochState:
    """How far the training has come, besides the trainer's own state; part of every checkpoint."""

    epoch: int = 0  # finished
    steps: int = 0  # of the current one
    used: tuple[str, ...] = ()  # sha256 of the files that were learned from, oldest first
    exported: int = 0  # samples of the network that was exported last

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "used": list(self.used[-_REMEMBERED:])}

    @staticmethod
    def of(extras: Mapping[str, Any], folder: Path) -> "EpochState":
        """From a checkpoint; one of a fused run has none."""
        return read_extras(EpochState, extras.get("ring", {}), folder, strict=False)


@dataclass
class EpochSums:
    """What this process has measured in the current epoch, which another process may have begun."""

    figures: dict[str, float] = field(default_factory=dict)  # sums over the steps
    steps: int = 0
    waited: float = 0.0  # seconds for batches
    worked: float = 0.0  # seconds of learning, waiting included

    def add(self, figures: Mapping[str, float], steps: int) -> None:
        self.steps += steps
        for name, figure in figures.items():
            self.figures[name] = self.figures.get(name, 0.0) + steps * figure

    def means(self) -> dict[str, float]:
        return {name: total / self.steps for name, total in self.figures.items()}


class TrainPart(Part):
    """One trainer. With role `main` its networks are exported for the gate, with `extra` elsewhere, else not at all."""

    kind = "train"

    def __init__(
        self,
        config: Config,
        base: Path,
        stop: Stop,
        say: Say,
        *,
        name: str = "main",
        role: Role = "main",
        max_epochs: int | None = None,
        end_when_limited: bool = False,
        end_at_goal: bool = False,
        elapsed: Callable[[], float] | None = None,
    ) -> None:
        """`elapsed` gives the time of the run, for schedules that end with it; by default that of the trainer.

        With `end_at_goal`, the part ends when `goal.steps` are learned; otherwise it waits for its driver to end it.
        """
        self.name, self.role = name, role
        self._config, self._base, self._stop, self._say = config, base, stop, say
        self._max_epochs, self._end_when_limited, self._end_at_goal = max_epochs, end_when_limited, end_at_goal
        self.trainer = AlphaZeroTrainer(AlphaZeroConfig.of(first_network.local(config, base, name)))
        self._game = self.trainer.config.game
        self._form, self._identity = RowFormat.of(self._game, config.net.heads), GameIdentity.of(self._game)
        self.folder = base / "train" / name
        with contextlib.ExitStack() as closing:
            self._metrics = closing.enter_context(Metrics(self.folder))
            export.clean(self.folder)
            self.session = TrainingSession(self.trainer, self.folder, config.train.checkpoints, say)
            closing.callback(self.session.close)
            self._state = EpochState.of(self.session.extras or {}, self.folder)
            self._closing = closing.pop_all()
        if self.session.extras is not None:
            say(f"going on from step {self.trainer.step:,}")
        self._elapsed = elapsed or (lambda: self._metrics.elapsed)
        self._first_epoch = self._state.epoch
        self._files: ShuffledRows | None = None
        self._sums = EpochSums()
        self._complain = Once(lambda reason: say(f"skipped: {reason}"))  # about a shuffle, or a file of one

    @property
    def figures(self) -> dict[str, float]:
        return self.session.figures

    @property
    def epoch_steps(self) -> int:
        return max(1, self._config.ring.samples_per_epoch // self._config.train.batch)

    def change(self, config: Config) -> None:
        """Learn with other settings from now on; they also apply when a checkpoint of this trainer is exported."""
        self._config = config
        if self.trainer.change(config.train):
            self._say("the learner is compiled again for these settings")
        if (self.folder / RUN_FILE).exists():
            config_file.write(config, self.folder, ())

    def run_once(self) -> Progress:
        with self.session.watching():
            if self._max_epochs is not None and self._state.epoch - self._first_epoch >= self._max_epochs:
                return self._progress(f"{counted(self._max_epochs, 'epoch')} done", ended=True)
            if self._state.steps >= self.epoch_steps:
                return self._end_epoch()
            if not self._steps_to_goal:
                return self._at_goal()
            look = self._files is None or self._state.steps == 0 or not self.trainer.affordable
            if look and (missing := self._open_newest()):
                return missing
            if not self.trainer.affordable:
                return self._limited()
            assert self._files is not None
            return self._learn(self._files)

    @property
    def _steps_to_goal(self) -> float:
        goal = self._config.goal.steps
        return math.inf if goal is None else max(goal - self.trainer.step, 0)

    def _at_goal(self) -> Progress:
        self.export_now()
        words = f"the goal of {self._config.goal.steps:,} steps is reached"
        return self._progress(words, ended=True) if self._end_at_goal else waiting(words, **self._numbers())

    def export_now(self) -> bool:
        """Leave the current network for the export, if it was not left already; returns whether it was left now."""
        if self.role == "trainonly" or self._state.exported == self.trainer.samples:
            return False
        self._leave({"epoch": self._state.epoch, **self._counts(), "losses": losses(self.figures)})
        self._checkpoint()
        return True

    def flush(self) -> None:
        """Write a checkpoint of everything that was learned, and a line of metrics."""
        self._checkpoint()
        self.session.wait()
        if self._sums.steps:
            self._metrics.write("stopped", {**self._counts(), "losses": losses(self._sums.means())})

    def close(self) -> None:
        self._release()
        self._closing.close()

    def _learn(self, files: ShuffledRows) -> Progress:
        session, compiles = self.session, not self.session.started
        steps = min(session.pace.units, self.epoch_steps - self._state.steps, self.trainer.affordable)
        steps = int(min(steps, self._steps_to_goal))
        if compiles:
            self.show(self._progress("compiling the learner"))
        counts = goals.RunCounts(rows=self.trainer.bucket.rows, seconds=self._elapsed())
        self.trainer.progress = goals.progress(self._config.goal, counts, self.trainer.step)
        self.trainer.stage_rate = self._config.stage(self.trainer.progress).rate
        began, waited = time.monotonic(), files.waited
        taken = session.learn(steps, lambda steps: self.trainer.learn(files.blocks(steps)))
        seconds = time.monotonic() - began
        self._state = replace(self._state, steps=self._state.steps + taken, used=(*self._state.used, *files.begun()))
        for reason in files.damaged():
            self._complain(reason)
        if not taken:  # the rest of the files is less than a batch, or damaged
            self._release()
            return Progress(f"all files of {files.shuffle.name} have been learned from")
        if not compiles:
            self._sums.waited += files.waited - waited
            self._sums.worked += seconds
        self._sums.add(self.figures, taken)
        if session.due and self._state.steps < self.epoch_steps:  # the end of an epoch has a checkpoint anyway
            self._checkpoint()
        return self._progress(f"learning, {taken / max(seconds, 1e-9) * self._config.train.batch:,.0f} samples/s")

    def _end_epoch(self) -> Progress:
        self.show(self._progress("validating"))
        means, validation, sums = self._sums.means(), self._validate(), self._sums
        epoch = self._state.epoch + 1
        line = {
            "epoch": epoch,
            **self._counts(),
            "losses": losses(means),
            "validation": losses(validation),
            "learning_rate": self.figures.get("learning_rate"),
            "waited_for_batches": sums.waited / sums.worked if sums.worked else None,
            "shuffle": self._files.shuffle.name if self._files else None,
        }
        # The epoch is not over before all of this is written: with a full disk it is done again.
        exported = waits = ""
        if self.role != "trainonly" and epoch % self._config.ring.epochs_per_export == 0:
            waits = self._export_waits()
            exported = "" if waits else self._leave(line)
        self._metrics.write("epoch", {**line, "network": exported or None})
        self._state, self._sums = replace(self._state, epoch=epoch, steps=0), EpochSums()
        validated = f", on rows that were not learned from {validation['loss']:.3f}" if validation else ""
        loss = f": loss {means['loss']:.3f}{validated}" if "loss" in means else ""
        self._say(f"epoch {epoch:,}{loss}" + (f"; {exported} waits to be exported" if exported else waits))
        self._checkpoint()
        return self._progress("an epoch has ended")

    def _export_waits(self) -> str:
        """Why no network can be exported now: the last one still waits, because the gate has too many."""
        waiting = self.role == "main" and self._config.gate.kind != "none" and export.pending(self.folder)
        if not waiting or len(networks.candidates(self._base)) < self._config.gate.most_waiting:
            return ""
        return f"; not exported, because {self._config.gate.most_waiting:,} candidates wait for the gate"

    def _leave(self, line: dict[str, Any]) -> str:
        name = networks.name_of(self._config.run.name, self.name, self.trainer.samples, self.trainer.bucket.rows)
        if networks.known(self._base, name) is None:
            facts = {"run": self._config.run.name, "trainer": self.name, "role": self.role, **line}
            facts["seconds"] = self._elapsed()
            export.submit(self.folder, name, self.trainer.network(), self._game, facts)
        self._state = replace(self._state, exported=self.trainer.samples)
        return name

    def _validate(self) -> dict[str, float]:
        wanted, files = self._config.ring.validation_rows, self._files
        if files is None or not files.shuffle.validation or not wanted:
            return {}
        batch = self._config.train.batch
        settings = LoaderSettings(batch=batch, rest="pad", readers=1)
        with self._loader(files.shuffle.validation, settings) as loader:
            cutter = BatchCutter(batch, partial(next_rows, loader))
            with safe_exit.possible():
                figures = self.trainer.validate(cutter.blocks(-(-wanted // batch)))
            for bad in loader.get_stats().last_rejected:
                self._complain(bad.reason)
            return figures

    def _loader(self, files: Sequence[ShuffledFile], settings: LoaderSettings) -> Loader:
        most = max((file.rows for file in files), default=0)
        paths = FileList([file.path for file in files])
        return Loader(paths, self._form, self._identity, settings, max_chunk_rows=most)

    def _open_newest(self) -> Progress | None:
        """Switch to the newest shuffle; returns what it waits for if there is nothing to learn from."""
        found = newest(self._base, self._identity, self._complain)
        if found is None:
            return self._waiting("the first shuffle")
        if not found.form.holds(self._form):
            raise TengenError(
                f"{found.folder}: its rows do not teach what this network predicts: "
                "net.heads of the run's self-play and shuffle must name at least those of this trainer"
            )
        if self._files is None or found.name != self._files.shuffle.name:
            self.trainer.earn(max(found.total_rows - self.trainer.bucket.rows, 0))
            fresh = self._least_used(found.train)
            if not fresh:
                if self._files is None:
                    return self._waiting(f"a newer shuffle than {found.name}, whose files have all been learned from")
                return None
            self._release()
            batch, rows = self._config.train.batch, sum(file.rows for file in fresh)
            if rows < batch:
                return self._waiting(f"a larger shuffle: {found.name} has {rows:,} new rows, of {batch:,} for a step")
            settings = LoaderSettings(batch=batch * self.trainer.learner.block, readers=_READERS)
            try:
                self._files = ShuffledRows(found, fresh, batch, lambda: self._loader(fresh, settings))
            except ShuffleGone:
                return Progress(f"{found.name} is being removed")
        return None

    def _least_used(self, files: Sequence[ShuffledFile]) -> list[ShuffledFile]:
        """The files that were learned from least often, if that is less often than is allowed."""
        used = Counter(self._state.used)
        least = min((used[file.sha256] for file in files), default=0)
        return [file for file in files if used[file.sha256] == least < self._config.ring.passes_per_shuffle]

    def _limited(self) -> Progress:
        batch, bucket = self._config.train.batch, self.trainer.bucket
        more = round((batch - bucket.level) / self._config.train.samples_per_row)
        allowed = f"{bucket.level:,.0f} of the {batch:,} samples of a step are allowed"
        return self._waiting(f"{more:,} more row{'s' * (more != 1)} in a shuffle: {allowed}", bucket.level, batch)

    def _checkpoint(self) -> None:
        self.session.checkpoint({"ring": {**self._state.to_dict(), "role": self.role}})

    def _release(self) -> None:
        if self._files is not None:
            self._files.close()
        self._files = None

    def _progress(self, words: str, *, ended: bool = False) -> Progress:
        done, of = self._state.steps * self._config.train.batch, self.epoch_steps * self._config.train.batch
        loss = f", loss {self.figures['loss']:.3f}" if "loss" in self.figures else ""
        text = f"{words}: epoch {self._state.epoch + 1:,}, {done:,} of {of:,} samples{loss}"
        return Progress(text, done=done, of=of, ended=ended, figures=self._numbers())

    def _waiting(self, words: str, done: float | None = None, of: float | None = None) -> Progress:
        """Report what the trainer waits for; or the end, if it should not wait."""
        if self._end_when_limited:
            return self._progress(f"nothing to learn now, which would take {words}", ended=True)
        return waiting(words, done, of, **self._numbers())

    def _counts(self) -> dict[str, int]:
        return {"steps": self.trainer.step, "samples": self.trainer.samples, "rows": self.trainer.bucket.rows}

    def _numbers(self) -> dict[str, Any]:
        bucket = self.trainer.bucket
        return {
            **self._counts(),
            "bucket": round(bucket.level),
            "epochs": self._state.epoch,
            "role": self.role,
            "losses": losses(self.figures),
            "learning_rate": self.figures.get("learning_rate"),
            "figures": {name: value for name, value in self.figures.items() if not name.endswith("loss")},
        }
