"""The history of the games being played, and the rows that are made from it when they are over, all on the device."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float16, Float32, Int, Int8, Int16, Int32, Shaped, UInt8, UInt32

from tengen.data.format import rows as row_blocks
from tengen.data.format.katago_writing import FUTURES, SCORE
from tengen.data.format.lc0_writing import FACTS, POLICY
from tengen.data.format.rows import TARGET_WEIGHTS, RowFormat, Rows, pack_planes
from tengen.games.core import Game, Observation
from tengen.selfplay.openings import PreparedGames


class History(NamedTuple):
    """B games of at most M moves; entries beyond a game's moves mean nothing."""

    ply: Int32[Array, " batch"]  # moves made so far
    opening: Int32[Array, " batch"]  # how many of them were random
    seed: UInt32[Array, "batch 2"]  # how the game began, see `start_of`
    action: Int16[Array, "batch moves"]
    player: Int8[Array, "batch moves"]  # who made it
    value: Float[Array, "batch moves"]  # the search's, for that player; 0 in the opening
    score: Float32[Array, "batch moves"] | None  # the same in points; None where rows do not need it
    surprise: Float16[Array, "batch moves"]  # how far the search's policy is from the network's, see `SearchResult`
    full: Bool[Array, "batch moves"]  # by a full search
    searched: Bool[Array, "batch moves"]  # not in the opening
    planes: UInt8[Array, "batch moves bytes"] | None  # the player's observation, packed; None where no rows are wanted
    scalars: Float32[Array, "batch moves scalars"] | None
    policy: Float16[Array, "batch moves actions"] | None  # the search's; -1 for illegal moves if rows need to know them
    facts: dict[str, Array]  # Float32[B, M]: what else rows need to know of the searches, see lc0_writing.FACTS


class Moment(NamedTuple):
    """One move of every game."""

    action: Int[Array, " batch"]
    player: Int[Array, " batch"]
    value: Float[Array, " batch"]
    surprise: Float[Array, " batch"]
    full: Bool[Array, " batch"]
    observation: Observation
    policy: Float[Array, "batch actions"]
    facts: dict[str, Array]
    score: Float[Array, " batch"] | None = None


def blank(row_format: RowFormat | None, games: int, moves: int) -> History:
    """The history of games in which nothing has happened; without a row format, observations are not kept."""
    table = (games, moves)

    def field(name: str, dtype: Any) -> Array | None:
        return None if row_format is None else jnp.zeros((*table, *row_format.fields[name].shape), dtype)

    return History(
        ply=jnp.zeros(games, jnp.int32),
        opening=jnp.zeros(games, jnp.int32),
        seed=jnp.zeros((games, 2), jnp.uint32),
        action=jnp.full(table, -1, jnp.int16),
        player=jnp.zeros(table, jnp.int8),
        value=jnp.zeros(table, jnp.float16),
        score=jnp.zeros(table, jnp.float32) if row_format and SCORE in row_format.fields else None,
        surprise=jnp.zeros(table, jnp.float16),
        full=jnp.zeros(table, bool),
        searched=jnp.zeros(table, bool),
        planes=field("planes", jnp.uint8),
        scalars=field("scalars", jnp.float32),
        policy=field("policy", jnp.float16),
        facts={name: jnp.zeros(table, jnp.float32) for name in FACTS if row_format and name in row_format.fields},
    )


def begun(history: History, openings: PreparedGames, which: Bool[Array, " batch"]) -> History:
    """Replace the games `which` by new ones."""
    moves = history.action.shape[1] - openings.actions.shape[1]
    actions = jnp.pad(openings.actions, ((0, 0), (0, moves)), constant_values=-1)
    return history._replace(
        ply=jnp.where(which, openings.length, history.ply),
        opening=jnp.where(which, openings.length, history.opening),
        seed=jnp.where(which[:, None], openings.seed, history.seed),
        action=jnp.where(which[:, None], actions, history.action),
        value=jnp.where(which[:, None], 0, history.value),
        full=history.full & ~which[:, None],
        searched=history.searched & ~which[:, None],
    )


