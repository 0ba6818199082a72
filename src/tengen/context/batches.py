"""What callbacks get: dicts of named arrays, whose memory is the same every time."""

from typing import Any

import numpy as np

from tengen.data.format.rows import RowFormat, unpack_planes
from tengen.games.core import Game

Reply = dict[str, np.ndarray]


class Batch(dict[str, Any]):
    """Named arrays, or facts about one game. `label` says for whom, `reply` is where the answer goes.

    Its arrays, and those of `reply`, belong to the context: they are good until the batch has been given back.
    """

    def __init__(self, label: str, values: dict[str, Any], reply: Reply | None = None) -> None:
        super().__init__(values)
        self.label = label
        self.reply: Reply = {} if reply is None else reply

    @property
    def count(self) -> int:
        """How many of the rows are real; the others repeat the last of them."""
        return int(self["count"]) if "count" in self else 1


def for_actor(label: str, game: Game, size: int) -> Batch:
    """Room for `size` positions to evaluate."""
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
    return Batch(label, values, reply)


def for_training(form: RowFormat, size: int) -> Batch:
    """Room for `size` rows of finished games: those of `form` as frameworks like them."""
    values: dict[str, np.ndarray] = {}
    for name, (shape, dtype) in form.fields.items():
        values[name] = np.zeros((size, *shape), np.float32 if dtype == np.float16 else dtype)
    values["planes"] = np.zeros((size, *form.planes_shape), bool)
    values["game"] = np.zeros(size, np.int64)
    values["version"] = np.zeros(size, np.int64)
    return Batch("train", values)


def pad(batch: Batch, count: int) -> None:
    """Say that `count` rows are real, and repeat the last of them: numbers that no network stumbles over."""
    batch["mask"][:] = np.arange(len(batch["mask"])) < count
    batch["count"][...] = count
    for name, values in batch.items():
        if name not in ("mask", "count"):
            values[count:] = values[count - 1]
    batch["game"][count:] = -1
    for values in batch.reply.values():
        values[:] = np.nan  # so that what is not answered is noticed


def untouched(batch: Batch) -> bool:
    """Whether nobody has written into `reply`."""
    return all(np.isnan(values).all() for values in batch.reply.values())


class Rows:
    """Rows of finished games that wait until there are enough for a batch."""

    def __init__(self, form: RowFormat) -> None:
        self._form = form
        self._parts: list[dict[str, np.ndarray]] = []
        self.count = 0

    def add(self, rows: dict[str, np.ndarray], number: int, versions: tuple[int, int]) -> None:
        """The rows of one game."""
        rows = dict(rows)
        rows["game"] = np.full(len(rows["ply"]), number, np.int64)
        rows["version"] = np.array(versions, np.int64)[rows["to_play"]]
        self._parts.append(rows)
        self.count += len(rows["ply"])

    def fill(self, batch: Batch) -> None:
        """Move the oldest rows into a batch; there must be enough."""
        size, filled = len(batch["ply"]), 0
        while filled < size:
            rows = self._parts.pop(0)
            taken = min(size - filled, len(rows["ply"]))
            for name, values in batch.items():
                part = rows[name][:taken]
                values[filled : filled + taken] = (
                    unpack_planes(part, self._form.planes_shape) if name == "planes" else part
                )
            if taken < len(rows["ply"]):
                self._parts.insert(0, {name: values[taken:] for name, values in rows.items()})
            filled += taken
        self.count -= size
