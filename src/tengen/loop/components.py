"""The components of the fused loop: the game, the network and its training, self-play, and the rows on the device."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from tengen import nets
from tengen.ahead import Ahead, Jobs, finish_begun, shapes_on
from tengen.config.sections import Config
from tengen.data.format.rows import Rows, blank
from tengen.data.store import buffer
from tengen.data.store.buffer import RowBuffer
from tengen.errors import OptionError
from tengen.gpu import program
from tengen.jax_setup import device_memory
from tengen.selfplay.driver import SelfplayDriver
from tengen.train.alpha_zero import AlphaZeroConfig, AlphaZeroTrainer
from tengen.train.learner import padded
from tengen.words import in_bytes

_USABLE = 0.9  # of a device's memory: programs need some for themselves


class Components:
    """Built from a configuration alone; knows no files. With `ahead`, its threads compile the large programs."""

    def __init__(self, config: Config, ahead: Ahead | None = None) -> None:
        self.config = config  # whose self-play this is
        self.playing = playing = SelfplayDriver(config)
        lanes, weights = playing.lanes, playing.weight_shapes
        # The largest program first: each is traced here, while those before it are compiled.
        self.play_jobs = ahead.compile(lanes.play_programs(weights)) if ahead else ()
        self.start_jobs = ahead.compile(lanes.start_programs()) if ahead else ()
        self.game, self.spec, self.form, self.lanes = playing.game, playing.spec, playing.form, playing.lanes
        self.evaluate, self.selfplay = playing.evaluate, playing.selfplay
        self.trainer = AlphaZeroTrainer(AlphaZeroConfig.of(config))
        self.capacity = max(config.data.ring_rows, *(lane.selfplay.rows_room for lane in self.lanes.lanes))
        learned = self.trainer.learner.graph

        def folded(state: Any) -> Any:
            # Copies: the next step of learning donates the trainer's arrays, and folding may keep some of them.
            return nnx.split(nets.fold(nnx.merge(learned, jax.tree.map(jnp.copy, state))))[1]

        self._fold = jax.jit(folded)
        self._append = jax.jit(buffer.append, donate_argnums=0)
        # The learner wants its rows on all devices. Everything is placed explicitly even if there is only one device:
        # arrays that are there by default would cause a second compilation.
        # If a device is named instead of a sharding, arrays of the learner's mesh keep their type: another one.
        self._device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
        self._everywhere = self.trainer.learner.everywhere
        self._make = jax.jit(lambda: buffer.make(self.form, self.capacity), out_shardings=self._everywhere)
        self._make_jobs = ahead.call(lambda: self._make.lower().compile()) if ahead else ()
        self._fold_jobs = ahead.call(lambda: self._folding_program().compile()) if ahead else ()
        self.learner_jobs: Jobs = ()
        if ahead and self.compiles_learner():
            learning, settling = self.trainer.programs((self._ring_shapes(), jax.eval_shape(lambda: jnp.int32(0))))
            self.learner_jobs = ahead.call(lambda: learning().compile())
            self.play_jobs += ahead.compile(self.collecting_programs())
            self.learner_jobs += ahead.call(lambda: settling().compile())

    @staticmethod
    def compiles_learner() -> bool:
        """Whether the learner is compiled while games are compiled and played. On a CPU, these need the cores."""
        return jax.default_backend() != "cpu"

    def change(self, config: Config) -> bool:
        """Use other settings from now on; whether self-play has changed, so that its lanes are new ones.

        OptionError if that is impossible, for lack of memory for example; self-play then stays as it is.
        """
        self.trainer.change(config.train)
        if (self.config.search, self.config.selfplay) == (config.search, config.selfplay):
            return False
        playing = SelfplayDriver(config)
        check_change(playing, self.playing)
        self.config = config
        self.playing, self.lanes, self.selfplay = playing, playing.lanes, playing.selfplay
        return True

    def memory(self, plays: bool = True) -> dict[str, int]:
        """Bytes on the device, by purpose; without `plays`, the games are on other devices."""
        return {
            "games and their trees": self.lanes.bytes_needed() if plays else 0,
            "rows": buffer.bytes_needed(self.form, self.capacity),
            "network and optimiser": sum(leaf.nbytes for leaf in jax.tree.leaves(self.trainer.state)),
        }

    def check_memory(self, plays: bool = True) -> None:
        advice = "lower selfplay.games, search.simulations or data.ring_rows" if plays else "lower data.ring_rows"
        check_fits("this run" if plays else "the learner", sum(self.memory(plays).values()), advice)

    def weights(self, unfolded: Any = None) -> Any:
        """The folded parameters for self-play, of `unfolded` or of the trainer's network."""
        finish_begun(self._fold_jobs)
        return jax.device_put(self._fold(self.unfolded() if unfolded is None else unfolded), self._device)

    def unfolded(self) -> Any:
        """The averaged weights of the trainer's network, which its next step donates."""
        return self.trainer.weights(copies=False)

    def _folding_program(self) -> Any:
        learner, state = self.trainer.learner, self.trainer.state  # as in `unfolded`, but nothing is settled
        shapes = jax.eval_shape(lambda: learner.weights(state, copies=False))
        return self._fold.lower(shapes_on(self._everywhere, shapes))

    def make_buffer(self) -> RowBuffer:
        finish_begun(self._make_jobs)
        return self._make()

    def append(self, rows: RowBuffer, new: Rows, count: Any) -> RowBuffer:
        """Append the first `count` rows of the block `new` from self-play to the buffer, which is donated."""
        learned = {name: new[name] for name in self.form.fields}
        return self._append(rows, *jax.device_put((learned, count), self._everywhere))

    def collecting_programs(self) -> Iterator[Any]:
        """The programs for what was played, to be compiled ahead: they bring it to the buffer and to the host."""
        ring = self._ring_shapes()
        for room in {lane.selfplay.rows_room for lane in self.lanes.lanes}:
            rows = jax.eval_shape(lambda room=room: (blank(self.form, room, jnp), jnp.int32(0)))
            yield self._append.lower(ring, *shapes_on(self._everywhere, rows))
        yield from self.lanes.fetching_programs(self.playing.weight_shapes)

    def _ring_shapes(self) -> RowBuffer:
        return shapes_on(self._everywhere, jax.eval_shape(lambda: buffer.make(self.form, self.capacity)))

    def load(self, rows: RowBuffer, old: Rows, count: int, block: int | None = None) -> RowBuffer:
        """Append `count` rows from the host, oldest first, to the buffer, which is donated, a `block` at a time."""
        block = block or self.selfplay.rows_room  # the size of self-play's blocks, so that there is one program
        for start in range(0, count, block):
            part = {name: values[start : min(start + block, count)] for name, values in old.items()}
            size = len(part["ply"])
            filled = {name: jnp.asarray(padded(values, block)) for name, values in part.items()}
            rows = self.append(rows, filled, jnp.int32(size))
        return rows


def session_key(config: Config, session: int = 0) -> jax.Array:
    """The random numbers of a session of the run: each start is one."""
    return jax.random.fold_in(jax.random.key(config.run.seed), session)


def check_change(playing: SelfplayDriver, before: SelfplayDriver) -> None:
    """OptionError if self-play cannot go on with changed settings: for lack of memory, or because rows would differ."""
    if playing.config.search.kernels == "gpu" and not program.runs_here():
        raise OptionError("search.kernels: expected auto or plain, because there is no GPU here, got gpu")
    if playing.played_form != before.played_form:
        what = "rows for KataGo have the scores of searches only with a search.score_weight above 0"
        raise OptionError(f"{what}: stop the run, and start it again to play with that")
    check_fits("self-play", playing.lanes.bytes_needed(), "`tengen set` a lower search.simulations")


def check_fits(what: str, needed: int, advice: str) -> None:
    """OptionError if the device has too little memory."""
    there = device_memory()
    if there is not None and needed > _USABLE * there:
        raise OptionError(f"{what} needs {in_bytes(needed)} on the device, which has {in_bytes(there)}: {advice}")
