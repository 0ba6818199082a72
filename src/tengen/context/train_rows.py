"""Batches of rows to learn from: each row once, in order, or drawn from the newest."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen.context import program
from tengen.context.batches import Batch, EndedGame
from tengen.context.listeners import Listener, Shapes, numpy_dtype
from tengen.context.settings import ContextSettings
from tengen.data.format.rows import RowFormat, unpack_planes
from tengen.data.store import buffer
from tengen.errors import OptionError
from tengen.train.base import Bucket

Rows = dict[str, np.ndarray]


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
        """Add the rows of one game."""
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
        """The rows of a batch, on the device."""
        self._key, now = jax.random.split(self._key)
        return self._draw(self._ring, now)
