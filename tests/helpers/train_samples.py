"""Rows full of random numbers, settings for tiny networks, and how to compile them quickly."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from tengen import nets, train
from tengen.data.format.rows import RowFormat, pack_planes
from tengen.games.core import Game

QUICK = {"xla_backend_optimization_level": 0}
BATCH = 8


def random_rows(game: Game, count: int, heads: tuple[nets.Head, ...] = (), seed: int = 0) -> dict[str, np.ndarray]:
    """Rows as `tengen.data.format.rows` describes them; every target is possible, none makes sense."""
    numbers = np.random.default_rng(seed)

    def policy() -> np.ndarray:
        return numbers.dirichlet(np.full(game.num_actions, 0.3), count).astype(np.float16)

    planes = numbers.random((count, *game.planes_shape)) < 0.4
    planes[..., :1] = True
    full = numbers.random(count) < 0.6
    every = {
        "planes": pack_planes(planes),
        "scalars": numbers.normal(size=(count, game.num_scalars)).astype(np.float32),
        "policy": np.where(full[:, None], policy(), np.float16(0)),
        "policy_weight": full.astype(np.float32),
        "outcome": np.eye(3, dtype=np.float32)[numbers.integers(0, 3, count)],
        "search_value": numbers.uniform(-1, 1, count).astype(np.float32),
        "to_play": numbers.integers(0, 2, count).astype(np.int8),
        "ply": np.arange(count, dtype=np.int16),
        "moves_left": numbers.integers(0, 60, count).astype(np.int16),
        "weight": numbers.uniform(0.2, 2, count).astype(np.float32),
        "game": np.zeros((count, 2), np.uint32),
        "opponent_policy": policy(),
        "opponent_weight": (numbers.random(count) < 0.8).astype(np.float32),
        "ownership": numbers.integers(-1, 2, (count, *game.planes_shape[:2])).astype(np.int8),
        "score": numbers.normal(0, 15, count).astype(np.float32),
    }
    fields = RowFormat.of(game, heads).fields
    others = {name: numbers.integers(0, 2, (count, *fields[name].shape)) for name in fields if name not in every}
    return {name: (every | others)[name].astype(field.dtype) for name, field in fields.items()}


def pick(data: dict[str, jax.Array], key: jax.Array, batch: int) -> dict[str, jax.Array]:
    """The sampler of these tests: any of the rows."""
    index = jax.random.randint(key, (batch,), 0, len(data["weight"]))
    return {name: values[index] for name, values in data.items()}


def tiny_settings(**changes: Any) -> train.TrainSettings:
    settings = train.TrainSettings(
        batch=BATCH,
        samples_per_row=2.0,
        average_decay=0.9,
        largest_debt=10**6,
        optimizer=train.OptimizerSettings(learning_rate=1e-2),
        schedule=train.ScheduleSettings(warmup=4),
    )
    return replace(settings, **changes)
