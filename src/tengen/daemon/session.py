"""One run in the daemon's hands: its loader, its trainer, its checkpoints and what it hands on.

Everything that must survive is in the checkpoint: how many networks there are, how far the present one is, and from
which count of chunks on new ones are counted. A network has its name from its checkpoint, and exporting and handing on
are done again by that name until both are there; so a daemon that is killed neither loses one nor makes it twice.
"""

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx

from tengen import files, games, nets
from tengen.config import provenance
from tengen.config.rendering import render
from tengen.config.sections import Config
from tengen.config.settings.data import LoaderSettings
from tengen.daemon.uploads import Uploads
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.loader import Loader, LoaderTimeout
from tengen.data.loader.sources import Folder
from tengen.data.loader.splits import SPLITS, Split, share_of
from tengen.errors import Diverged, TengenError
from tengen.loop.divergence import explained, lower_rates
from tengen.loop.parts import export
from tengen.loop.resuming import refuse_to_forget
from tengen.run import counts as counting
from tengen.run import directory, locks, registry
from tengen.run.metrics import Metrics
from tengen.run.part_status import StatusWriter
from tengen.run.status import losses
from tengen.selfplay.lanes import boards
from tengen.selfplay.pacing import Pace
from tengen.train.alpha_zero import AlphaZeroConfig, AlphaZeroTrainer
from tengen.train.checkpoints import Checkpoints

TRAINER = "main"
_WHY = "made by the daemon"
_SECONDS = 0.5  # of learning in one piece of work, about
_LOOK = 0.2  # seconds between two looks at whether to stop, while there is no batch
_VALIDATION = 10.0  # seconds that a batch for validation is waited for
_REMEMBERED = 20  # networks

Say = Callable[[str, str], None]
"""(level, text)."""


@dataclass
class SessionPlace:
    """Where a run stands besides its trainer's own state."""

    networks: int = 0  # that are trained
    training: bool = False  # whether one is being trained
    step: int = 0  # of that one
    anchor: int = 0  # chunks that were there when its training began
    pending: str = ""  # a network that this checkpoint is, and that is to be exported
    validation: dict[str, float] = field(default_factory=dict)  # the last losses
    test: dict[str, float] = field(default_factory=dict)  # on chunks that are for tests

    @staticmethod
    def of(extras: Mapping[str, Any], folder: Path) -> "SessionPlace":
        """As a checkpoint has it; that of another loop has none."""
        found = extras.get("daemon")
        if found is None:
            return SessionPlace()
        try:
            return SessionPlace(**found["place"])
        except (KeyError, TypeError) as error:
            raise TengenError(f"{folder}: the checkpoint is not of a daemon's training ({error})") from None


@dataclass(frozen=True)
class MadeNetwork:
    """A network."""

    name: str
    path: Path
    step: int
    samples: int
    when: float  # seconds since 1970
    validation_loss: float | None


