"""Finished games as they leave the device: their rows, moves and results."""

import datetime
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.data.format.katago_writing import SCORE
from tengen.data.format.rows import RowFormat, Rows, blank
from tengen.data.records.moves import start_of
from tengen.data.records.records import Record
from tengen.games.core import Game
from tengen.selfplay.history import History, make_rows

_FEW = 256  # entries that are fetched at least, if there are as many


class Finished(NamedTuple):
    """Blocks of which the first `rows_count` rows and `games_count` games are real.

    On the device, the last `others_count` rows are real too: they are written, but not learned from. On the host, they
    follow the other rows.
    """

    rows: Rows  # [R, ...]
    rows_count: Array  # Int32
    others_count: Array  # Int32
    number: Array  # UInt32[G, 2]: names of the games
    seed: Array  # UInt32[G, 2]: see `start_of`
    action: Array  # Int16[G, M]
    value: Array  # Float16[G, M]: for the player who moved; 0 in the opening
    length: Array  # Int32[G]
    opening: Array  # Int32[G]: how many of the moves were random, or of the game that it branched off
    result: Array  # Float32[G]: for player 0
    extra: dict[str, Array]  # [G, ...]: facts for the record, see Game.record_facts
    games_count: Array  # Int32
    score: Array | None = None  # Float32[G, M]: `value` in points, if rows need it

    def room(self, rows: int, games: int) -> Array:
        """Bool: whether this many more rows and games fit."""
        enough = self.rows_count + self.others_count + rows <= len(self.rows["ply"])
        return enough & (self.games_count + games <= len(self.length))


class FinishedGames(NamedTuple):
    """E games that are over, as `Finished` keeps them; those marked `real` (Bool[E]) exist."""

    rows: Rows  # [E * M, ...]
    kept: Array  # Bool[E * M]
    others: Array  # Bool[E * M]: only written
    number: Array
    seed: Array
    action: Array
    value: Array
    length: Array
    opening: Array
    result: Array
    extra: dict[str, Array]
    real: Array
    score: Array | None = None


def finish(
    game: Game,
    row_format: RowFormat | None,
    history: History,
    last: Any,
    number: Array,
    extra: dict[str, Array],
    real: Array,
    **weighing: float,
) -> FinishedGames:
    """E games that ended in the states `last` [E, ...]; without a row format, they have no rows.

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


def record_of(
    game: Game, finished: Finished | FinishedGames, place: int, players: tuple[str, str], **more: Any
) -> Record:
    """The record of one of these games, whose arrays are on the host; `more` are further fields of the record."""
    length, opening = int(finished.length[place]), int(finished.opening[place])
    facts = {name: float(values[place]) for name, values in finished.extra.items()}
    return Record.of(
        game,
        finished.action[place, :length],
        komi=facts.get("komi"),
        values=tuple(None if ply < opening else float(finished.value[place, ply]) for ply in range(length)),
        players=players,
        result=float(finished.result[place]),
        score=facts.get("score"),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        opening=opening,
        start=start_of(game, finished.seed[place]),
        **more,
    )


def empty(row_format: RowFormat, rows: int, games: int, moves: int, extra: dict[str, Any]) -> Finished:
    """Empty blocks for that many rows and games; `extra` holds the shapes of one game's facts."""
    nothing = jnp.int32(0)
    return Finished(
        rows=blank(row_format, rows, jnp),
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


def on_host(finished: Finished) -> Finished:
    """The real rows and games as NumPy arrays."""
    counts = {name: getattr(finished, name) for name in ("rows_count", "others_count", "games_count")}
    rows, others, games = map(int, jax.device_get(list(counts.values())))
    tables = {name: table for name, table in finished._asdict().items() if name not in counts}
    found = {"rows": _fetched(tables.pop("rows"), rows), **_fetched(tables, games)}
    if others:
        last = _fetched(finished.rows, others, last=True)
        found["rows"] = {name: np.concatenate([values, last[name]]) for name, values in found["rows"].items()}
    return Finished(**found, rows_count=jnp.int32(rows), others_count=jnp.int32(others), games_count=jnp.int32(games))


def _fetched(tables: Any, count: int, *, last: bool = False) -> Any:
    """The first or last `count` entries of each table, on the host."""
    size = min(size for size in _sizes(tables) if size >= count)
    own = slice(-count, None) if last else slice(count)
    return jax.tree.map(lambda table: table[own], jax.device_get(_end(tables, -size if last else size)))


def fetching_programs(finished: Finished) -> Iterator[Any]:
    """The programs of `on_host` for blocks of these shapes, to be compiled ahead (`tengen.ahead`)."""
    tables = {name: table for name, table in finished._asdict().items() if not name.endswith("_count")}
    rows = tables.pop("rows")
    for each in (rows, tables):
        yield from (_end.lower(each, size) for size in _sizes(each))


def _sizes(tables: Any) -> list[int]:
    """The numbers of entries that are fetched: all, a quarter, ..., so that few programs are compiled."""
    found = [len(jax.tree.leaves(tables)[0])]
    while found[-1] > _FEW:
        found.append(-(-found[-1] // 4))
    return found


@partial(jax.jit, static_argnums=1)
def _end(tables: Any, size: int) -> Any:
    """The first entries of each table, or the last ones for a negative size."""
    return jax.tree.map(lambda table: table[:size] if size > 0 else table[size:], tables)
