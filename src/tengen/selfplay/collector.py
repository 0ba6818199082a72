"""Finished games on the host, and how they get into files: chunks of rows, and records of games."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from tengen.config.settings.data import DataSection
from tengen.data.format import katago, katago_writing, lc0_writing
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat, Rows, count_games
from tengen.data.records.moves import start_of
from tengen.data.records.records import Record, file_name, save_records
from tengen.data.store.store import Store
from tengen.data.store.writer import Writer
from tengen.games.core import Game
from tengen.selfplay.history import Finished, FinishedGames
from tengen.selfplay.opponents import NOBODY, Opponent

_RECORDS = 50  # games in a file
_FEW = 256  # entries that are fetched at least, if there are as many
BINS = 10
"""Bins of the values from -1 to 1 in the calibration."""


@dataclass(frozen=True)
class GameTally:
    """Results and lengths of all games so far, and how well the values of the searches predicted the results.

    The bins of the calibration go from the lowest values to the highest.
    """

    games: int = 0
    first: int = 0  # won by player 0
    draws: int = 0
    second: int = 0  # won by player 1
    moves: int = 0
    predicted: tuple[int, ...] = (0,) * BINS  # searches whose value, for the player to move, was in the bin
    points: tuple[float, ...] = (0.0,) * BINS  # points of these players in their games, from 0 to 1 each

    def plus(self, finished: Finished) -> Self:
        """The sums with these games added, whose arrays are on the host. Players alternate."""
        results, lengths = np.asarray(finished.result, np.float64), np.asarray(finished.length)
        values = np.asarray(finished.value, np.float64)
        plies = np.arange(values.shape[1] if values.ndim == 2 else 0)
        searched = (plies >= np.asarray(finished.opening)[:, None]) & (plies < lengths[:, None])
        outcomes = np.broadcast_to((1 + results[:, None] * (1 - 2 * (plies % 2))) / 2, searched.shape)[searched]
        bins = np.clip((values[searched] + 1) / 2 * BINS, 0, BINS - 1).astype(np.int64)
        predicted = np.bincount(bins, minlength=BINS).tolist()
        points = np.bincount(bins, outcomes, minlength=BINS).tolist()
        return type(self)(
            self.games + len(results),
            self.first + int((results > 0).sum()),
            self.draws + int((results == 0).sum()),
            self.second + int((results < 0).sum()),
            self.moves + int(lengths.sum()),
            tuple(a + b for a, b in zip(self.predicted, predicted, strict=True)),
            tuple(a + b for a, b in zip(self.points, points, strict=True)),
        )

    def values(self) -> dict[str, Any]:
        """For the metrics."""
        return {**vars(self), "points": [round(x, 1) for x in self.points]}


class Collector:
    """Collects finished games until there are enough for a file. Games are never divided between files.

    Each chunk notes what was played since the previous one, so that a killed run can be counted from its files:
    `session` (the start of the run), `finished` (games, including those without rows) and `evaluations`.
    """

    def __init__(
        self,
        base: Path,
        store: Store,
        game: Game,
        form: RowFormat,
        writer: Writer,
        data: DataSection,
        network: str,
        session: int,
        opponents: Sequence[Opponent] = (),
        visits: tuple[int, int] = (0, 0),
    ) -> None:
        """`visits` are those of a full and of a cheap search, for KataGo's files; they may change."""
        self.network = network  # that plays the games
        self.written_rows = 0  # in files by now
        self.tally = GameTally()  # of all games
        self.chunk = store.last()  # the number of the last one
        self._base, self._store, self._writer, self._session = base, store, writer, session
        self._game, self._form, self._identity = game, form, GameIdentity.of(game)
        self.settings = data
        self._opponents, self.visits = opponents, visits
        self._format = data.format  # `settings` may change, but not this
        self._parts: list[Any] = []  # rows, or games as Lc0's records
        self._waiting = 0  # rows among them
        self._finished, self._evaluations = 0, 0.0  # not yet in a chunk
        self._records: list[Record] = []
        self._due = 0.0  # records that are due, by `record_share`

    def add(self, finished: Finished, evaluations: float, game: Game | None = None) -> None:
        """Add games from `on_host` and their evaluations. `game` is theirs if the board has another size."""
        if self._format == "lc0":
            self._parts += self._for_lc0(finished)
            self._waiting += int(finished.rows_count)
        elif count := len(finished.rows["ply"]):
            for_katago = self._format == "katago"
            self._parts.append(self._for_katago(finished, game or self._game) if for_katago else finished.rows)
            self._waiting += count
        self._finished += len(finished.length)
        self.tally = self.tally.plus(finished)
        self._evaluations += evaluations
        for place in range(len(finished.length)):
            self._due += self.settings.record_share
            if self._due >= 1:
                self._due -= 1
                self._records.append(self._record(game or self._game, finished, place))
        if self._waiting >= self.settings.chunk_rows:
            self._write_rows()
        if len(self._records) >= _RECORDS:
            self._write_records()

    def flush(self) -> None:
        """Write everything, and wait until it is written."""
        self.under(self.network)
        self._writer.flush()

    def under(self, network: str) -> None:
        """Go on with the games of another network, after writing those of the previous one."""
        self._write_rows()
        self._write_records()
        self.network = network

    def counted(self) -> None:
        """Reset the counts, because a checkpoint now has them."""
        self._finished, self._evaluations = 0, 0.0

    def _write_rows(self) -> None:
        parts, waiting = self._parts, self._waiting
        self._parts, self._waiting = [], 0
        if self._format == "lc0" and parts:
            path = self._store.reserve(self.network, self._format)
            self._put(partial(lc0_writing.write, path.parent, path.stem, parts), path, waiting)
            self.counted()
        elif parts:
            rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            slices = list(_pieces(rows, self.settings.max_chunk_rows))
            for each in slices:
                piece = {name: values[each] for name, values in rows.items()}
                # The last file also counts the games without rows.
                whole = each is not slices[-1]
                self._write(piece, count_games(_numbers(piece)) if whole else self._finished, whole)

    def _write(self, rows: Rows, finished: int, whole: bool) -> None:
        """Write one chunk in the background. `whole`: it is not the last one, which counts the evaluations."""
        path = self._store.reserve(self.network, self._format)
        more = {"session": self._session, "finished": finished, "evaluations": 0.0 if whole else self._evaluations}
        write = partial(write_chunk, path, self._form, rows, self._identity, network=self.network, more=more)
        if self._format == "katago":
            write = partial(katago_writing.write, path, rows)
        self._put(write, path, len(_numbers(rows)))
        if whole:
            self._finished = max(self._finished - finished, 0)
        else:
            self.counted()

    def _put(self, write: Callable[[], object], path: Path, rows: int) -> None:
        def job() -> None:
            write()
            self.written_rows += rows

        self._writer.put(job, path)
        self.chunk = int(path.name.partition("-")[0])

    def _for_lc0(self, finished: Finished) -> Iterator[np.ndarray]:
        cut = (np.asarray(finished.length) >= self._game.max_moves) & (np.asarray(finished.result) == 0)
        known = (finished.number, finished.action, finished.result, cut)
        return lc0_writing.records_of(finished.rows, *map(np.asarray, known))

    def _for_katago(self, finished: Finished, game: Game) -> Rows:
        moves, length = np.asarray(finished.action), np.asarray(finished.length)
        ends = [moves[np.arange(len(length)), np.maximum(length - ago, 0)] for ago in (1, 2)]
        cut = np.any([end != game.num_actions - 1 for end in ends], 0)
        courses = katago_writing.GameCourses(
            number=np.asarray(finished.number),
            value=np.asarray(finished.value),
            score=None if finished.score is None else np.asarray(finished.score),
            length=length,
            opening=np.asarray(finished.opening),
            cut=cut,
            result=np.asarray(finished.result),
            komi=np.asarray(finished.extra["komi"]),
        )
        return katago_writing.arrays(finished.rows, courses, game.num_actions - 1, self.visits)

    def _write_records(self) -> None:
        if not self._records:
            return
        path = self._base / "games" / self.network / file_name(self._records[0].id, self._game.name)
        self._writer.put(partial(save_records, path, self._records), path)
        self._records = []

    def _record(self, game: Game, finished: Finished, place: int) -> Record:
        players = [self.network, self.network]
        if self._opponents and (seat := int(finished.extra["opponent"][place])) != NOBODY:
            players[self._opponents[seat].player] = self._opponents[seat].name
        session, number = (int(word) for word in finished.number[place])
        id = f"{session:08d}-{number:09d}"
        return record_of(game, finished, place, (players[0], players[1]), network=self.network, id=id)


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


def _numbers(rows: Rows) -> np.ndarray:
    """[N, ...]: which game each row is from, in Tengen's rows and KataGo's arrays."""
    return rows["game"] if "game" in rows else katago.games_of(rows["globalTargetsNC"])


def _pieces(rows: Rows, most: int) -> Iterator[slice]:
    """Slices of whole games, of at most `most` rows unless one game has more."""
    game = _numbers(rows)
    ends = [*(np.flatnonzero((game[1:] != game[:-1]).any(-1)) + 1).tolist(), len(game)]
    begin = 0
    for end, following in zip(ends, [*ends[1:], None], strict=True):
        if following is None or following - begin > most:
            yield slice(begin, end)
            begin = end


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