def remember(history: History, moment: Moment, which: Bool[Array, " batch"]) -> History:
    """Add one move to the games `which`."""
    games, moves = history.action.shape
    at = jnp.arange(games), jnp.where(which, history.ply, moves)  # writes beyond the table are dropped

    def put(table: Array, new: Array) -> Array:
        return table.at[at].set(new.astype(table.dtype), mode="drop")

    same = ("action", "player", "value", "surprise", "full")
    history = history._replace(
        ply=history.ply + which,
        score=None if history.score is None or moment.score is None else put(history.score, moment.score),
        searched=put(history.searched, jnp.ones(games, bool)),
        **{name: put(getattr(history, name), getattr(moment, name)) for name in same},
    )
    if history.planes is None or history.scalars is None or history.policy is None:
        return history
    return history._replace(
        planes=put(history.planes, pack_planes(moment.observation.planes)),
        scalars=put(history.scalars, moment.observation.scalars),
        policy=put(history.policy, moment.policy),
        facts={name: put(known, moment.facts[name]) for name, known in history.facts.items()},
    )


def make_rows(
    game: Game,
    row_format: RowFormat,
    history: History,
    last: Any,
    number: UInt32[Array, "ended 2"],
    cheap_weight: float = 0.0,
    surprise_share: float = 0.0,
    value_horizon: float = 0.0,
) -> tuple[Rows, Bool[Array, " rows"], Bool[Array, " rows"]]:
    """The rows [E * M, ...] of E finished games; which of them are learned from, and which only written.

    `last` are their final states, `number` their names.
    """
    assert history.policy is not None
    games, moves = history.action.shape
    length = history.ply
    ply = jnp.broadcast_to(jnp.arange(moves), (games, moves))
    inside = (ply < length[:, None]) & history.searched
    full = history.full & inside
    sign = 1 - 2 * history.player.astype(jnp.float32)
    result = jax.vmap(game.returns)(last)[:, :1] * sign
    outcome = jnp.stack([jnp.maximum(result, 0), 1 - jnp.abs(result), jnp.maximum(-result, 0)], -1)
    searched = jnp.maximum(history.policy, 0)
    policy = jnp.where(full[..., None], searched, 0)
    rows: Rows = {
        "planes": history.planes,
        "scalars": history.scalars,
        "policy": policy,
        "policy_weight": full.astype(jnp.float32),
        "outcome": outcome,
        "search_value": sign * _values(sign * history.value.astype(jnp.float32), sign * result, length, value_horizon),
        "to_play": history.player,
        "ply": ply.astype(jnp.int16),
        "moves_left": (length[:, None] - ply).astype(jnp.int16),
        "weight": jnp.where(full, _weight(history.surprise, full, surprise_share), cheap_weight),
        "game": jnp.broadcast_to(number[:, None], (games, moves, 2)),
    }
    if "opponent_policy" in row_format.extras:
        other = full & (history.player != jnp.roll(history.player, 1, 1))  # the reply must be the opponent's
        rows["opponent_policy"] = _next(jnp.where(other[..., None], searched, 0))
        rows["opponent_weight"] = _next(other.astype(jnp.float32))
    rows |= {name: jnp.ones((games, moves), jnp.float32) for name in TARGET_WEIGHTS if name in row_format.fields}
    if FUTURES.keys() & row_format.fields.keys():
        rows |= _futures(game, history, last, ply, sign)
    rows |= history.facts | {POLICY: history.policy, SCORE: history.score}
    wanted = [target for target in game.extra_targets if target.name in row_format.fields]
    targets = jax.vmap(game.final_targets)(last) if wanted else {}
    rows |= {target.name: target.seen_by(targets[target.name], history.player) for target in wanted}
    kept = full if cheap_weight == 0 else inside
    others = inside & ~kept if history.facts else jnp.zeros_like(kept)
    count, fields = games * moves, row_format.fields.items()
    flat = {name: rows[name].reshape(count, *field.shape).astype(field.dtype) for name, field in fields}
    return flat, kept.reshape(-1), others.reshape(-1)


