"""A run of the daemon: its loader, its training, its exported networks and their uploads.

The checkpoint names the network that is being made, and how far it is. Export and upload are repeated under that name
until both are done, so a daemon that is killed neither loses a network nor makes it twice.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from flax import nnx

from tengen import nets, schema
from tengen.config import provenance
from tengen.config.rendering import render
from tengen.config.sections import Config
from tengen.config.settings.data import LoaderSettings
from tengen.daemon.uploads import Uploads
from tengen.data.format.chunk import read_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.lc0 import is_chess, reader
from tengen.data.format.rows import RowFormat, Rows
from tengen.data.format.tars import SUFFIX
from tengen.data.loader.loader import Loader, LoaderTimeout
from tengen.data.loader.sources import SPLITS, ChunksAndTars, Folder, Split, share_of
from tengen.errors import Diverged, TengenError
from tengen.loop.parts import export
from tengen.run import config_file, diverged, first_network, goals, locks, networks
from tengen.run.config_file import ConfigWatch
from tengen.run.diverged import explained, lower_rates
from tengen.run.metrics import Metrics
from tengen.run.part_status import StatusWriter
from tengen.run.status import losses
from tengen.train.alpha_zero import AlphaZeroConfig, AlphaZeroTrainer
from tengen.train.session import BatchCutter, HostRows, TrainingSession, next_rows, read_extras

TRAINER = "main"
_WHY = "made by the daemon"
_SECONDS = 0.5  # of learning in one piece of work, about
_LOOK = 0.2  # seconds between two checks for messages, while there is no batch
_VALIDATION = 10.0  # seconds that a batch for validation is waited for
_REMEMBERED = 20  # networks

Say = Callable[[str, str], None]
"""(level, text)."""


@dataclass
class SessionPlace:
    """How far a run has come, besides its trainer's own state; part of every checkpoint."""

    networks: int = 0  # trained so far
    training: bool = False  # whether one is being trained
    step: int = 0  # of that one
    anchor: int = 0  # chunks that were there when its training began
    pending: str = ""  # the network of this checkpoint, which is to be exported
    validation: dict[str, float] = field(default_factory=dict)  # the last losses
    test: dict[str, float] = field(default_factory=dict)  # on chunks for tests

    @staticmethod
    def of(extras: Mapping[str, Any], folder: Path) -> "SessionPlace":
        """From a checkpoint; one of another loop has none."""
        return read_extras(SessionPlace, extras.get("daemon", {"place": {}}).get("place"), folder)


@dataclass(frozen=True)
class MadeNetwork:
    name: str
    path: Path
    step: int
    samples: int
    when: float  # seconds since 1970
    validation_loss: float | None


@dataclass(frozen=True)
class _MadeFacts:
    """What `export.MADE` says about a network, as far as the status shows it."""

    steps: int = 0
    validation: dict[str, float] = field(default_factory=dict)


