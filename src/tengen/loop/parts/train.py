"""Learning as a part: trains on the newest shuffle, and hands its network on every few epochs.

Everything that must not be forgotten is in the checkpoint: which files were learned from (by their content), how far
the epoch is, and how much the rows so far allow. What was learned after the last checkpoint is learned again.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tengen import games, nets
from tengen.config.sections import Config
from tengen.config.settings.data import LoaderSettings
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.loader import Loader
from tengen.data.loader.sources import FileList
from tengen.data.shuffle.folders import Shuffle, ShuffledFile, ShuffleGone, newest
from tengen.errors import Diverged, TengenError
from tengen.loop.parts import export
from tengen.loop.parts.running import Say
from tengen.loop.resuming import refuse_to_forget
from tengen.run import counts as counting
from tengen.run import registry, safe_exit
from tengen.run.counts import RunCounts
from tengen.run.metrics import Metrics
from tengen.run.part import Progress, Show, Stop, unseen, waiting
from tengen.run.status import losses
from tengen.selfplay.lanes import boards
from tengen.selfplay.pacing import Pace
from tengen.train.alpha_zero import AlphaZeroConfig, AlphaZeroTrainer
from tengen.train.checkpoints import Checkpoints

Role = Literal["main", "extra", "trainonly"]
_READERS = 4  # threads
_SECONDS = 1.0  # of learning in one piece of work, about
_REMEMBERED = 20_000  # files that were learned from


@dataclass
class _Place:
    """Where a trainer stands besides its trainer's own state."""

    epoch: int = 0  # that are done
    steps: int = 0  # of the present one
    used: list[str] = field(default_factory=list)  # sha256 of files, oldest first
    exported: int = 0  # samples of the network that was handed on last

    def to_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "steps": self.steps, "used": self.used[-_REMEMBERED:], "exported": self.exported}

    @staticmethod
    def of(extras: Mapping[str, Any], folder: Path) -> "_Place":
        """As a checkpoint has it; that of a fused run has none."""
        found = extras.get("ring")
        if found is None:
            return _Place()
        try:
            used = [str(text) for text in found["used"]]
            return _Place(int(found["epoch"]), int(found["steps"]), used, int(found["exported"]))
        except (KeyError, TypeError, ValueError) as error:
            raise TengenError(f"{folder}: the checkpoint is not of such a training ({error})") from None


