"""AlphaZero's trainer: a network learns the search's policy and the results of games."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen import nets, schema
from tengen.config.sections import Config
from tengen.config.settings.train import TrainSettings
from tengen.data.store import buffer
from tengen.errors import Diverged, TengenError
from tengen.games.core import Game
from tengen.nets import custom, growing
from tengen.nets.building import build_for_device
from tengen.run import networks
from tengen.selfplay.boards import boards
from tengen.train import schedules
from tengen.train.base import BaseTrainer, Bucket, Metrics
from tengen.train.checkpoints import Checkpoint, Checkpoints
from tengen.train.hosts import SharedLearner
from tengen.train.learner import Learner, Sampler
from tengen.train.state import LearnerState

_MOST_FAILED = 3  # steps in a row that are not finite: a bad batch is an exception
_KEPT_WHEN_SKIPPED = ("skipped", "learning_rate")  # figures that skipped steps have as well


@dataclass(frozen=True)
class AlphaZeroConfig:
    game: Game
    spec: nets.Spec
    train: TrainSettings
    seed: int = 0
    dtype: nets.Dtype = "bfloat16"
    start_from: str | None = None  # a network or run whose parameters to begin with
    smaller: tuple[Game, ...] = ()  # boards that rows come from besides the game's, see `rows.widened`

    @staticmethod
    def of(config: Config) -> "AlphaZeroConfig":
        game, net = config.game.make(), config.net
        smaller = tuple(board.game for board in boards(game, config.selfplay)[1:])
        seed, start = config.run.seed, net.start_from
        return AlphaZeroConfig(game, net.architecture(), config.train, seed, net.dtype, start, smaller)


@dataclass(frozen=True)
class _About:
    bucket: Bucket
    plateau: schedules.Plateau
    key: tuple[int, ...]
    extras: dict[str, Any]
    schedule: dict[str, Any] | None = None


def checked_start(net: nets.Network, game: Game, start_from: str | None) -> nets.Network:
    """A new network, with the parameters of a saved one if `start_from` names one. OptionError if it cannot be used."""
    custom.check_numbers(net, game)
    return net if start_from is None else growing.start_from(networks.find(start_from).path, net, game)[0]


@jax.jit
def _keys(seed: Array) -> tuple[Array, Array]:
    first, second = jax.random.split(jax.random.key(seed))
    return first, second


def from_buffer(data: tuple[buffer.RowBuffer, Array | int], key: Array, batch: int) -> buffer.Rows:
    """A sampler of (buffer, window): rows drawn uniformly from the newest `window`."""
    rows, window = data
    return buffer.sample(rows, key, batch, window)


def _count(blocks: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(block["ply"]) for block in blocks)


def _newest(blocks: list[Mapping[str, Any]], rows: int) -> list[Mapping[str, Any]]:
    """Without the oldest blocks, if the others have enough rows."""
    while _count(blocks[1:]) >= rows:
        blocks = blocks[1:]
    return blocks


class AlphaZeroTrainer(BaseTrainer[AlphaZeroConfig]):
    """Owns the network and the state of its training. `feed` it rows, then `train`.

    `sample(data, key, batch)` draws a batch of the data last fed, inside the compiled loop.
    """

    def __init__(
        self,
        config: AlphaZeroConfig,
        sample: Sampler = from_buffer,
        devices: Sequence[Any] | None = None,
        compiler_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(config)
        start, self._key = _keys(np.uint32(config.seed))
        full = not config.smaller
        net = build_for_device(config.spec, config.game, start, dtype=config.dtype, full_board=full)
        net = checked_start(net, config.game, config.start_from)
        make = SharedLearner if jax.process_count() > 1 else Learner
        self.learner = make(net, config.game, config.train, devices, compiler_options, config.smaller)
        self.state = self.learner.start(net)
        self.bucket = Bucket()
        self.plateau = schedules.Plateau()
        self.failed = 0  # steps in a row, up to now, that were not finite and changed nothing
        self.progress = 0.0  # share of the run's goal that is reached, set by the caller for schedules that need it
        self.stage_rate = 1.0  # factor of the learning rate in the current stage of the run, set by the caller
        self.schedule: schedules.AnySchedule | None = None
        """Another factor of the learning rate, by the step, asked once per call; set it before `resume`."""
        self._sample = sample
        self._data: Any = None
        self._newest: list[Mapping[str, Any]] = []  # the last blocks of rows from the host
        self._settled = True  # whether nothing was learned since the averaged weights got their statistics

    @property
    def samples(self) -> int:
        """Samples learned so far, over all steps."""
        return self.bucket.samples

    @property
    def affordable(self) -> int:
        """Steps that the rows so far allow now."""
        return self.bucket.steps(self.config.train.batch) if self._data is not None else 0

    def grow_from(self, other: "AlphaZeroTrainer") -> None:
        """Go on with the training of a smaller network: this one takes over its averaged weights and all counts."""
        game = self.config.game
        net, _ = growing.grown(other.network(), game, self.network(average=False), game)
        self.state = self.learner.place(self.learner.fresh(net)._replace(step=np.int32(other.step)))
        self.bucket, self.plateau, self.schedule = other.bucket, other.plateau, other.schedule
        self.progress, self.stage_rate = other.progress, other.stage_rate
        self._key, self._step = other._key, other._step
        self._settled, self._newest = True, []

    def change(self, settings: TrainSettings) -> bool:
        """Learn with other settings from now on; returns whether the next step compiles. See `Learner.changed`."""
        before, self.learner = self.learner, self.learner.changed(settings)
        self.config = replace(self.config, train=settings)
        return not self.learner.shares_programs(before)

    def feed(self, data: Any, rows: int) -> None:
        """Learn from `data` (a buffer and its window, say) from now on; it has `rows` more rows than before."""
        settings = self.config.train
        self._data = data
        self.bucket = self.bucket.filled(rows, settings.samples_per_row, settings.largest_debt)

    def earn(self, rows: int) -> None:
        """Allow `learn` to use `rows` more rows, which the caller provides."""
        self.feed(self._data if self._data is not None else (), rows)

    def programs(self, data: Any) -> tuple[Callable[[], Any], ...]:
        """Functions that lower the programs of `train` for data of these shapes. Any thread may call them."""
        return self.learner.programs(self.state, self._key, self._sample, data)

    def learn(self, blocks: Iterator[Mapping[str, Any]]) -> Metrics:
        """Take a step on each batch of the blocks of rows on the host; a block has at most `learner.block` batches.

        ValueError if the rows so far do not allow that many steps.
        """
        self._scale_rate()
        sums, steps, batch = None, 0, self.config.train.batch
        for rows in blocks:
            count = len(rows["ply"]) // batch
            self.state, figures = self.learner.in_order(self.state, rows, self._key, count)
            sums = figures if sums is None else jax.tree.map(jnp.add, sums, figures)
            steps += count
            self._newest = _newest([*self._newest, rows], self.learner.settling_rows)
        return self._after(steps, jax.tree.map(lambda total: total / steps, jax.device_get(sums))) if steps else {}

    def validate(self, blocks: Iterable[Mapping[str, Any]]) -> Metrics:
        """Mean losses of the averaged weights on blocks of rows that were not learned from; empty without any.

        Diverged if they are not finite: a network with those weights could not play.
        """
        self._settle()
        found, size = [], self.config.train.batch
        for block in blocks:
            for start in range(0, len(block["ply"]), size):
                batch = {name: values[start : start + size] for name, values in block.items()}
                found.append(jax.device_get(self.learner.judge(self.state, batch)))
        rows = [figures.pop("rows") for figures in found]
        if not sum(rows):
            return {}
        means = {name: float(np.average([each[name] for each in found], weights=rows)) for name in found[0]}
        if not math.isfinite(means["loss"]):
            raise Diverged.at(self._step, "the loss of the averaged network on rows to validate with is not finite")
        return means

    def weights(self, *, average: bool = True, copies: bool = True) -> Any:
        """The nnx state for `nnx.merge(trainer.learner.graph, ...)`: copies, unless the next step may donate it."""
        self._settle()
        return self.learner.weights(self.state, average=average, copies=copies)

    def network(self, *, average: bool = True) -> nets.Network:
        """The current network, to save or to play with."""
        self._settle()
        return self.learner.network(self.state, average=average)

    def checkpoint(self, extras: dict[str, Any] | None = None) -> Checkpoint:
        self._settle()
        key = np.asarray(jax.random.key_data(self._key)).tolist()
        schedule = None if self.schedule is None else schedules.saved(self.schedule, "schedule")
        about = _About(self.bucket, self.plateau, key, extras or {}, schedule)
        return Checkpoint(self._step, self.state, asdict(about))

    def resume(self, checkpoints: Checkpoints) -> tuple[dict[str, Any], tuple[str, ...]] | None:
        found = checkpoints.restore(self.state)
        return None if found is None else (self.restore(found[0]), found[1])

    def restore(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Resume from this checkpoint; returns its `extras`."""
        try:
            found = schema.from_data(_About, checkpoint.about)
            key = jax.random.wrap_key_data(jnp.asarray(found.key, jnp.uint32))
        except (TypeError, ValueError) as error:
            what = f"the checkpoint of step {checkpoint.step} belongs to another kind of training"
            raise TengenError(f"{what}: {error}") from None
        if found.schedule:
            self.schedule = schedules.restored(found.schedule, self.schedule, "schedule", self.schedule is not None)
        self.state: LearnerState = self.learner.place(checkpoint.state)
        self.bucket, self.plateau, self._key = found.bucket, found.plateau, key
        self._step = checkpoint.step
        self._settled, self._newest = True, []
        return found.extras

    def _train(self, steps: int) -> Metrics:
        steps = min(steps, self.affordable)
        if steps == 0:
            return {}
        self._scale_rate()
        self.state, figures = self.learner.many(self.state, self._key, self._sample, self._data, steps)
        return self._after(steps, figures)

    def pieces(self, steps: int, piece: int, stop: Callable[[], bool]) -> Metrics:
        """`train`, `piece` steps at a time, until `stop` says so. All of them are one report to the schedule."""
        most, taken, sums = min(steps, self.affordable), 0, dict[str, float]()
        self._scale_rate()
        while taken < most and not (taken and stop()):
            count = min(piece, most - taken)
            self.state, figures = self.learner.many(self.state, self._key, self._sample, self._data, count)
            sums = {name: sums.get(name, 0.0) + count * float(each) for name, each in jax.device_get(figures).items()}
            taken += count
        found = self._after(taken, {name: each / taken for name, each in sums.items()}) if taken else {}
        return {**found, "step": self.step, "steps": taken}

    def _settle(self) -> None:
        """Settle the averaged weights if they have learned since, on the newest rows if these came from the host."""
        if self._settled:
            return
        self._settled, wanted = True, self.learner.settling_rows
        if not self._newest:
            self.state = self.learner.settle_drawn(self.state, self._key, self._sample, self._data)
        elif _count(self._newest) >= wanted:
            names = self._newest[0]
            rows = {name: np.concatenate([block[name] for block in self._newest])[-wanted:] for name in names}
            self.state = self.learner.settle(self.state, rows, self._key)

    def _after(self, steps: int, figures: Any) -> Metrics:
        """Count steps that were taken, with these figures on the device; Diverged if too many were not finite."""
        self._step += steps
        self._settled = False
        self.bucket = self.bucket.spent(steps, self.config.train.batch)
        found = {name: float(figure) for name, figure in jax.device_get(figures).items()}
        learned = 1 - found["skipped"]
        if learned > 0:
            self.failed = 0
            # Skipped steps have no losses.
            found = {name: figure if name in _KEPT_WHEN_SKIPPED else figure / learned for name, figure in found.items()}
            self.plateau = schedules.report(self.config.train.schedule, self.plateau, found["loss"])
        else:
            self.failed += steps
            found = {name: found[name] for name in _KEPT_WHEN_SKIPPED}
        if self.failed >= _MOST_FAILED:
            what = f"the loss or its gradient was NaN or infinite in each of the last {self.failed} steps"
            raise Diverged.at(self._step, what)
        return {**found, "samples": self.bucket.samples, "rows": self.bucket.rows, "bucket": self.bucket.level}

    def _scale_rate(self) -> None:
        """Set the factor of the learning rate that does not depend on the step alone."""
        settings = self.config.train
        factor = settings.lr_scale * self.stage_rate
        if settings.schedule.kind == "plateau":
            factor *= self.plateau.scale
        factor *= schedules.fall_with_run(settings.schedule, self.progress)
        if self.schedule is not None:
            factor *= float(schedules.number(self.schedule, self._step, "schedule"))
        self.state = self.learner.scaled(self.state, factor)