class DaemonSession:
    """One run. One thread works with it; other threads only read (`place`, `figures`, `loader`, `made`, `uploads`)."""

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
        self._closing.enter_context(locks.taking_part(base, f"train-{TRAINER}", other="--base"))
        self.status_writer = self._closing.enter_context(StatusWriter(base, "daemon", "daemon"))
        self.folder = base / "train" / TRAINER
        config_file.write(config, base, provenance.lines(), lambda change: self._say("info", change))
        config_file.write(config, self.folder, provenance.lines())
        provenance.keep_changes(base)
        self._watch = ConfigWatch(base, config, partial(self._say, "info"))
        self.trainer = AlphaZeroTrainer(AlphaZeroConfig.of(first_network.local(config, base)))
        self._game, spec = self.trainer.config.game, self.trainer.config.spec
        # The network as players load it, to try it before it is exported.
        self._plain = nnx.graphdef(nets.build(spec, self._game, nnx.Rngs(0), dtype="float32"))
        self._metrics = self._closing.enter_context(Metrics(self.folder))
        diverged.forget(self.folder)
        warn = partial(self._say, "warning")
        self._training = TrainingSession(
            self.trainer, self.folder, config.train.checkpoints, warn, seconds=_SECONDS, amount=4
        )
        self._closing.callback(self._training.close)
        found = self._training.extras
        if found is None:
            self._training.saved = -1  # a network may be exported before the first step
        self.place = SessionPlace.of(found or {}, self.folder)
        self.loader = self._closing.enter_context(self._make_loader((found or {}).get("daemon", {}).get("loader")))
        if found is not None:
            self._say("info", f"going on from step {self.trainer.step:,}, network {self.place.networks + 1:,}")
        self.uploads = self._closing.enter_context(Uploads(base, self.settings.upload, self._say))
        self.made = tuple(_made(base))
        with contextlib.suppress(TengenError):  # so that people can tell whose run this is
            self._metrics.write("daemon", {"rows": self.trainer.bucket.rows, "steps": self.trainer.step})
        self.waits_for = ""  # while training: what its batches wait for
        self._batches = BatchCutter(config.train.batch, partial(self._next, "train", _LOOK))
        self._rejected = 0  # files that were reported

    @property
    def figures(self) -> dict[str, float]:
        return self._training.figures

    @property
    def steps_per_second(self) -> float | None:
        """Smoothed; None until it is known."""
        return self._training.steps_per_second

    def _make_loader(self, state: Mapping[str, Any] | None) -> Loader:
        it = self.settings
        taken = {name: getattr(it, name) for name in ("validation", "test", "poll_seconds")}
        names = ("pool_chunks", "chunk_share", "reservoir_rows", "readers")
        taken |= {name: getattr(it.loader, name) for name in names}
        seed = 1_000_003 * self.config.run.seed + self.trainer.step
        settings = LoaderSettings(batch=self.config.train.batch * self.trainer.learner.block, seed=seed, **taken)
        self.data = Path(it.data) if it.data else self.base / "selfplay"
        form = RowFormat.of(self._game, self.config.net.heads)
        most = self.config.data.max_chunk_rows
        game = GameIdentity.of(self._game)
        if is_chess(form):
            from_lc0 = reader(form, focus=it.loader.diff_focus, seed=self.config.run.seed)
            source = ChunksAndTars(Folder(self.data, (".npz", ".gz", SUFFIX)))

            def read(path: Path) -> Rows:
                return read_chunk(path, form, game, most)[0] if path.suffix == ".npz" else from_lc0(path)

            loader = Loader(source, form, game, settings, read)
        else:
            loader = Loader(Folder(self.data), form, game, settings, max_chunk_rows=most)
        if state is not None:
            loader.restore(state)
        for split in SPLITS:
            if share_of(split, settings):
                loader.start(split)
        return loader

    @property
    def chunks(self) -> int:
        """Good chunks since the beginning."""
        return sum(counts.chunks for counts in self.loader.counts().values())

    @property
    def new_chunks(self) -> int:
        """Good chunks since the training of the last network began."""
        return max(self.chunks - self.place.anchor, 0)

    @property
    def has_data(self) -> bool:
        """Whether there is anything to learn from."""
        return self.loader.get_stats().stage("unpack", "train").queue > 0

    def rejections(self) -> tuple[int, tuple[str, ...]]:
        """Files that are not chunks and were not reported yet: how many, and the reasons of the last ones."""
        stats = self.loader.get_stats()
        new = sum(stats.rejected.values()) - self._rejected
        self._rejected += new
        return new, tuple(item.reason for item in stats.last_rejected[-new:]) if new else ()

    def take_changes(self) -> None:
        """Go on with the run's new settings, if `tengen set` has changed any."""
        if (config := self._watch.look()) is not None:
            self.config, self.settings = config, config.daemon
            self.trainer.change(config.train)
            config_file.write(config, self.folder, ())

    def begin(self) -> None:
        self.place = replace(self.place, training=True, step=0, anchor=self.chunks)
        self._count_rows()

    def learn(self, interrupted: Callable[[], bool]) -> bool:
        """Learn for a moment; returns whether the steps of this network are done."""
        left = self.settings.steps_per_network - self.place.step
        if left > 0:
            with self._advising():
                self._learn(min(self._training.pace.units, left), interrupted)
        return self.place.step >= self.settings.steps_per_network

    def finish(self) -> None:
        """Validate the network and let it be exported."""
        with self._advising():
            validation, test = (losses(self._validate(split)) for split in ("validation", "test"))
        self.place = replace(
            self.place, networks=self.place.networks + 1, training=False, step=0, validation=validation, test=test
        )
        self.export_soon()
        with contextlib.suppress(TengenError):  # the network matters more, and has the same figures with it
            speeds = {"steps_per_second": self.steps_per_second, "learning_rate": self.figures.get("learning_rate")}
            line = {"networks": self.place.networks, **self._facts(), **speeds, "figures": self.figures}
            self._metrics.write("network", line)

    def export_soon(self) -> bool:
        """Let the current network be exported; False if it was already, or is about to be."""
        name = networks.name_of(self.config.run.name, TRAINER, self.trainer.samples, self.trainer.bucket.rows)
        if name == self.place.pending or networks.known(self.base, name) is not None:
            return False
        self.place = replace(self.place, pending=name)
        return True

    def export(self) -> MadeNetwork | None:
        """Save, export and upload the pending network; None if it was exported before a kill."""
        name = self.place.pending
        target = self.base / networks.ACCEPTED / name
        made = None
        net = None if networks.known(self.base, name) else nnx.merge(self._plain, self.trainer.weights())
        if net is not None:
            with self._advising():
                try:
                    export.check(net, self._game, target)
                except TengenError as error:
                    raise Diverged.at(self.trainer.step, str(error)) from error
        self.flush()
        self.uploads.put(name)  # before the network is there, or it might be forgotten
        if net is not None:
            if note := export.write(self.base, target, net, self._game, self._facts(), render(self.config), _WHY):
                self._say("warning", note)
            loss = self.place.validation.get("loss")
            made = MadeNetwork(name, target, self.trainer.step, self.trainer.samples, time.time(), loss)
            self.made = (made, *self.made)[:_REMEMBERED]
        self.uploads.wake()
        self.place = replace(self.place, pending="")
        self._prune()
        return made

    @contextlib.contextmanager
    def _advising(self) -> Iterator[None]:
        """If training diverges, the error says how to go on."""
        try:
            with self._training.watching():
                yield
        except Diverged as error:
            lower = " ".join(f"{key}={rate:g}" for key, rate in lower_rates(self.config).items())
            how = f"Lower the learning rate in the configuration, or with --set {lower}, and start the training again."
            anew = "the network then learns anew from the chunks that are there"
            raise explained(error, self.folder, how, anew) from error

    def flush(self) -> None:
        self._checkpoint()
        self._training.wait()

    def close(self) -> None:
        """End all threads and release everything, without saving."""
        self._closing.close()

    def _learn(self, steps: int, interrupted: Callable[[], bool]) -> None:
        trainer, batch = self.trainer, self.config.train.batch
        counts = goals.RunCounts(rows=trainer.bucket.rows, seconds=self._metrics.elapsed)
        trainer.progress = goals.progress(self.config.goal, counts, trainer.step)
        # `steps_per_network` and `chunks_per_network` decide how much is learned from how many rows.
        trainer.bucket = replace(trainer.bucket, level=float(max(trainer.bucket.level, batch * steps)))
        self.waits_for = ""

        def learn(steps: int) -> dict[str, float]:
            return trainer.learn(self._batches.blocks(steps, interrupted))

        taken = self._training.learn(steps, learn, may_exit=False)
        self.place = replace(self.place, step=self.place.step + taken)
        # A finished network is saved with its name.
        if taken and self._training.due and self.place.step < self.settings.steps_per_network:
            self._checkpoint()

    def _next(self, split: Split, timeout: float) -> HostRows:
        """The loader's next batch; empty if there is none in time."""
        try:
            found = next_rows(self.loader, split, timeout)
        except LoaderTimeout:
            self.waits_for = self.loader.waiting(split)
            return {}
        self.waits_for = ""
        return found or {}

    def _validate(self, split: Split) -> dict[str, float]:
        """Losses on rows that are not learned from; empty if there are no such rows."""
        wanted, share = self.settings.validation_rows, getattr(self.settings, split)
        if not wanted or not share or not self.loader.counts()[split].chunks:
            return {}
        batch = self.config.train.batch
        cutter = BatchCutter(batch, lambda: self._next(split, _VALIDATION) or None)
        figures = self.trainer.validate(cutter.blocks(-(-wanted // batch)))
        if self.waits_for:
            self._say("warning", f"too few rows for {split}: {self.waits_for}")
        return figures

    def _count_rows(self) -> None:
        rows = sum(counts.rows for counts in self.loader.counts().values())
        self.trainer.bucket = replace(self.trainer.bucket, rows=max(rows, self.trainer.bucket.rows))
        self.trainer.earn(0)

    def _facts(self) -> dict[str, Any]:
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
        self._training.checkpoint({"daemon": {"place": asdict(self.place), "loader": self.loader.state()}})

    def _prune(self) -> None:
        """Remove networks beyond those to keep; never one that still has to be uploaded."""
        if self.settings.keep_networks is None:
            return
        ours = [entry for entry in networks.accepted(self.base) if networks.verdict(entry.path).get("why") == _WHY]
        for entry in ours[: -self.settings.keep_networks]:
            if self.uploads.state(entry.name) in ("", "done"):
                shutil.rmtree(entry.path, ignore_errors=True)


def _made(base: Path) -> Iterator[MadeNetwork]:
    for entry in networks.accepted(base)[: -_REMEMBERED - 1 : -1]:
        facts, when = _MadeFacts(), time.time()
        with contextlib.suppress(TengenError, OSError):
            when = (entry.path / export.MADE).stat().st_mtime
            facts = schema.read_json(_MadeFacts, entry.path / export.MADE)
        loss = facts.validation.get("loss")
        yield MadeNetwork(entry.name, entry.path, facts.steps, entry.samples, when, loss)