class DaemonSession:
    """One run. One thread works with it; the others only look (`place`, `figures`, `loader`, `made`, `uploads`)."""

    def __init__(self, config: Config, base: Path, say: Say) -> None:
        self.config, self.base, self._say = config, base, say
        self.settings = config.daemon
        self._closing = contextlib.ExitStack()
        try:
            self._open()
        except BaseException:
            self._closing.close()
            raise

    def _open(self) -> None:
        config, base = self.config, self.base
        self._closing.enter_context(locks.taking_part(base, f"train-{TRAINER}"))
        self.notice = self._closing.enter_context(StatusWriter(base, "daemon", "daemon"))
        self.folder = base / "train" / TRAINER
        directory.write(config, base, provenance.lines(), lambda change: self._say("info", change))
        directory.write(config, self.folder, provenance.lines())
        self._game = games.make(config.game.name, **asdict(config.game.options))
        spec = nets.spec(config.net.name, config.net.heads)
        smaller = tuple(board.game for board in boards(self._game, config.selfplay)[1:])
        self.trainer = AlphaZeroTrainer(
            AlphaZeroConfig(self._game, spec, config.train, config.run.seed, config.net.dtype, smaller)
        )
        # As players read it back, to try it before it is handed on.
        self._plain = nnx.graphdef(nets.build(spec, self._game, nnx.Rngs(0), dtype="float32"))
        self._metrics = self._closing.enter_context(Metrics(self.folder))
        self._checkpoints = Checkpoints(self.folder, config.train.checkpoints)
        self._closing.callback(self._checkpoints.close)
        found, set_aside = self.trainer.resume(self._checkpoints)
        for text in set_aside:
            self._say("warning", f"a damaged checkpoint: {text}")
        if found is None:
            refuse_to_forget(self.folder)
        self.place = SessionPlace.of(found or {}, self.folder)
        self._saved = self.trainer.step if found is not None else -1
        self.loader = self._closing.enter_context(self._make_loader((found or {}).get("daemon", {}).get("loader")))
        if found is not None:
            self._say("info", f"going on from step {self.trainer.step:,}, network {self.place.networks + 1:,}")
        self.uploads = self._closing.enter_context(Uploads(base, self.settings.upload, self._say))
        self.made = tuple(_made(base))
        self.figures: dict[str, float] = {}
        self.steps_per_second: float | None = None
        self.waits_for = ""  # while training: what its batches wait for
        self._pace = Pace(_SECONDS, amount=4)
        self._kept: Mapping[str, np.ndarray] = {}  # of the loader's last batch, what is left
        self._rejected = 0  # files that were told of

    def _make_loader(self, state: Mapping[str, Any] | None) -> Loader:
        it = self.settings
        settings = LoaderSettings(
            batch=self.config.train.batch * self.trainer.learner.block,
            validation=it.validation,
            test=it.test,
            pool_chunks=it.pool_chunks,
            chunk_share=it.chunk_share,
            reservoir_rows=it.reservoir_rows,
            readers=it.readers,
            poll_seconds=it.poll_seconds,
            seed=1_000_003 * self.config.run.seed + self.trainer.step,
        )
        self.data = Path(it.data) if it.data else self.base / "selfplay"
        form = RowFormat.of(self._game, self.config.net.heads)
        most = self.config.data.max_chunk_rows
        loader = Loader(Folder(self.data), form, GameIdentity.of(self._game), settings, max_chunk_rows=most)
        if state is not None:
            loader.restore(state)
        for split in SPLITS:
            if share_of(split, settings):
                loader.start(split)
        return loader

    # What it waits for.

    @property
    def chunks(self) -> int:
        """Good ones since the beginning."""
        return sum(counts.chunks for counts in self.loader.counts().values())

    @property
    def new_chunks(self) -> int:
        """Since the training of the last network began."""
        return max(self.chunks - self.place.anchor, 0)

    @property
    def has_data(self) -> bool:
        """Whether there is anything to learn from."""
        return self.loader.get_stats().stage("unpack", "train").queue > 0

    def rejections(self) -> tuple[int, tuple[str, ...]]:
        """Files that are no chunks and were not told of yet: how many, and why, as far as that is remembered."""
        stats = self.loader.get_stats()
        new = sum(stats.rejected.values()) - self._rejected
        self._rejected += new
        return new, tuple(item.reason for item in stats.last_rejected[-new:]) if new else ()

    # What it does.

    def begin(self) -> None:
        """Start to train the next network; chunks that come from now on count for the one after it."""
        self.place = replace(self.place, training=True, step=0, anchor=self.chunks)
        self._count_rows()

    def learn(self, interrupted: Callable[[], bool]) -> bool:
        """A short while of learning; whether the steps of this network are done."""
        left = self.settings.steps_per_network - self.place.step
        if left > 0:
            with self._advising():
                self._learn(min(self._pace.units, left), interrupted)
        return self.place.step >= self.settings.steps_per_network

    def finish(self) -> None:
        """Validate: this network is to be exported."""
        with self._advising():
            validation, test = (losses(self._validate(split)) for split in ("validation", "test"))
        self.place = replace(
            self.place, networks=self.place.networks + 1, training=False, step=0, validation=validation, test=test
        )
        self.export_soon()
        with contextlib.suppress(TengenError):  # the network matters more, and has the same figures with it
            self._metrics.write("network", {"networks": self.place.networks, **self._facts()})

    def export_soon(self) -> bool:
        """Have the network as it is exported; False if it was already, or is about to be."""
        name = registry.name_of(self.config.run.name, TRAINER, self.trainer.samples, self.trainer.bucket.rows)
        if name == self.place.pending or registry.known(self.base, name) is not None:
            return False
        self.place = replace(self.place, pending=name)
        return True

    def export(self) -> MadeNetwork | None:
        """Save and export the network that is pending, and hand it on; None if that was done before a kill."""
        name = self.place.pending
        target = self.base / registry.ACCEPTED / name
        made = None
        net = None if registry.known(self.base, name) else nnx.merge(self._plain, self.trainer.weights())
        if net is not None:
            with self._advising():
                self._try(net, target)
        self.flush()
        self.uploads.put(name)  # before the network is there, or it might be forgotten
        if net is not None:
            export.write(self.base, target, net, self._game, self._facts(), render(self.config), _WHY)
            loss = self.place.validation.get("loss")
            made = MadeNetwork(name, target, self.trainer.step, self.trainer.samples, time.time(), loss)
            self.made = (made, *self.made)[:_REMEMBERED]
        self.uploads.wake()
        self.place = replace(self.place, pending="")
        self._prune()
        return made

    def _try(self, net: nets.Network, target: Path) -> None:
        """Diverged if the network is no good."""
        try:
            export.check(net, self._game, target)
        except TengenError as error:
            raise Diverged.at(self.trainer.step, str(error)) from error

    @contextlib.contextmanager
    def _advising(self) -> Iterator[None]:
        """If the training diverges, say how it can go on."""
        try:
            yield
        except Diverged as error:
            for text in self.trainer.set_dead_ends_aside(self._checkpoints, error):
                self._say("warning", text)
            lower = " ".join(f"{key}={rate:g}" for key, rate in lower_rates(self.config).items())
            how = f"Lower the learning rate in the configuration, or with --set {lower}, and start the training again."
            anew = "the network then learns anew from the chunks that are there"
            raise TengenError(explained(error, self.folder, how, anew)) from error

    def flush(self) -> None:
        """A checkpoint of all that was learned, on the disk."""
        before = self._saved
        self._checkpoint()
        try:
            self._checkpoints.wait()
        except TengenError:
            if self.trainer.step not in self._checkpoints.steps():
                self._saved = before
            raise

    def close(self) -> None:
        """End all threads and let go of everything, without saving."""
        self._closing.close()

    def _learn(self, steps: int, interrupted: Callable[[], bool]) -> None:
        trainer, batch = self.trainer, self.config.train.batch
        counts = counting.RunCounts(rows=trainer.bucket.rows, seconds=self._metrics.elapsed)
        trainer.progress = counting.progress(self.config.goal, counts, trainer.step)
        # How much is learned from how many rows is for `steps_per_network` and `chunks_per_network` to say.
        trainer.bucket = replace(trainer.bucket, level=float(max(trainer.bucket.level, batch * steps)))
        before, began = trainer.step, time.monotonic()
        self.waits_for = ""
        figures = trainer.learn(self._blocks(steps, interrupted))
        made, seconds = trainer.step - before, time.monotonic() - began
        if not made:
            return
        if self._pace.calls:  # the first one compiles
            now = made / max(seconds, 1e-9)
            self.steps_per_second = now if self.steps_per_second is None else 0.7 * self.steps_per_second + 0.3 * now
        self._pace = self._pace.after(made, seconds)
        self.figures = figures
        self.place = replace(self.place, step=self.place.step + made)
        unfinished = self.place.step < self.settings.steps_per_network  # what is finished is saved with its name
        if unfinished and trainer.step - self._saved >= self.config.train.checkpoints.interval:
            self._checkpoint()

    def _blocks(self, steps: int, interrupted: Callable[[], bool]) -> Iterator[Mapping[str, np.ndarray]]:
        """The next rows, for so many steps, or fewer if something else is to be done."""
        batch = self.config.train.batch
        while steps and not interrupted():
            there = len(self._kept["ply"]) // batch if self._kept else 0
            if not there:
                self._kept = self._next("train", _LOOK)
                continue
            taken = min(there, steps)
            yield {name: values[: taken * batch] for name, values in self._kept.items()}
            self._kept = {name: values[taken * batch :] for name, values in self._kept.items()}
            steps -= taken

    def _next(self, split: Any, timeout: float) -> Mapping[str, np.ndarray]:
        """The loader's next batch; nothing if there is none in time."""
        try:
            found = self.loader.get_next_batch(split, timeout)
        except LoaderTimeout:
            self.waits_for = self.loader.waiting(split)
            return {}
        self.waits_for = ""
        return dict(zip(self.loader.names, found or (), strict=False))

    def _validate(self, split: Split) -> dict[str, float]:
        """Losses on rows that are not learned from; none if there are no such rows."""
        wanted, share = self.settings.validation_rows, getattr(self.settings, split)
        if not wanted or not share or not self.loader.counts()[split].chunks:
            return {}
        return self.trainer.validate(self._parts(split, -(-wanted // self.config.train.batch)))

    def _parts(self, split: Split, count: int) -> Iterator[Mapping[str, np.ndarray]]:
        """So many batches of a split, as large as those that are learned from."""
        batch = self.config.train.batch
        while count > 0:
            rows = self._next(split, _VALIDATION)
            if not rows:
                self._say("warning", f"no rows for {split}: {self.waits_for}")
                return
            for start in range(0, min(len(rows["ply"]) // batch, count) * batch, batch):
                yield {name: values[start : start + batch] for name, values in rows.items()}
                count -= 1

    def _count_rows(self) -> None:
        rows = sum(counts.rows for counts in self.loader.counts().values())
        self.trainer.bucket = replace(self.trainer.bucket, rows=max(rows, self.trainer.bucket.rows))
        self.trainer.earn(0)

    def _facts(self) -> dict[str, Any]:
        """How the network came about."""
        return {
            "run": self.config.run.name,
            "trainer": TRAINER,
            "role": "main",
            "epoch": self.place.networks,
            "steps": self.trainer.step,
            "samples": self.trainer.samples,
            "rows": self.trainer.bucket.rows,
            "chunks": self.chunks,
            "losses": losses(self.figures),
            "validation": self.place.validation,
            "test": self.place.test,
            "seconds": self._metrics.elapsed,
        }

    def _checkpoint(self) -> None:
        if self.trainer.step > self._saved:
            extras = {"daemon": {"place": asdict(self.place), "loader": self.loader.state()}}
            self._checkpoints.save(self.trainer.checkpoint(extras))
            self._saved = self.trainer.step

    def _prune(self) -> None:
        """Remove networks beyond those that are kept; never one that still has to be handed on."""
        if self.settings.keep_networks is None:
            return
        ours = [entry for entry in registry.accepted(self.base) if registry.verdict(entry.path).get("why") == _WHY]
        for entry in ours[: -self.settings.keep_networks]:
            if self.uploads.state(entry.name) in ("", "done"):
                shutil.rmtree(entry.path, ignore_errors=True)


def _made(base: Path) -> Iterator[MadeNetwork]:
    """The last networks of the run, the newest first."""
    for entry in registry.accepted(base)[: -_REMEMBERED - 1 : -1]:
        about: dict[str, Any] = {}
        when = time.time()
        with contextlib.suppress(OSError, ValueError, RecursionError):
            when = (entry.path / export.MADE).stat().st_mtime
            about = json.loads(files.read_bytes(entry.path / export.MADE))
        step = about.get("steps") if isinstance(about, dict) else None
        validation = about.get("validation") if isinstance(about, dict) else None
        loss = validation.get("loss") if isinstance(validation, dict) else None
        yield MadeNetwork(
            entry.name,
            entry.path,
            step if type(step) is int else 0,
            entry.samples,
            when,
            float(loss) if isinstance(loss, int | float) else None,
        )