def _values(
    value: Float32[Array, "ended moves"],
    result: Float32[Array, "ended moves"],
    length: Int[Array, " ended"],
    horizon: float,
) -> Float32[Array, "ended moves"]:
    """Averages of a search's value and of the values of later searches, which end in the result.

    Values and results are those of player 0. An entry counts less the later it is, by a factor of h / (1 + h) per ply.
    """
    value = jnp.clip(value, -1, 1)
    if horizon == 0:
        return value
    moves = value.shape[1]
    ply, decay = np.arange(moves), horizon / (1 + horizon)
    later = ply[:, None] - ply  # how much later the entry of the row is than that of the column
    share = np.where(later >= 0, (1 - decay) * decay ** np.maximum(later, 0), 0).astype(np.float32)
    known = jnp.where(ply < length[:, None], value, 0)
    rest = decay ** jnp.maximum(length[:, None] - ply, 0)
    return jnp.clip(jnp.matmul(known, share, precision="highest") + rest * result, -1, 1)


def _weight(
    surprise: Float[Array, "ended moves"], full: Bool[Array, "ended moves"], share: float
) -> Float32[Array, "ended moves"]:
    """The weights of the rows, 1 on average over those of a game that had a full search."""
    known = jnp.where(full, surprise.astype(jnp.float32), 0)
    average = known.sum(1, keepdims=True) / jnp.maximum(full.sum(1, keepdims=True), 1)
    return 1 - share + share * jnp.where(average > 0, known / jnp.where(average > 0, average, 1), 1)


