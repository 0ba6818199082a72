"""What has happened in the games that are being played, and what it teaches once they are over."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tengen.data.format.rows import RowFormat, Rows, pack_planes
from tengen.games.core import Game, Observation


class History(NamedTuple):
    """B games of at most M moves; entries beyond a game's moves mean nothing."""

    action: Array  # Int16[B, M]
    player: Array  # Int8[B, M]: who made it
    value: Array  # Float16[B, M]: what the search said, for that player; 0 in the opening
    full: Array  # Bool[B, M]: by a full search
    searched: Array  # Bool[B, M]: not in the opening
    planes: Array  # UInt8[B, M, bytes]: what the player saw, packed
    scalars: Array  # Float32[B, M, S]
    policy: Array  # Float16[B, M, A]: what the search said


class Moment(NamedTuple):
    """One move of every game; [B, ...]."""

    action: Array
    player: Array
    value: Array
    full: Array
    observation: Observation
    policy: Array


def blank(form: RowFormat, games: int, moves: int) -> History:
    """Of games in which nothing has happened."""
    table = (games, moves)
    fields = form.fields
    return History(
        action=jnp.full(table, -1, jnp.int16),
        player=jnp.zeros(table, jnp.int8),
        value=jnp.zeros(table, jnp.float16),
        full=jnp.zeros(table, bool),
        searched=jnp.zeros(table, bool),
        planes=jnp.zeros((*table, *fields["planes"].shape), jnp.uint8),
        scalars=jnp.zeros((*table, *fields["scalars"].shape), jnp.float32),
        policy=jnp.zeros((*table, *fields["policy"].shape), jnp.float16),
    )


def begun(history: History, actions: Array, which: Array) -> History:
    """Begin the games `which` (Bool[B]) anew, with the opening moves Int16[B, K]."""
    opening = jnp.pad(actions, ((0, 0), (0, history.action.shape[1] - actions.shape[1])), constant_values=-1)
    return history._replace(
        action=jnp.where(which[:, None], opening, history.action),
        value=jnp.where(which[:, None], 0, history.value),
        full=history.full & ~which[:, None],
        searched=history.searched & ~which[:, None],
    )


def remember(history: History, ply: Array, moment: Moment, which: Array) -> History:
    """With one more move, at `ply` Int32[B], of the games `which`."""
    games, moves = history.action.shape
    at = jnp.arange(games), jnp.where(which, ply, moves)  # writes beyond the table are dropped

    def put(table: Array, new: Array) -> Array:
        return table.at[at].set(new.astype(table.dtype), mode="drop")

    return History(
        action=put(history.action, moment.action),
        player=put(history.player, moment.player),
        value=put(history.value, moment.value),
        full=put(history.full, moment.full),
        searched=put(history.searched, jnp.ones(games, bool)),
        planes=put(history.planes, pack_planes(moment.observation.planes)),
        scalars=put(history.scalars, moment.observation.scalars),
        policy=put(history.policy, moment.policy),
    )


def teach(
    game: Game, form: RowFormat, history: History, last: Any, length: Array, number: Array, cheap_weight: float
) -> tuple[Rows, Array]:
    """The rows of E games that are over, [E * M, ...], and Bool[E * M] which of them there are.

    `last` are their final states, `length` Int32[E] their moves, `number` UInt32[E, 2] their names.
    """
    games, moves = history.action.shape
    ply = jnp.broadcast_to(jnp.arange(moves), (games, moves))
    inside = (ply < length[:, None]) & history.searched
    full = history.full & inside
    sign = 1 - 2 * history.player.astype(jnp.float32)
    result = jax.vmap(game.returns)(last)[:, :1] * sign
    outcome = jnp.stack([jnp.maximum(result, 0), 1 - jnp.abs(result), jnp.maximum(-result, 0)], -1)
    policy = jnp.where(full[..., None], history.policy, 0)
    rows: Rows = {
        "planes": history.planes,
        "scalars": history.scalars,
        "policy": policy,
        "policy_weight": full.astype(jnp.float32),
        "outcome": outcome,
        "search_value": jnp.clip(history.value.astype(jnp.float32), -1, 1),
        "to_play": history.player,
        "ply": ply.astype(jnp.int16),
        "moves_left": (length[:, None] - ply).astype(jnp.int16),
        "weight": jnp.where(full, 1.0, cheap_weight),
        "game": jnp.broadcast_to(number[:, None], (games, moves, 2)),
    }
    if "opponent_policy" in form.extras:
        other = full & (history.player != jnp.roll(history.player, 1, 1))  # the reply must be the opponent's
        rows["opponent_policy"] = _next(jnp.where(other[..., None], history.policy, 0))
        rows["opponent_weight"] = _next(other.astype(jnp.float32))
    if "ownership" in form.extras or "score" in form.extras:
        targets = jax.vmap(game.final_targets)(last)
        if "ownership" in form.extras:
            owned = targets["ownership"][:, None] * sign[..., None, None]
            rows["ownership"] = owned.astype(jnp.int8)
        if "score" in form.extras:
            rows["score"] = targets["score"][:, None] * sign
    kept = full if cheap_weight == 0 else inside
    count = games * moves
    flat = {name: rows[name].reshape(count, *field.shape).astype(field.dtype) for name, field in form.fields.items()}
    return flat, kept.reshape(-1)


def _next(table: Array) -> Array:
    """[E, M, ...]: what stands at the ply after; nothing after the last."""
    return jnp.concatenate([table[:, 1:], jnp.zeros_like(table[:, :1])], 1)
