"""Every row seen through a random symmetry of its game, inside a compiled function."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.games.core import Game


class SymmetryTables(NamedTuple):
    """The symmetries of a game as tables to gather by: one pass over a batch, whatever symmetry each row gets.

    K is the number of board sizes, the game's own first; smaller ones lie in its top left corner.
    """

    sizes: np.ndarray  # Int32[K]: how many points a board has
    points: np.ndarray  # Int32[K, G, H * W]: the point that comes to each point
    actions: np.ndarray  # Int32[K, G, 2, A]: the action of that player which becomes each action
    scalars: tuple[Callable[[Array], Array], ...]  # G functions Float32[S] -> Float32[S]
    per_point: tuple[str, ...]  # targets that move with the board
    per_action: tuple[str, ...]  # targets that move with the mover's actions


def tables(game: Game, smaller: Sequence[Game] = ()) -> SymmetryTables:
    """The symmetries of the game, and of the same game on smaller boards (Go's, with actions as Go has them)."""
    each = [_own(game), *(_widened(_own(other), other.planes_shape[:2], game) for other in smaller)]
    return SymmetryTables(
        np.asarray([other.planes_shape[0] * other.planes_shape[1] for other in (game, *smaller)], np.int32),
        np.stack([points for points, _ in each]),
        np.stack([actions for _, actions in each]),
        tuple(symmetry.scalars for symmetry in game.symmetries),
        tuple(target.name for target in game.extra_targets if target.per == "point"),
        tuple(target.name for target in game.extra_targets if target.per == "action"),
    )


def _own(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """Points and actions of `SymmetryTables`, of one size."""
    height, width, _ = game.planes_shape
    numbers: Any = np.arange(height * width, dtype=np.int32).reshape(height, width)  # NumPy, as nothing is compiled
    return (
        np.stack([np.asarray(symmetry.board(numbers)).reshape(-1) for symmetry in game.symmetries]),
        np.stack([symmetry.inverse for symmetry in game.symmetries]),
    )


def _widened(own: tuple[np.ndarray, np.ndarray], shape: tuple[int, int], game: Game) -> tuple[np.ndarray, np.ndarray]:
    """The same with the board in the top left corner of the game's; what is not on it stays where it is."""
    points, actions = own
    height, width, _ = game.planes_shape
    place = np.arange(height * width, dtype=np.int32).reshape(height, width)[: shape[0], : shape[1]].reshape(-1)
    others = actions.shape[-1] - len(place)
    action = np.concatenate([place, np.arange(game.num_actions - others, game.num_actions, dtype=np.int32)])
    wide_points = np.tile(np.arange(height * width, dtype=points.dtype), (len(points), 1))
    wide_points[:, place] = place[points]
    wide_actions = np.tile(np.arange(game.num_actions, dtype=actions.dtype), (*actions.shape[:2], 1))
    wide_actions[..., action] = action[actions]
    return wide_points, wide_actions


def apply_random(tables: SymmetryTables, batch: Mapping[str, Array], key: Array) -> dict[str, Array]:
    if len(tables.scalars) == 1:
        return dict(batch)
    chosen = jax.random.randint(key, batch["weight"].shape, 0, len(tables.scalars))
    return apply(tables, batch, chosen)


def apply(tables: SymmetryTables, batch: Mapping[str, Array], chosen: Array) -> dict[str, Array]:
    """The batch with row i through symmetry chosen[i], Int32[B]. Planes are Bool[B, H, W, C], unpacked.

    What lies on the board and what is a number per action moves; everything else stays.
    """
    found = dict(batch)
    if len(tables.sizes) == 1:
        size: Any = 0
    else:
        count = batch["planes"][..., 0].sum((1, 2), dtype=jnp.int32)
        size = jnp.argmax(count[:, None] == jnp.asarray(tables.sizes), -1)
    points = jnp.asarray(tables.points)[size, chosen]
    for name in ("planes", *tables.per_point):
        if name in batch:
            flat = batch[name].reshape(*points.shape, -1)
            found[name] = jnp.take_along_axis(flat, points[:, :, None], 1).reshape(batch[name].shape)
    mover = batch["to_play"].astype(jnp.int32)
    actions = jnp.asarray(tables.actions)
    for name in ("policy", "opponent_policy", *tables.per_action):
        if name in batch:
            who = 1 - mover if name == "opponent_policy" else mover
            found[name] = jnp.take_along_axis(batch[name], actions[size, chosen, who], 1)
    if batch["scalars"].shape[1]:
        # Few numbers, so all symmetries are computed and one is taken.
        every = jnp.stack([jax.vmap(function)(batch["scalars"]) for function in tables.scalars], 1)
        found["scalars"] = jnp.take_along_axis(every, chosen[:, None, None], 1)[:, 0]
    return found