def _futures(
    game: Game, history: History, last: Any, ply: Int[Array, "ended moves"], sign: Float32[Array, "ended moves"]
) -> Rows:
    """The mover's stones (1) and the opponent's (-1) some turns later, or at the end; planes 1 and 2 show stones."""
    assert history.planes is not None
    height, width, planes = game.planes_shape
    first = np.arange(height * width) * planes + 1  # the bit of each point's first colour
    own, other = (history.planes[..., bit // 8] >> (7 - bit % 8).astype(np.uint8) & 1 for bit in (first, first + 1))
    stones = (own.astype(jnp.int8) - other.astype(jnp.int8)) * sign.astype(jnp.int8)[..., None]
    seen = jax.vmap(game.observe)(last).planes.reshape(len(stones), -1, planes).astype(jnp.int8)
    ends = (seen[..., 1] - seen[..., 2]) * (1 - 2 * jax.vmap(game.to_play)(last)[:, None]).astype(jnp.int8)
    found = {}
    for name, turns in FUTURES.items():
        place = ply + turns
        there = jnp.take_along_axis(stones, jnp.minimum(place, stones.shape[1] - 1)[..., None], 1)
        later = jnp.where((place < history.ply[:, None])[..., None], there, ends[:, None])
        found[name] = later * sign.astype(jnp.int8)[..., None]
    return found


def _next(table: Shaped[Array, "ended moves ..."]) -> Shaped[Array, "ended moves ..."]:
    """The entries of the following ply; zeros after the last one."""
    return jnp.concatenate([table[:, 1:], jnp.zeros_like(table[:, :1])], 1)


class Finished(NamedTuple):
    """Blocks of which the first `rows_count` rows and `games_count` games are real.

    On the device, the last `others_count` rows are real too: they are written, but not learned from. On the host, they
    follow the other rows.
    """

    rows: Rows  # [R, ...]
    rows_count: Int32[Array, ""]
    others_count: Int32[Array, ""]
    number: UInt32[Array, "games 2"]  # names of the games
    seed: UInt32[Array, "games 2"]  # see `start_of`
    action: Int16[Array, "games moves"]
    value: Float[Array, "games moves"]  # for the player who moved; 0 in the opening
    length: Int32[Array, " games"]
    opening: Int32[Array, " games"]  # how many of the moves were random
    result: Float32[Array, " games"]  # for player 0
    extra: dict[str, Array]  # [G, ...]: facts for the record, see Game.record_facts
    games_count: Int32[Array, ""]
    score: Float32[Array, "games moves"] | None = None  # `value` in points, if rows need it

    def room(self, rows: int, games: int) -> Bool[Array, ""]:
        """Whether this many more rows and games fit."""
        enough = self.rows_count + self.others_count + rows <= len(self.rows["ply"])
        return enough & (self.games_count + games <= len(self.length))


class FinishedGames(NamedTuple):
    """Games that are over, as `Finished` keeps them; those marked `real` exist."""

    rows: Rows  # [rows, ...]: as many for each game as it can have moves
    kept: Bool[Array, " rows"]
    others: Bool[Array, " rows"]  # only written
    number: UInt32[Array, "games 2"]
    seed: UInt32[Array, "games 2"]
    action: Int16[Array, "games moves"]
    value: Float[Array, "games moves"]
    length: Int32[Array, " games"]
    opening: Int32[Array, " games"]
    result: Float32[Array, " games"]
    extra: dict[str, Array]
    real: Bool[Array, " games"]
    score: Float32[Array, "games moves"] | None = None


def finish(
    game: Game,
    row_format: RowFormat | None,
    history: History,
    last: Any,
    number: UInt32[Array, "ended 2"],
    extra: dict[str, Array],
    real: Bool[Array, " ended"],
    **weighing: float,
) -> FinishedGames:
    """Games that ended in the states `last` [E, ...]; without a row format, they have no rows.

    `weighing` are settings of `make_rows`.
    """
    rows, kept, others = {}, jnp.zeros(0, bool), jnp.zeros(0, bool)
    if row_format is not None:
        rows, kept, others = make_rows(game, row_format, history, last, number, **weighing)
        kept, others = (which & jnp.repeat(real, game.max_moves) for which in (kept, others))
    return FinishedGames(
        rows=rows,
        kept=kept,
        others=others,
        number=number,
        seed=history.seed,
        action=history.action,
        value=history.value,
        score=history.score,
        length=history.ply,
        opening=history.opening,
        result=jax.vmap(game.returns)(last)[:, 0],
        extra=extra,
        real=real,
    )


def empty(row_format: RowFormat, rows: int, games: int, moves: int, extra: dict[str, Any]) -> Finished:
    """Empty blocks for that many rows and games; `extra` holds the shapes of one game's facts."""
    nothing = jnp.int32(0)
    return Finished(
        rows=row_blocks.blank(row_format, rows, jnp),
        rows_count=nothing,
        others_count=nothing,
        number=jnp.zeros((games, 2), jnp.uint32),
        seed=jnp.zeros((games, 2), jnp.uint32),
        action=jnp.full((games, moves), -1, jnp.int16),
        value=jnp.zeros((games, moves), jnp.float16),
        score=jnp.zeros((games, moves), jnp.float32) if SCORE in row_format.fields else None,
        length=jnp.zeros(games, jnp.int32),
        opening=jnp.zeros(games, jnp.int32),
        result=jnp.zeros(games, jnp.float32),
        extra=jax.tree.map(lambda shape: jnp.zeros((games, *shape.shape), shape.dtype), extra),
        games_count=nothing,
    )


def add(finished: Finished, ended: FinishedGames) -> Finished:
    """Append these games and rows, for which there must be room."""

    def places(which: Array, start: Array, size: int) -> Array:
        return jnp.where(which, start + jnp.cumsum(which) - 1, size)  # unwanted ones are dropped

    size = len(finished.rows["ply"])
    row = places(ended.kept, finished.rows_count, size)
    row = jnp.where(ended.others, size - 1 - places(ended.others, finished.others_count, size), row)
    game = places(ended.real, finished.games_count, len(finished.length))

    def at(place: Array) -> Any:
        return lambda table, new: table.at[place].set(new.astype(table.dtype), mode="drop")

    names = ("number", "seed", "action", "value", "score", "length", "opening", "result", "extra")
    tables = {name: jax.tree.map(at(game), getattr(finished, name), getattr(ended, name)) for name in names}
    return finished._replace(
        rows=jax.tree.map(at(row), finished.rows, ended.rows),
        rows_count=finished.rows_count + ended.kept.sum(dtype=jnp.int32),
        others_count=finished.others_count + ended.others.sum(dtype=jnp.int32),
        games_count=finished.games_count + ended.real.sum(dtype=jnp.int32),
        **tables,
    )
