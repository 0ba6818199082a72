"""The batches that callbacks get: dicts of named arrays, whose memory is reused; and the rows to learn from."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.context import program
from tengen.context.listeners import COLOURS, Listener, Shapes, numpy_dtype
from tengen.context.settings import ContextSettings
from tengen.data.format.rows import RowFormat, unpack_planes
from tengen.data.records.records import ENDINGS, Record, RecordError, write_records
from tengen.data.store import buffer
from tengen.errors import OptionError
from tengen.games.batching import choose
from tengen.games.core import Game
from tengen.selfplay.collector import record_of
from tengen.selfplay.history import FinishedGames
from tengen.train.base import Bucket

Reply = dict[str, np.ndarray]
Versions = tuple[int, int]
"""The versions of black's and white's network."""
Rows = dict[str, np.ndarray]


class EndedGame(NamedTuple):
    number: int
    versions: Versions
    finished: FinishedGames  # this one game, on the host


class Batch(dict[str, Any]):
    """Named arrays, or facts about one game. `label` names the callback, `reply` is where the answer goes.

    Its arrays, and those of `reply`, belong to the context: they are valid until the batch has been given back.
    """

    def __init__(
        self, label: str, values: dict[str, Any], reply: Reply | None = None, device_fields: tuple[str, ...] = ()
    ) -> None:
        super().__init__(values)
        self.label = label
        self.reply: Reply = {} if reply is None else reply
        self.device_fields = device_fields  # JAX arrays on the device of the games; the replies are there too, then
        self.device: Any = None  # that of the games, if replies stay there
        self.params: dict[int, Any] = {}
        """Version -> parameters, for versions of this batch that were set with parameters."""

    @property
    def on_device(self) -> bool:
        """Whether replies stay on the device of the games."""
        return self.device is not None

    @property
    def count(self) -> int:
        """How many rows are real; the remaining ones repeat the last real row."""
        return int(self["count"]) if "count" in self else 1


def for_actor(label: str, game: Game, listener: Listener, on_device: bool = False) -> Batch:
    """An empty batch of positions to evaluate; planes, scalars, features and replies may stay on the device."""
    size = listener.batch_size
    values = {
        "planes": np.zeros((size, *game.planes_shape), bool),
        "scalars": np.zeros((size, game.num_scalars), np.float32),
        "legal": np.zeros((size, game.num_actions), bool),
        "player": np.zeros(size, np.int8),
        "colour": np.zeros(size, np.int8),
        "ply": np.zeros(size, np.int32),
        "game": np.zeros(size, np.int64),
        "version": np.zeros(size, np.int64),
        "mask": np.zeros(size, bool),
        "count": np.zeros((), np.int64),
    }
    values = {name: array for name, array in values.items() if listener.holds(name)}
    features = listener.feature_shapes(game)
    values |= {name: np.zeros((size, *one.shape), numpy_dtype(one.dtype)) for name, one in features.items()}
    reply = {"policy": np.zeros((size, game.num_actions), np.float32), "value": np.zeros(size, np.float32)}
    fields = tuple(name for name in ("planes", "scalars", *features) if name in values) if on_device else ()
    values |= {name: jnp.asarray(values[name]) for name in fields}
    batch = Batch(label, values, reply, fields)
    if on_device:
        batch.device = jnp.zeros(()).device
    return batch


def for_game_end(game: Game, ended: EndedGame) -> Batch:
    """The facts about one finished game: see docs/context.md."""
    players = tuple(f"{name} {version}" for name, version in zip(COLOURS, ended.versions, strict=True))
    record = record_of(game, ended.finished, 0, (players[0], players[1]), id=str(ended.number))
    values = {
        "game": ended.number,
        "result": record.result,
        "length": len(record.actions),
        "moves": np.array(record.actions, np.int32),
        "values": np.array([np.nan if value is None else value for value in record.values], np.float32),
        "opening": record.opening,
        "black_version": ended.versions[0],
        "white_version": ended.versions[1],
        "record": _written(record),
    }
    return Batch("game_end", values)


def _written(record: Record) -> str | None:
    """SGF for Go, PGN for chess, plain text for others; None for a game that `games.make` does not know."""
    try:
        return write_records([record], ENDINGS.get(record.game, "txt"))
    except RecordError:
        return None


def pad(batch: Batch, count: int) -> None:
    """Mark the first `count` rows as real, and repeat the last of them as padding that suits every network."""
    batch["mask"][:] = np.arange(len(batch["mask"])) < count
    batch["count"][...] = count
    for name, values in batch.items():
        if name not in ("mask", "count") and isinstance(values, np.ndarray):
            values[count:] = values[count - 1]
    if batch.device_fields:
        batch.update(_pad({name: batch[name] for name in batch.device_fields}, count))
    if "game" in batch:
        batch["game"][count:] = -1
    forget(batch)


def forget(batch: Batch) -> None:
    """Remove the reply, so that missing answers are noticed."""
    for name, values in batch.reply.items():
        batch.reply[name] = np.full(values.shape, np.nan, np.float32) if batch.on_device else values
        batch.reply[name][:] = np.nan


def untouched(batch: Batch) -> bool:
    return all(np.isnan(values).all() for values in batch.reply.values())


# Rows that stay on the device of the games, for `GameContext(..., arrays="jax")`. All functions have fixed shapes
# (B rows in a batch, N in a group), so each is compiled once.


def place(batch: Any, group: Any, rows: np.ndarray, start: int) -> Any:
    """The arrays of a batch [B, ...] with these `rows` of a group [N, ...] copied to it, from row `start` on."""
    if not batch:
        return batch
    size = len(jax.tree.leaves(batch)[0])
    source, here = np.zeros(size, np.int32), np.zeros(size, bool)
    source[start : start + len(rows)], here[start : start + len(rows)] = rows, True
    return _place(batch, group, source, here)


def hear(group: Any, batch: Any, rows: np.ndarray, start: int) -> Any:
    """The arrays of a group [N, ...] with the rows of a batch [B, ...] from `start` on copied to the places `rows`."""
    target = np.full(len(jax.tree.leaves(batch)[0]), np.iinfo(np.int32).max, np.int32)
    target[start : start + len(rows)] = rows
    return _hear(group, batch, target)


@jax.jit
def _pad(batch: Any, count: Any) -> Any:
    return jax.tree.map(lambda x: x[jnp.minimum(jnp.arange(len(x)), count - 1)], batch)


@jax.jit
def is_wrong(policy: Array, value: Array, legal: Array, count: Any) -> Array:
    """Bool[]: whether something is wrong with the first `count` rows of a reply."""
    bad = (jnp.isnan(policy) | (policy == jnp.inf)).any(1) | ~(legal & (policy > -jnp.inf)).any(1)
    bad |= ~(jnp.abs(value) <= 1)
    return (bad & (jnp.arange(len(bad)) < count)).any()


@jax.jit
def _place(batch: Any, group: Any, source: Array, here: Array) -> Any:
    return jax.tree.map(lambda old, new: choose(here, new[source], old), batch, group)


@jax.jit
def _hear(group: Any, batch: Any, target: Array) -> Any:
    return jax.tree.map(lambda old, new: old.at[target].set(new, mode="drop"), group, batch)


class TrainRows:
    """The rows of finished games until they are handed out, and the batch, whose memory is reused."""

    def __init__(
        self, form: RowFormat, max_moves: int, features: Shapes, listener: Listener, settings: ContextSettings
    ) -> None:
        self._form, self._size, self._settings = form, listener.batch_size, settings
        shapes = {name: (shape, dtype) for name, (shape, dtype) in form.fields.items()}
        shapes |= {name: (one.shape, one.dtype) for name, one in features.items()}
        shapes |= {"game": ((), np.int64), "version": ((), np.int64), "planes": (form.planes_shape, bool)}
        held = [name for name in shapes if listener.holds(name) or name in features]
        self._batch = Batch(
            "train", {name: np.zeros((self._size, *shapes[name][0]), numpy_dtype(shapes[name][1])) for name in held}
        )
        self._stored = [name for name in (*form.fields, *features, "version") if name in held]
        self.bucket = Bucket()
        self._parts: list[Rows] = []  # not handed out yet, without a replay buffer
        self._replay: ReplayedRows | None = None
        if settings.replay_rows is not None:
            words = {"game": ((2,), np.uint32), "version": ((2,), np.uint32)}
            packed = {name: (words | dict(form.fields)).get(name, shapes[name]) for name in self._stored}
            blank = {name: np.zeros((max_moves, *shape), dtype) for name, (shape, dtype) in packed.items()}
            self._replay = ReplayedRows(blank, settings.replay_rows, self._size, settings.seed)

    @property
    def waiting(self) -> str:
        """What a first batch still needs, in words; empty if there were enough rows."""
        least = self._settings.min_rows
        return "" if self.bucket.rows >= least else f"train begins at {least:,} rows, so far {self.bucket.rows:,}"

    def add(self, ended: EndedGame) -> None:
        kept = ended.finished.kept
        rows = {name: np.asarray(ended.finished.rows[name])[kept] for name in self._stored if name != "version"}
        players = np.asarray(ended.finished.rows["to_play"])[kept]
        count = len(players)
        words = np.array([[ended.number]], np.int64).view(np.uint32)  # JAX has no numbers of 64 bits by default
        if "game" in rows:
            rows["game"] = np.repeat(words, count, 0)
        if "version" in self._stored:
            rows["version"] = np.array(ended.versions, np.int64)[:, None].view(np.uint32)[players]
        once = self._replay is None
        self.bucket = self.bucket.filled(count, 1.0 if once else self._settings.samples_per_row, float("inf"))
        if self._replay is None:
            self._parts.append(rows)
        else:
            self._replay.add(rows)

    def next(self) -> Batch | None:
        """A batch, or None if the rows so far do not allow one."""
        if not self.bucket.steps(self._size) or self.waiting:
            return None
        self.bucket = self.bucket.spent(1, self._size)
        if self._replay is not None:
            drawn = self._replay.sample()
            if self._settings.arrays == "jax":  # they stay on the device, but for numbers of 64 bits
                self._batch.update({name: self._opened(name, drawn[name]) for name in self._batch})
            else:
                self._fill(jax.device_get(drawn), 0)
            return self._batch
        filled = 0
        while filled < self._size:
            rows = self._parts.pop(0)
            taken = min(self._size - filled, _count(rows))
            self._fill({name: values[:taken] for name, values in rows.items()}, filled)
            if taken < _count(rows):
                self._parts.insert(0, {name: values[taken:] for name, values in rows.items()})
            filled += taken
        return self._batch

    def _fill(self, rows: Rows, start: int) -> None:
        to = slice(start, start + _count(rows))
        for name, values in self._batch.items():
            values[to] = self._opened(name, rows[name])

    def _opened(self, name: str, part: Any) -> Any:
        """A field as callbacks get it, from rows as they are stored."""
        if name in ("game", "version"):
            return np.ascontiguousarray(part).view(np.int64)[:, 0]
        if name == "planes":
            return unpack_planes(part, self._form.planes_shape)
        return part.astype(numpy_dtype(part.dtype))


def _count(rows: Rows) -> int:
    return len(next(iter(rows.values())))


class ReplayedRows:
    """The newest rows on the device (data/store/buffer.py), drawn uniformly and with replacement."""

    def __init__(self, blank: Rows, capacity: int, size: int, seed: int) -> None:
        """`blank` has as many rows as a game can have, of zeros; `size` is that of a batch. Compiles everything."""
        self._key = jax.random.key(seed)
        self._blank = {name: values[:capacity] for name, values in blank.items()}
        try:
            rows = {name: jnp.zeros((capacity, *values.shape[1:]), values.dtype) for name, values in blank.items()}
            self._ring = jax.block_until_ready(buffer.empty(rows))
        except jax.errors.JaxRuntimeError as error:
            raise OptionError(f"replay_rows: there is no memory for {capacity:,} rows; use fewer") from error
        self._append = program.compiled(buffer.append, self._ring, self._blank, np.int32(0), donate=0)
        draw = partial(buffer.sample, batch=size, window=capacity)
        self._draw = program.compiled(draw, self._ring, self._key)

    def add(self, rows: Rows) -> None:
        """Add rows, the oldest first; if there are more than fit, the newest are kept."""
        room, block = _count(self._blank), {name: values.copy() for name, values in self._blank.items()}
        newest = min(_count(rows), room)
        for name, values in rows.items():
            block[name][:newest] = values[len(values) - newest :]
        self._ring = self._append(self._ring, block, np.int32(newest))

    def sample(self) -> dict[str, Any]:
        self._key, now = jax.random.split(self._key)
        return self._draw(self._ring, now)
