"""The positions that a group of games needs evaluated, and the answers, as the host sees them."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen.context import device_rows
from tengen.context.batches import Batch
from tengen.context.thinking import LeafQuery


class Questions:
    """K positions of each of G games, [G * K, ...]. Not safe for two threads at the same time."""

    def __init__(self, rows: int, leaves: int, num_actions: int, fields: frozenset[str], on_device: bool) -> None:
        """`fields`: those that some batch holds; with `on_device` observations, features and answers stay there."""
        self._leaves, self._fields, self._on_device = leaves, fields, on_device
        self._shown: dict[str, np.ndarray] = {}  # by the names of a batch
        self._arrays: dict[str, Any] = {}  # the observation, on the device if it stays there
        self._features: dict[str, dict[str, Any]] = {}  # label -> the arrays that its function of states gives
        zeros = jnp.zeros if on_device else np.zeros
        self.logits: Any = zeros((rows, num_actions), np.float32)
        self.value: Any = zeros(rows, np.float32)
        self.wanted = np.zeros(0, np.int64)  # rows that have to be evaluated
        self.missing = 0  # how many of them are not yet

    def ask(self, query: LeafQuery, ply: Any, features: dict[str, dict[str, Any]]) -> None:
        """Replace the positions by those of a query. `ply` Int32[G * K]: the moves made in their games."""
        arrays = dict(zip(("planes", "scalars"), query.observation, strict=True))
        arrays = {name: values for name, values in arrays.items() if name in self._fields}
        if not self._on_device:
            arrays, features = jax.device_get((arrays, features))
        self._arrays, self._features = arrays, features
        wanted, legal, player, colour, ply = jax.device_get(
            (query.wanted, query.legal, query.player, query.colour, ply)
        )
        shown = {"legal": legal, "player": player.astype(np.int8), "colour": colour.astype(np.int8), "ply": ply}
        self._shown = shown
        self.wanted = np.flatnonzero(wanted)
        self.missing = len(self.wanted)

    def show(self, rows: np.ndarray, batch: Batch, start: int, number: np.ndarray, version: np.ndarray) -> None:
        """Copy these rows into a batch, from the row `start` on.

        `number` Int64[G] are the numbers of the games, `version` Int64[2, G] the versions of both colours in them.
        """
        to, places = slice(start, start + len(rows)), rows // self._leaves
        arrays = self._arrays | self._features.get(batch.label, {})
        if self._on_device:
            before = {name: batch[name] for name in batch.device_fields}
            batch.update(device_rows.place(before, {name: arrays[name] for name in before}, rows, start))
            arrays = {}
        for name, values in (self._shown | arrays).items():
            if name in batch:
                np.take(values, rows, 0, out=batch[name][to], mode="clip")  # which is not buffered
        batch["version"][to] = version[self._shown["colour"][rows], places]
        if "game" in batch:
            batch["game"][to] = number[places]

    def hear(self, rows: np.ndarray, reply: Mapping[str, Any], start: int) -> None:
        """Store the answers for these rows: those of a batch's reply from `start` on."""
        policy, value = reply["policy"], reply["value"]
        if self._on_device:
            before = (self.logits, self.value)
            self.logits, self.value = device_rows.hear(before, (policy, value), rows, start)
        else:
            self.logits[rows] = policy[start : start + len(rows)]
            self.value[rows] = value[start : start + len(rows)]
        self.missing -= len(rows)

    def of_colour(self, colour: int) -> np.ndarray:
        """The rows among `wanted` in which that player thinks."""
        return self.wanted[self._shown["colour"][self.wanted] == colour]
