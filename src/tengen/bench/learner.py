"""Learning: drawing a batch, symmetries, forward, backward, optimiser and averages, as in a run.

A sample costs three times what an evaluation costs: forward, and the gradients of inputs and weights.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array

from tengen import nets, train
from tengen.bench.figures import Figure
from tengen.bench.networks import game_of
from tengen.bench.timing import in_turn
from tengen.config.settings.train import TrainSettings
from tengen.data.format.rows import RowFormat, pack_planes
from tengen.data.store import buffer
from tengen.games.core import Game
from tengen.nets.building import build_for_device
from tengen.train.alpha_zero import from_buffer


def learning(
    net: nets.Network, game: Game, settings: TrainSettings, rows: int = 100_000, steps: int = 100
) -> Callable[[], Array]:
    learner = train.Learner(net, game, settings)
    form = RowFormat.of(game, net.spec.heads)
    filled = buffer.make(form, rows)
    filled = filled._replace(rows=random_rows(form, rows), filled=filled.filled + rows)
    data = jax.device_put((filled, rows), learner.everywhere)
    state, key = learner.start(net), jax.random.key(0)

    def take() -> Array:
        nonlocal state
        state, figures = learner.many(state, key, from_buffer, data, steps)
        return figures["loss"]

    return take


def figures(name: str, size: int, batch: int, steps: int, repeats: int) -> list[Figure]:
    """Samples and arithmetic per second of a network for Go with all its heads, in bfloat16 with AdamW."""
    game = game_of("go", size)
    net = build_for_device(nets.spec(name, nets.possible_heads(game)), game, jax.random.key(0))
    take = learning(net, game, TrainSettings(batch=batch), rows=max(20_000, batch), steps=steps)
    timing = in_turn({"steps": take}, repeats)["steps"]
    rate = batch * steps / timing.median
    what = f"{name} on {size}x{size}, batch {batch}"
    return [
        Figure(f"learning, {what}", rate, "samples/s", timing.noise),
        Figure(f"arithmetic of learning, {what}", 3e-12 * nets.operations(net, game) * rate, "TFLOP/s", timing.noise),
    ]


def random_rows(form: RowFormat, count: int) -> dict[str, Any]:
    """Rows in which every target is possible."""
    numbers = np.random.default_rng(0)
    rows = {name: np.zeros((count, *shape), dtype) for name, (shape, dtype) in form.fields.items()}
    planes = numbers.random((count, *form.planes_shape), np.float32) < 0.3
    planes[..., :1] = True
    rows["planes"] = pack_planes(planes)
    for name in ("policy", "opponent_policy"):
        if name in rows:
            drawn = numbers.exponential(size=rows[name].shape)
            rows[name] = (drawn / drawn.sum(1, keepdims=True)).astype(np.float16)
    for name in ("weight", "policy_weight", "opponent_weight"):
        if name in rows:
            rows[name] += 1
    rows["outcome"] = np.eye(3, dtype=np.float32)[numbers.integers(0, 3, count)]
    rows["to_play"] = numbers.integers(0, 2, count).astype(np.int8)
    rows["moves_left"] = numbers.integers(0, 80, count).astype(np.int16)
    if "ownership" in rows:
        rows["ownership"] = numbers.integers(-1, 2, rows["ownership"].shape).astype(np.int8)
    return rows