class TrainPart:
    """One trainer. `role`: `main` is exported for the gate, `extra` aside, `trainonly` not at all."""

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
        elapsed: Callable[[], float] | None = None,
    ) -> None:
        """`elapsed` tells the seconds of the run, for schedules that end with it; else it is the trainer's own time."""
        self.name, self.role = name, role
        self.show: Show = unseen
        self._config, self._base, self._stop, self._say = config, base, stop, say
        self._max_epochs, self._end_when_limited = max_epochs, end_when_limited
        self._game = games.make(config.game.name, **asdict(config.game.options))
        self._form = RowFormat.of(self._game, config.net.heads)
        self._identity = GameIdentity.of(self._game)
        spec = nets.spec(config.net.name, config.net.heads)
        smaller = tuple(board.game for board in boards(self._game, config.selfplay)[1:])
        self.trainer = AlphaZeroTrainer(
            AlphaZeroConfig(self._game, spec, config.train, config.run.seed, config.net.dtype, smaller)
        )
        self.folder = base / "train" / name
        with contextlib.ExitStack() as closing:
            self._closing = closing
            self._open()
            self._closing = closing.pop_all()
        self._elapsed = elapsed or (lambda: self._metrics.elapsed)
        self._saved = self.trainer.step
        self._pace = Pace(_SECONDS, amount=10)
        self._files: _Files | None = None
        self.figures: dict[str, float] = {}
        self._epoch_sums: dict[str, float] = {}
        self._summed = 0  # steps that they are of: fewer than the epoch's, if it was begun by another process
        self._waited = self._worked = 0.0  # seconds for batches, and in all, of this epoch
        self._complaints: set[str] = set()  # that were said

    def _open(self) -> None:
        """The trainer's folder, and the checkpoint in it to go on from."""
        self._metrics = self._closing.enter_context(Metrics(self.folder))
        export.clean(self.folder)
        self._checkpoints = Checkpoints(self.folder, self._config.train.checkpoints)
        self._closing.callback(self._checkpoints.close)
        found, set_aside = self.trainer.resume(self._checkpoints)
        for text in set_aside:
            self._say(f"a damaged checkpoint: {text}")
        self._place = _Place.of(found or {}, self.folder)
        if found is None:
            refuse_to_forget(self.folder)
        else:
            self._say(f"going on from step {self.trainer.step:,}")

    @property
    def epoch_steps(self) -> int:
        """Steps of an epoch."""
        return max(1, self._config.ring.samples_per_epoch // self._config.train.batch)

    def run_once(self) -> Progress:
        """A second of learning, or the end of an epoch."""
        try:
            return self._once()
        except Diverged as error:
            for text in self.trainer.set_dead_ends_aside(self._checkpoints, error):
                self._say(text)
            raise

    def _once(self) -> Progress:
        if self._max_epochs is not None and self._place.epoch >= self._max_epochs:
            return self._tell(f"{self._max_epochs:,} epochs are done", ended=True)
        if self._place.steps >= self.epoch_steps:
            return self._end_epoch()
        look = self._files is None or self._place.steps == 0 or not self.trainer.affordable
        if look and (missing := self._open_newest()):
            return missing
        if not self.trainer.affordable:
            return self._limited()
        assert self._files is not None
        return self._learn(self._files)

    def hand_on_now(self) -> bool:
        """Leave the network as it is for the export, unless that was done since the last step; whether it was."""
        if self.role == "trainonly" or self._place.exported == self.trainer.samples:
            return False
        self._hand_on({"epoch": self._place.epoch, **self._counts(), "losses": losses(self.figures)})
        self._checkpoint()
        return True

    def flush(self) -> None:
        """A checkpoint of all that was learned."""
        self._checkpoint()
        with self._saving():
            self._checkpoints.wait()

    def close(self) -> None:
        self._let_go()
        self._closing.close()

    def _learn(self, files: "_Files") -> Progress:
        steps = min(self._pace.units, self.epoch_steps - self._place.steps, self.trainer.affordable)
        if not self._pace.calls:
            self.show(self._tell("compiling the learner"))
        counts = RunCounts(rows=self.trainer.bucket.rows, seconds=self._elapsed())
        self.trainer.progress = counting.progress(self._config.goal, counts, self.trainer.step)
        began, waited = time.monotonic(), files.waited
        before = self.trainer.step
        with safe_exit.possible(not self._pace.calls):
            figures = self.trainer.learn(files.blocks(steps))
        made, seconds = self.trainer.step - before, time.monotonic() - began
        self._place.used += files.begun()
        for reason in files.bad():
            self._complain(reason)
        if not made:  # what is left of the files is less than a batch, or no good
            self._let_go()
            return Progress(f"all files of {files.shuffle.name} have been learned from")
        if self._pace.calls:
            self._waited, self._worked = self._waited + files.waited - waited, self._worked + seconds
        self._pace = self._pace.after(made, seconds)
        self.figures = figures
        self._place.steps += made
        for name, figure in figures.items():
            self._epoch_sums[name] = self._epoch_sums.get(name, 0.0) + made * figure
        self._summed += made
        due = self.trainer.step - self._saved >= self._config.train.checkpoints.interval
        if due and self._place.steps < self.epoch_steps:  # there is one at the end of an epoch, which says so
            self._checkpoint()
        return self._tell(f"learning, {made / max(seconds, 1e-9) * self._config.train.batch:,.0f} samples/s")

    def _end_epoch(self) -> Progress:
        """Validate, write it down, and hand the network on if it is time."""
        self.show(self._tell("validating"))
        means = {name: total / self._summed for name, total in self._epoch_sums.items()}
        validation = self._validate()
        epoch = self._place.epoch + 1
        line = {
            "epoch": epoch,
            **self._counts(),
            "losses": losses(means),
            "validation": losses(validation),
            "learning_rate": self.figures.get("learning_rate"),
            "waited_for_batches": self._waited / self._worked if self._worked else None,
            "shuffle": self._files.shuffle.name if self._files else None,
        }
        # The epoch is not over before all of this is written: with a full disk it is done again.
        exported = ""
        if self.role != "trainonly" and epoch % self._config.ring.epochs_per_export == 0:
            exported = self._hand_on(line)
        self._metrics.write("epoch", {**line, "network": exported or None})
        self._place.epoch, self._place.steps = epoch, 0
        self._epoch_sums, self._summed, self._waited, self._worked = {}, 0, 0.0, 0.0
        seen = f", on rows that were not learned from {validation['loss']:.3f}" if validation else ""
        mean = means.get("loss")
        loss = "" if mean is None else f": loss {mean:.3f}{seen}"
        self._say(f"epoch {epoch:,}{loss}" + (f"; {exported} waits to be exported" if exported else ""))
        self._checkpoint()
        return self._tell("an epoch has ended")

    def _hand_on(self, line: dict[str, Any]) -> str:
        """Leave the averaged weights for the export; the name of the network."""
        name = registry.name_of(self._config.run.name, self.name, self.trainer.samples, self.trainer.bucket.rows)
        if registry.known(self._base, name) is None:
            facts = {"run": self._config.run.name, "trainer": self.name, "role": self.role, **line}
            facts["seconds"] = self._elapsed()
            export.leave(self.folder, name, self.trainer.network(), self._game, facts)
        self._place.exported = self.trainer.samples
        return name

    def _validate(self) -> dict[str, float]:
        wanted, files = self._config.ring.validation_rows, self._files
        if files is None or not files.shuffle.validation or not wanted:
            return {}
        batch = self._config.train.batch
        settings = LoaderSettings(batch=batch, rest="pad", readers=1)
        paths, most = _listed(files.shuffle.validation)
        with Loader(FileList(paths), self._form, self._identity, settings, max_chunk_rows=most) as loader:
            count = -(-wanted // batch)
            with safe_exit.possible():
                figures = self.trainer.validate(_rows(loader, count))
            for bad in loader.get_stats().last_rejected:
                self._complain(bad.reason)
            return figures

    def _open_newest(self) -> Progress | None:
        """Take the newest shuffle, if it is another one; what is waited for, if there is nothing to learn from."""
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
            used = set(self._place.used)
            fresh = [file for file in found.train if file.sha256 not in used]
            if not fresh:
                if self._files is None:
                    return self._waiting(f"a newer shuffle than {found.name}, whose files have all been learned from")
                return None
            self._let_go()
            try:
                block = self.trainer.learner.block
                self._files = _Files(found, fresh, self._form, self._identity, self._config.train.batch, block)
            except ShuffleGone:
                return Progress(f"{found.name} is being removed")
            if self._files.total < self._config.train.batch:
                words = f"a larger shuffle: {found.name} has {self._files.total:,} new rows"
                batch = self._config.train.batch
                self._let_go()
                return self._waiting(f"{words}, of {batch:,} for a step")
        return None

    def _complain(self, reason: str) -> None:
        """Say once of a shuffle, or of a file of one, that it is passed over."""
        if reason not in self._complaints:
            self._complaints.add(reason)
            self._say(f"passed over: {reason}")

    def _limited(self) -> Progress:
        batch, bucket = self._config.train.batch, self.trainer.bucket
        more = (batch - bucket.level) / self._config.train.samples_per_row
        words = (
            f"{more:,.0f} more rows in a shuffle: {bucket.level:,.0f} of the {batch:,} samples of a step are allowed"
        )
        return self._waiting(words, bucket.level, batch)

    def _checkpoint(self) -> None:
        if self.trainer.step > self._saved:
            with self._saving():
                self._checkpoints.save(self.trainer.checkpoint({"ring": {**self._place.to_dict(), "role": self.role}}))
            self._saved = self.trainer.step

    @contextlib.contextmanager
    def _saving(self) -> Iterator[None]:
        """A checkpoint that could not be written, this one or the one before, is not saved."""
        try:
            yield
        except TengenError:
            self._saved = -1
            raise

    def _let_go(self) -> None:
        if self._files is not None:
            self._files.close()
        self._files = None

    def _tell(self, words: str, *, ended: bool = False) -> Progress:
        done, of = self._place.steps * self._config.train.batch, self.epoch_steps * self._config.train.batch
        loss = f", loss {self.figures['loss']:.3f}" if "loss" in self.figures else ""
        text = f"{words}: epoch {self._place.epoch + 1:,}, {done:,} of {of:,} samples{loss}"
        return Progress(text, done=done, of=of, ended=ended, figures=self._numbers())

    def _waiting(self, words: str, done: float | None = None, of: float | None = None) -> Progress:
        """What is waited for; the end, if nothing shall be."""
        if self._end_when_limited:
            return self._tell(f"nothing to learn now, which would take {words}", ended=True)
        return waiting(words, done, of, **self._numbers())

    def _counts(self) -> dict[str, int]:
        return {"steps": self.trainer.step, "samples": self.trainer.samples, "rows": self.trainer.bucket.rows}

    def _numbers(self) -> dict[str, Any]:
        bucket = self.trainer.bucket
        return {
            **self._counts(),
            "bucket": round(bucket.level),
            "epochs": self._place.epoch,
            "role": self.role,
            "losses": losses(self.figures),
            "learning_rate": self.figures.get("learning_rate"),
        }


def _listed(files: Sequence[ShuffledFile]) -> tuple[list[Path], int]:
    """The paths of these files, and the most rows that one of them has by the shuffle's index."""
    return [file.path for file in files], max((file.rows for file in files), default=0)


class _Files:
    """Files of one shuffle, being read in order; nobody removes them meanwhile."""

    def __init__(
        self, shuffle: Shuffle, files: list[ShuffledFile], form: RowFormat, game: GameIdentity, batch: int, block: int
    ) -> None:
        """`block`: so many batches of `batch` rows at a time."""
        self.shuffle, self.waited = shuffle, 0.0
        self._files, self._batch = files, batch
        self.total = sum(file.rows for file in files)
        self._rows = 0  # that were handed out
        self._begun = 0  # files of which some were, or that are no good
        self._begun_rows = 0  # in those of them that are good
        self._bad: dict[Path, str] = {}  # files that are no good, and why
        self._kept: Mapping[str, np.ndarray] = {}  # of the last block, what is left
        self._closing = contextlib.ExitStack()
        self._closing.enter_context(shuffle.open())
        settings = LoaderSettings(batch=batch * block, readers=_READERS)
        paths, most = _listed(files)
        self._loader = self._closing.enter_context(Loader(FileList(paths), form, game, settings, max_chunk_rows=most))
        self._loader.start()

    def blocks(self, steps: int) -> Iterator[Mapping[str, np.ndarray]]:
        """The next rows, for so many steps, or fewer if there are no more."""
        while steps:
            there = len(self._kept["ply"]) // self._batch if self._kept else 0
            if not there:
                began = time.monotonic()
                found = self._loader.get_next_batch()
                self.waited += time.monotonic() - began
                if found is None:
                    self._rows = self.total + 1  # so that all have begun, even empty ones
                    return
                self._kept = dict(zip(self._loader.names, found, strict=True))
                continue
            taken = min(there, steps)
            cut = taken * self._batch
            yield {name: values[:cut] for name, values in self._kept.items()}
            self._kept = {name: values[cut:] for name, values in self._kept.items()}
            self._rows += cut
            steps -= taken

    def begun(self) -> list[str]:
        """Files of which rows were handed out for the first time since this was asked, by content.

        Files that turned out to be no good are among them: nobody needs to try them again.
        """
        self._bad |= {bad.path: bad.reason for bad in self._loader.get_stats().last_rejected}
        new = []
        for file in self._files[self._begun :]:
            if file.path not in self._bad:
                if self._begun_rows >= self._rows:
                    break
                self._begun_rows += file.rows
            new.append(file.sha256)
            self._begun += 1
        return new

    def bad(self) -> list[str]:
        """What is wrong with files that turned out to be no good."""
        return list(self._bad.values())

    def close(self) -> None:
        self._closing.close()


def _rows(loader: Loader, count: int) -> Iterator[dict[str, np.ndarray]]:
    for _ in range(count):
        if (batch := loader.get_next_batch()) is None:
            return
        yield dict(zip(loader.names, batch, strict=True))
