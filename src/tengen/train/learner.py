"""Learning as a pure function: state and batch in, state and figures out; on one device or on all of them.

The program is written as if there were one device, and XLA adds the communication: batch norms see the whole batch, and
losses do not depend on how many there are.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tengen.config.settings.train import TrainSettings
from tengen.data.format.rows import RowFormat, unpack_planes
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.nets import norms, saving
from tengen.nets.network import Network
from tengen.train import losses, optimizers, schedules, symmetry
from tengen.train.packing import Tensors
from tengen.train.state import Figures, LearnerState, Packings, once, repeated

Numbers = dict[str, Array]
"""{name: Float32[]}: numbers of the settings that may change without compiling again."""
Sampler = Callable[[Any, Array, int], Mapping[str, Array]]
"""sample(data, key, batch): a batch of rows of the data (a buffer on the device, say), see `data.format.rows`."""

_BLOCK = 16  # batches that go to the device at once
_SETTLING_ROWS = 1024  # at least so many give the norms of the averaged weights their statistics
_OTHERS = nnx.Not(nnx.Param)


class Learner:
    """The training of one network: compiled functions without state.

    `devices` are all local ones by default. Data for `many` must be on all of them (`learner.everywhere`).
    `smaller` are boards that rows may come from besides the game's, see `rows.widened`.
    """

    def __init__(
        self,
        net: Network,
        game: Game,
        settings: TrainSettings,
        devices: Sequence[Any] | None = None,
        compiler_options: dict[str, Any] | None = None,
        smaller: Sequence[Game] = (),
    ) -> None:
        if net.folded:
            raise OptionError("a folded network cannot be trained: it has no statistics any more")
        found = list(jax.local_devices() if devices is None else devices)
        settings.check_devices(len(found))
        self.graph = nnx.graphdef(net)
        mesh = Mesh(found, ("batch",))
        self.everywhere = NamedSharding(mesh, PartitionSpec())
        self.split = NamedSharding(mesh, PartitionSpec("batch"))
        self._form = RowFormat.of(game, net.spec.heads)
        self._losses = partial(losses.losses, targets=game.extra_targets, halves_draws=game.halves_draws)
        self._make_tables = partial(symmetry.tables, game, smaller)
        # XLA's compiler for CPUs makes the gradients of convolutions 25 times slower inside a loop than outside.
        self._loops = found[0].platform != "cpu"
        self._compiler_options = compiler_options
        self._compile(settings)
        self._numbers = self._as_arrays()

    def changed(self, settings: TrainSettings) -> "Learner":
        """A learner with other settings, for the same state.

        The optimiser's numbers and the decay of the averages are arguments of the compiled step; other settings mean
        that it is compiled again. Batch and kind of the optimiser must stay the same.
        """
        other = copy.copy(self)
        if _compiled_in(settings) != _compiled_in(self.settings):
            other._compile(settings)
        other.settings = settings
        other._numbers = other._as_arrays()
        return other

    def shares_programs(self, other: "Learner") -> bool:
        """Whether this learner uses the compiled programs of the other one."""
        return self._step is other._step

    def _compile(self, settings: TrainSettings) -> None:
        """Let the step be compiled with these settings when it is first used."""
        self.settings = settings
        self._tables = self._make_tables() if settings.symmetries else None
        self._factor = schedules.factor(settings.schedule)
        compiled = partial(jax.jit, donate_argnums=0, compiler_options=self._compiler_options)
        self._step = compiled(self._given)
        self._one = compiled(self._drawn, static_argnums=3)
        self._many = compiled(self._loop, static_argnums=3)
        self._block = compiled(self._in_order)
        self._settle = compiled(self._settled)
        self._settle_drawn = compiled(self._settled_by_draw, static_argnums=2)
        self._judge = jax.jit(self._judged)

    def _as_arrays(self) -> Numbers:
        found = optimizers.numbers(self.settings.optimizer) | {"average_decay": self.settings.average_decay}
        return _spread({name: np.float32(value) for name, value in found.items()}, self.everywhere)

    def start(self, net: Network) -> LearnerState:
        """The state before the first step."""
        return self.place(self.fresh(net))

    def fresh(self, net: Network) -> LearnerState:
        """The same with the network's own arrays, for `place`: nothing is compiled or copied."""
        parameters, statistics = (saving.named(nnx.state(net, kind)) for kind in (nnx.Param, _OTHERS))
        optimizer = optimizers.start(self.settings.optimizer, parameters)
        step: Any = np.zeros((), np.int32)
        rate_scale: Any = np.ones((), np.float32)
        return LearnerState(parameters, statistics, parameters, statistics, optimizer, step, rate_scale)

    def place(self, state: LearnerState) -> LearnerState:
        """The state on all devices. The arrays are copies, so donating them does not affect `state`.

        They are copied on the host, where nothing is compiled for that.
        """
        return _spread(jax.tree.map(np.array, jax.device_get(state)), self.everywhere)

    def scaled(self, state: LearnerState, factor: float) -> LearnerState:
        """The state with another `rate_scale`."""
        return state._replace(rate_scale=_spread(np.float32(factor), self.everywhere))

    def step(self, state: LearnerState, batch: Mapping[str, Array], key: Array) -> tuple[LearnerState, Figures]:
        """Take one step. `state` is donated. The same key may serve all steps: the step's number is folded into it.

        A step after which anything would not be finite changes nothing: its `skipped` is 1, and its losses are 0.
        """
        return self._step(state, self._numbers, _spread(dict(batch), self.split), key)

    def many(
        self, state: LearnerState, key: Array, sample: Sampler, data: Any, steps: int
    ) -> tuple[LearnerState, Figures]:
        """Take `steps` steps (at least one), each on a new batch; the state after them, and the mean of the figures.

        `state` is donated, `data` is not. Compiled once for each `sample`: always pass the same function.
        """
        if self._loops:
            return self._many(state, self._numbers, key, sample, data, jnp.int32(steps))
        found = []
        for _ in range(steps):
            state, figures = self._one(state, self._numbers, key, sample, data)
            if self.split.num_devices > 1:
                jax.block_until_ready(figures)  # steps that overlap can wait for each other's devices for ever
            found.append(figures)
        return state, jax.tree.map(lambda *each: sum(each[1:], each[0]) / steps, *found)

    def programs(self, state: LearnerState, key: Array, sample: Sampler, data: Any) -> tuple[Callable[[], Any], ...]:
        """Functions that lower `many` and `settle_drawn` for such arguments, which may be shapes, to compile ahead."""
        many = partial(self._many.lower, state, self._numbers, key, sample, data, jnp.int32(1))
        one = partial(self._one.lower, state, self._numbers, key, sample, data)
        return many if self._loops else one, partial(self._settle_drawn.lower, state, key, sample, data)

    @property
    def settling_rows(self) -> int:
        """How many rows `settle` needs."""
        batch = self.settings.batch
        return batch * -(-_SETTLING_ROWS // batch)

    def settle(self, state: LearnerState, rows: Mapping[str, Any], key: Array) -> LearnerState:
        """The state, which is donated, with statistics of the norms that belong to the averaged weights.

        Each step averages the statistics of the newest weights, too, but those of averaged weights are different, and
        while learning is fast all of these averages are out of date. Without this, a deep network plays for hundreds of
        steps as if it had learned nothing. `rows` are `settling_rows` from which it learns.
        """
        return self._alone(self._settle(state, _spread(dict(rows), self.split), key))

    def settle_drawn(self, state: LearnerState, key: Array, sample: Sampler, data: Any) -> LearnerState:
        """`settle` on rows drawn from `data`, as `many` draws them."""
        return self._alone(self._settle_drawn(state, key, sample, data))

    def _alone(self, state: LearnerState) -> LearnerState:
        """The state, ready before the next program runs if there are several devices, as in `many`."""
        return jax.block_until_ready(state) if self.split.num_devices > 1 else state

    @property
    def block(self) -> int:
        """How many batches to pass to `in_order` at once: transfers and calls cost as much for one as for many."""
        return _BLOCK if self._loops else 1

    def in_order(
        self, state: LearnerState, rows: Mapping[str, Any], key: Array, steps: int
    ) -> tuple[LearnerState, Figures]:
        """Take a step on each of the first `steps` batches of the rows on the host; also returns sums of the figures.

        `state` is donated. There may be at most `block` batches.
        """
        batch = self.settings.batch
        if not self._loops:
            cut = ({name: values[i * batch : (i + 1) * batch] for name, values in rows.items()} for i in range(steps))
            state, sums = self.step(state, next(cut), key)
            for one in cut:
                state, figures = self.step(state, one, key)
                sums = _added(sums, figures)
                if self.split.num_devices > 1:
                    jax.block_until_ready(sums)  # as in `many`
            return state, sums
        whole = {name: padded(values[: steps * batch], self.block * batch) for name, values in rows.items()}
        return self._block(state, self._numbers, _spread(whole, self.everywhere), key, np.int32(steps))

    def judge(self, state: LearnerState, batch: Mapping[str, Array]) -> Figures:
        """The losses of the averaged weights on a batch, without learning; `rows` counts those with weight."""
        return self._judge(state.average_parameters, state.average_statistics, _spread(dict(batch), self.split))

    def weights(self, state: LearnerState, *, average: bool = True, copies: bool = True) -> Any:
        """The nnx state for `nnx.merge(learner.graph, ...)`: copies, which the next step leaves alone, unless told."""
        chosen = (
            {**state.average_parameters, **state.average_statistics}
            if average
            else {**state.parameters, **state.statistics}
        )
        return saving.unnamed(_copied(chosen) if copies else chosen)

    def network(self, state: LearnerState, *, average: bool = True) -> Network:
        """The current network, with averaged weights or the newest ones."""
        return nnx.merge(self.graph, self.weights(state, average=average))

    def learning_rate(self, state: LearnerState) -> Array:
        """Float32[]: the learning rate of the next step."""
        return self._rate(state, self._numbers)

    def _rate(self, state: LearnerState, numbers: Numbers) -> Array:
        return numbers["learning_rate"] * self._factor(state.step) * state.rate_scale

    def _given(
        self, state: LearnerState, numbers: Numbers, batch: Mapping[str, Array], key: Array
    ) -> tuple[LearnerState, Figures]:
        return once(lambda _, state, packs: self._learn(state, packs, numbers, batch, key), state)

    def _drawn(
        self, state: LearnerState, numbers: Numbers, key: Array, sample: Sampler, data: Any
    ) -> tuple[LearnerState, Figures]:
        """One step, on a batch that it draws itself."""
        return once(lambda _, state, packs: self._draw(state, packs, numbers, key, sample, data), state)

    def _loop(
        self, state: LearnerState, numbers: Numbers, key: Array, sample: Sampler, data: Any, steps: Array
    ) -> tuple[LearnerState, Figures]:
        def one(_: Array, state: LearnerState, packs: Packings) -> tuple[LearnerState, Figures]:
            return self._draw(state, packs, numbers, key, sample, data)

        state, sums = repeated(one, state, steps)
        return state, jax.tree.map(lambda x: x / jnp.maximum(steps, 1), sums)

    def _in_order(
        self, state: LearnerState, numbers: Numbers, rows: Mapping[str, Array], key: Array, steps: Array
    ) -> tuple[LearnerState, Figures]:
        batch = self.settings.batch

        def one(number: Array, state: LearnerState, packs: Packings) -> tuple[LearnerState, Figures]:
            cut = {name: lax.dynamic_slice_in_dim(values, number * batch, batch) for name, values in rows.items()}
            return self._learn(state, packs, numbers, cut, key)

        return repeated(one, state, steps)

    def _draw(
        self, state: LearnerState, packs: Packings, numbers: Numbers, key: Array, sample: Sampler, data: Any
    ) -> tuple[LearnerState, Figures]:
        drawn = sample(data, jax.random.fold_in(jax.random.fold_in(key, 1), state.step), self.settings.batch)
        return self._learn(state, packs, numbers, drawn, key)

    def _learn(
        self, state: LearnerState, packs: Packings, numbers: Numbers, batch: Mapping[str, Array], key: Array
    ) -> tuple[LearnerState, Figures]:
        rows = self._augmented(batch, jax.random.fold_in(jax.random.fold_in(key, 2), state.step))
        rows = lax.with_sharding_constraint(rows, self.split)
        gradient = jax.grad(partial(self._loss, rows=rows), has_aux=True)
        tensors = packs.parameters.unpack(state.parameters), packs.statistics.unpack(state.statistics)
        change, (statistics, figures) = gradient(*tensors)
        change, statistics = packs.parameters.pack(change), packs.statistics.pack(statistics)
        rate = self._rate(state, numbers)
        used = optimizers.make(optimizers.with_numbers(self.settings.optimizer, numbers), packs.parameters)
        parameters, optimizer = optimizers.step(used, change, state.optimizer, state.parameters, rate)
        size = optax.tree.norm(change)
        # One bad batch must not spoil the network for good. The variance of a norm can overflow while the loss is
        # finite. Parameters that overflow show in the next loss, and checkpoints refuse them: looking at all of them in
        # every step would double the time of compilation.
        normal = jnp.concatenate(
            [size[None], figures["loss"][None], *(x.ravel() for x in statistics.values() if _is_float(x))]
        )
        good = jnp.isfinite(normal).all()
        parameters, statistics, optimizer = jax.tree.map(
            partial(jnp.where, good),
            (parameters, statistics, optimizer),
            (state.parameters, state.statistics, state.optimizer),
        )
        averages = _averaged(
            (state.average_parameters, state.average_statistics),
            (parameters, statistics),
            state.step,
            numbers["average_decay"],
        )
        figures = {name: jnp.where(good, figure, 0) for name, figure in (figures | {"gradient": size}).items()}
        figures |= {"learning_rate": rate, "skipped": 1 - good.astype(jnp.float32)}
        state = LearnerState(
            parameters, statistics, averages[0], averages[1], optimizer, state.step + 1, state.rate_scale
        )
        return lax.with_sharding_constraint(state, self.everywhere), figures

    def _settled_by_draw(self, state: LearnerState, key: Array, sample: Sampler, data: Any) -> LearnerState:
        drawn = sample(data, jax.random.fold_in(jax.random.fold_in(key, 3), state.step), self.settling_rows)
        return self._settled(state, drawn, key)

    def _settled(self, state: LearnerState, batch: Mapping[str, Array], key: Array) -> LearnerState:
        rows = self._augmented(batch, jax.random.fold_in(jax.random.fold_in(key, 4), state.step))
        rows = lax.with_sharding_constraint(rows, self.split)
        old = state.average_statistics
        net = nnx.merge(self.graph, saving.unnamed({**state.average_parameters, **old}))
        norms.renew_statistics(net)
        net(rows["planes"], rows["scalars"], train=True)
        new = saving.named(nnx.state(net, nnx.BatchStat))
        good = jnp.stack([jnp.isfinite(x).all() for x in new.values()]).all() if new else True
        settled = old | {name: jnp.where(good, x, old[name]) for name, x in new.items()}
        return lax.with_sharding_constraint(state._replace(average_statistics=settled), self.everywhere)

    def _augmented(self, batch: Mapping[str, Array], key: Array) -> dict[str, Array]:
        """The batch with its planes unpacked to Bool[B, H, W, C], each row through a random symmetry."""
        missing = [name for name in self._form.fields if name not in batch]
        if missing:
            raise OptionError(f"rows without {', '.join(missing)} cannot teach this network")
        rows = {**batch, "planes": unpack_planes(batch["planes"], self._form.planes_shape)}
        return rows if self._tables is None else symmetry.apply_random(self._tables, rows, key)

    def _loss(self, parameters: Tensors, statistics: Tensors, rows: dict[str, Array]) -> tuple[Array, Any]:
        net = nnx.merge(self.graph, saving.unnamed({**parameters, **statistics}))
        outputs = net(rows["planes"], rows["scalars"], train=True)
        loss, figures = self._losses(outputs, rows, self.settings.loss)
        return loss, (saving.named(nnx.state(net, _OTHERS)), figures)

    def _judged(self, parameters: Tensors, statistics: Tensors, batch: Mapping[str, Array]) -> Figures:
        net = nnx.merge(self.graph, saving.unnamed({**parameters, **statistics}))
        planes = unpack_planes(batch["planes"], self._form.planes_shape)
        outputs = net(planes, batch["scalars"])
        _, figures = self._losses(outputs, {**batch, "planes": planes}, self.settings.loss)
        return figures | {"rows": (batch["weight"] > 0).sum().astype(jnp.float32)}


def _compiled_in(settings: TrainSettings) -> tuple[Any, ...]:
    """The settings that the compiled step was made for."""
    return settings.schedule, settings.loss, settings.symmetries


def _averaged(old: Any, new: Any, step: Array, most: Array) -> Any:
    """Moving averages. The first steps count for more, so that the random initial values are soon forgotten."""
    decay = jnp.minimum(most, (1 + step) / (10 + step))
    return jax.tree.map(lambda a, b: b + decay * (a - b) if _is_float(b) else b, old, new)


def _is_float(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.floating)


@jax.jit
def _added(one: Figures, other: Figures) -> Figures:
    return jax.tree.map(jnp.add, one, other)


@jax.jit
def _copied(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)


def _spread(tree: Any, sharding: NamedSharding) -> Any:
    """`jax.device_put`, also if the devices belong to several processes: all of them call this with the same values."""
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)

    def one(values: Any) -> Array:
        host = np.asarray(values)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(one, tree)


def padded(values: np.ndarray, length: int) -> np.ndarray:
    """The array with zeros added up to that length."""
    if len(values) == length:
        return values
    return np.concatenate([values, np.zeros((length - len(values), *values.shape[1:]), values.dtype)])
