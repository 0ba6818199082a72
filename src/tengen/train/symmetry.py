"""Every row seen through a random symmetry of its game, inside a compiled function."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.games.core import Game


class Tables(NamedTuple):
    """The symmetries of a game as tables to gather by: one pass over a batch, whatever symmetry each row gets."""

    points: np.ndarray  # Int32[G, H * W]: the point that comes to each point
    actions: np.ndarray  # Int32[G, 2, A]: the action of that player which becomes each action
    scalars: tuple[Callable[[Array], Array], ...]  # G functions Float32[S] -> Float32[S]


def tables(game: Game) -> Tables:
    """The symmetries of the game."""
    height, width, _ = game.planes_shape
    numbers = jnp.arange(height * width, dtype=jnp.int32).reshape(height, width)
    return Tables(
        np.stack([np.asarray(symmetry.board(numbers)).reshape(-1) for symmetry in game.symmetries]),
        np.stack([symmetry.inverse for symmetry in game.symmetries]),
        tuple(symmetry.scalars for symmetry in game.symmetries),
    )


def randomly(tables: Tables, batch: Mapping[str, Array], key: Array) -> dict[str, Array]:
    """The batch with each row through a symmetry of its own, drawn evenly."""
    if len(tables.scalars) == 1:
        return dict(batch)
    chosen = jax.random.randint(key, batch["weight"].shape, 0, len(tables.scalars))
    return through(tables, batch, chosen)


def through(tables: Tables, batch: Mapping[str, Array], chosen: Array) -> dict[str, Array]:
    """The batch with row i through symmetry chosen[i], Int32[B]. Planes are Bool[B, H, W, C], unpacked.

    What lies on the board and what is a number per action moves; everything else stays.
    """
    found = dict(batch)
    points = jnp.asarray(tables.points)[chosen]
    for name in ("planes", "ownership"):
        if name in batch:
            found[name] = _gather_points(batch[name], points)
    mover = batch["to_play"].astype(jnp.int32)
    actions = jnp.asarray(tables.actions)
    found["policy"] = jnp.take_along_axis(batch["policy"], actions[chosen, mover], 1)
    if "opponent_policy" in batch:
        found["opponent_policy"] = jnp.take_along_axis(batch["opponent_policy"], actions[chosen, 1 - mover], 1)
    if batch["scalars"].shape[1]:
        # Few numbers, so all symmetries are computed and one is taken.
        every = jnp.stack([jax.vmap(function)(batch["scalars"]) for function in tables.scalars], 1)
        found["scalars"] = jnp.take_along_axis(every, chosen[:, None, None], 1)[:, 0]
    return found


def _gather_points(x: Array, points: Array) -> Array:
    """[B, H, W, ...] of the same: the point at p comes from points[b, p]."""
    flat = x.reshape(len(x), points.shape[1], -1)
    return jnp.take_along_axis(flat, points[:, :, None], 1).reshape(x.shape)
