"""The batches that callbacks get: dicts of named arrays, whose memory is the same every time."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from tengen.context import device_rows
from tengen.context.group import EndedGame
from tengen.data.format.rows import RowFormat, unpack_planes
from tengen.data.records import sgf, text
from tengen.data.records.records import Record, RecordError
from tengen.games.core import Game
from tengen.selfplay.finished import record_of

Reply = dict[str, np.ndarray]
COLOURS = ("black", "white")
"""The names of players 0 and 1 here, whatever the game calls them."""


class Batch(dict[str, Any]):
    """Named arrays, or facts about one game. `label` names the callback, `reply` is where the answer goes.

    Its arrays, and those of `reply`, belong to the context: they are valid until the batch has been given back.
    """

    def __init__(self, label: str, values: dict[str, Any], reply: Reply | None = None, on_device: bool = False) -> None:
        super().__init__(values)
        self.on_device = on_device  # planes and scalars are JAX arrays, and so are the replies
        self.label = label
        self.reply: Reply = {} if reply is None else reply

    @property
    def count(self) -> int:
        """How many rows are real; the others repeat the last of them."""
        return int(self["count"]) if "count" in self else 1


def for_actor(label: str, game: Game, size: int, on_device: bool = False) -> Batch:
    """Room for `size` positions to evaluate; planes, scalars and replies may stay on the device."""
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
    reply = {"policy": np.zeros((size, game.num_actions), np.float32), "value": np.zeros(size, np.float32)}
    if on_device:
        values |= {name: jnp.asarray(values[name]) for name in ("planes", "scalars")}
    return Batch(label, values, reply, on_device)


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
    """SGF for Go, plain text for others; None for a game that `games.make` does not know."""
    try:
        return (sgf if record.game == "go" else text).write([record])
    except RecordError:
        return None


def pad(batch: Batch, count: int) -> None:
    """Mark the first `count` rows as real, and repeat the last of them: padding that suits every network."""
    batch["mask"][:] = np.arange(len(batch["mask"])) < count
    batch["count"][...] = count
    for name, values in batch.items():
        if name not in ("mask", "count") and isinstance(values, np.ndarray):
            values[count:] = values[count - 1]
    if batch.on_device:
        batch.update(device_rows.pad({name: batch[name] for name in ("planes", "scalars")}, count))
    batch["game"][count:] = -1
    forget(batch)


def forget(batch: Batch) -> None:
    """Remove the reply, so that missing answers are noticed."""
    for name, values in batch.reply.items():
        batch.reply[name] = np.full(values.shape, np.nan, np.float32) if batch.on_device else values
        batch.reply[name][:] = np.nan


def untouched(batch: Batch) -> bool:
    """Whether nothing has been written into `reply`."""
    return all(np.isnan(values).all() for values in batch.reply.values())


class TrainRows:
    """Rows of finished games that wait until there are enough for a batch, and that batch."""

    def __init__(self, row_format: RowFormat, size: int) -> None:
        self._format, self._size = row_format, size
        values: dict[str, np.ndarray] = {}
        for name, (shape, dtype) in row_format.fields.items():
            values[name] = np.zeros((size, *shape), np.float32 if dtype == np.float16 else dtype)
        values["planes"] = np.zeros((size, *row_format.planes_shape), bool)
        values["game"] = np.zeros(size, np.int64)
        values["version"] = np.zeros(size, np.int64)
        self._batch = Batch("train", values)
        self._parts: list[dict[str, np.ndarray]] = []
        self._count = 0

    def add(self, ended: EndedGame) -> None:
        """Add the rows of one game."""
        rows = {name: values[ended.finished.kept] for name, values in ended.finished.rows.items()}
        rows["game"] = np.full(len(rows["ply"]), ended.number, np.int64)
        rows["version"] = np.array(ended.versions, np.int64)[rows["to_play"]]
        self._parts.append(rows)
        self._count += len(rows["ply"])

    def next(self) -> Batch | None:
        """A batch of the oldest rows, or None if there are not enough."""
        if self._count < self._size:
            return None
        filled = 0
        while filled < self._size:
            rows = self._parts.pop(0)
            taken = min(self._size - filled, len(rows["ply"]))
            for name, values in self._batch.items():
                part = rows[name][:taken]
                values[filled : filled + taken] = (
                    unpack_planes(part, self._format.planes_shape) if name == "planes" else part
                )
            if taken < len(rows["ply"]):
                self._parts.insert(0, {name: values[taken:] for name, values in rows.items()})
            filled += taken
        self._count -= self._size
        return self._batch
