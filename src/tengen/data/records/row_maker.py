"""Rows, and chunks of them, made of records: games that people or other programs played, for supervised training.

They are as if self-play had searched the moves; docs/data.md says what their targets are.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tengen import files, games
from tengen.data.format import rows as row
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity, plain_options
from tengen.data.format.rows import RowFormat, Rows
from tengen.data.records import moves
from tengen.data.records.records import Record, RecordError, read_each
from tengen.data.store.store import GAMES, Store
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.words import counted

_BATCH = 64  # games that are replayed together
_BLOCK = 16  # moves of each of them that one call makes
_EXACT_RULES = re.compile(r"ko(SIMPLE|POSITIONAL|SITUATIONAL)score")  # KataGo's, which name everything
_OTHER_SCORING = re.compile("TERRITORY|taxALL|taxSEKI|button1")
_SAME_SCORE = 1.0  # points by which two ways to count a finished game may differ


class _Waiting(NamedTuple):
    record: Record
    komi: float | None  # Go's
    number: tuple[int, int]  # the name of the game in its rows
    where: str  # for messages


class RowMaker:
    """Collects records of one game, replays them in batches, and counts those that cannot be used (`skipped`)."""

    def __init__(self, game: Game, form: RowFormat, chunk_rows: int = 20_000) -> None:
        self.game, self.form = game, form
        self.skipped: Counter[str] = Counter()
        self.examples: dict[str, str] = {}  # a reason -> what was wrong with the first such game
        self.games = self.rows = 0
        self.without_targets = 0  # games whose final position is not known to be counted
        self._heads = tuple(
            name for name in ("opponent_policy", *(t.name for t in game.extra_targets)) if name in form.fields
        )
        self._chunk_rows = chunk_rows
        self._waiting: dict[Game, list[_Waiting]] = {}
        self._ready: list[Rows] = []
        self._count = 0

    def skip(self, reason: str, example: str) -> None:
        self.skipped[reason] += 1
        self.examples.setdefault(reason, example)

    def add(self, record: Record, where: str = "") -> Iterator[Rows]:
        """Add a game; gives rows as soon as there are enough for a chunk."""
        try:
            replayed = self._replay_game(record)
        except (RecordError, OptionError) as error:
            self.skip("does not fit the game", f"{where}: {error}")
            return
        if record.result is None:
            return self.skip("has no result", where)
        if not len(record.actions) > record.opening:
            return self.skip("has no moves", where)
        self._count += 1
        digest = hashlib.sha256(f"{where} {self._count} {record.actions}".encode()).digest()
        number = (int.from_bytes(digest[:4]) | 1 << 31, int.from_bytes(digest[4:8]))  # never one of self-play's
        komi = record.options.get("komi", self.game.options.komi) if record.game == "go" else None
        waiting = self._waiting.setdefault(replayed, [])
        waiting.append(_Waiting(record, komi, number, where))
        if len(waiting) == _BATCH:
            self._ready += self._make(replayed, self._waiting.pop(replayed))
            yield from self._chunks(self._chunk_rows)

    def finish(self) -> Iterator[Rows]:
        for replayed, waiting in self._waiting.items():
            self._ready += self._make(replayed, waiting)
            yield from self._chunks(self._chunk_rows)
        self._waiting = {}
        yield from self._chunks(1)

    def _chunks(self, least: int) -> Iterator[Rows]:
        if sum(len(rows["ply"]) for rows in self._ready) >= least:
            ready, self._ready = self._ready, []
            yield {name: np.concatenate([rows[name] for rows in ready]) for name in self.form.fields}

    def _replay_game(self, record: Record) -> Game:
        """The game with the rules of a record; OptionError if its rows are no rows of this game."""
        if record.game != self.game.name:
            raise OptionError(f"a game of {record.game}, expected {self.game.name}")
        own = plain_options(self.game)
        if record.game != "go":
            played = plain_options(moves.game_of(record))
            different = [key for key in own if key not in _FREE and own[key] != played.get(key)]
            if different:
                raise OptionError(f"{different[0]}: expected {own[different[0]]}, got {played.get(different[0])}")
            if len(record.actions) > self.game.max_moves:
                raise OptionError(f"{len(record.actions)} moves, expected at most {self.game.max_moves}")
            return self.game
        size = record.options["size"]
        if size > own["size"]:
            raise OptionError(f"a board of {size}x{size}, expected at most {own['size']}x{own['size']}")
        rules = {key: record.options[key] for key in ("ko", "suicide") if _names_rules(record)}
        # One of two limits, so that few programs are compiled.
        most = None if len(record.actions) <= max(2 * size**2, 50) else max(4 * size**2, len(record.actions))
        rules = {key: rules.get(key, own[key]) for key in ("ko", "suicide")}
        return _go(size, **rules, max_moves=most, observation=own["observation"])

    def _make(self, game: Game, waiting: list[_Waiting]) -> list[Rows]:
        """The rows of some games that are replayed by the rules of `game`, one item per game."""
        starts, good = [], []
        for each in waiting:
            try:
                state = moves.start(game, each.record)
            except RecordError as error:
                self.skip("does not fit the game", f"{each.where}: {error}")
                continue
            starts.append(state if each.komi is None else state._replace(komi=np.int16(round(2 * each.komi))))
            good.append(each)
        if not good:
            return []
        replayed = _replay(game, starts, [each.record.actions for each in good])
        form = self.form if game.planes_shape == self.form.planes_shape else RowFormat.of(game, self._heads)
        found = []
        for index, each in enumerate(good):
            rows = self._rows(game, form, each, replayed, index)
            if rows is not None:
                found.append(rows if form is self.form else jax.device_get(row.widened(rows, form, self.form)))
        self.games += len(found)
        self.rows += sum(len(rows["ply"]) for rows in found)
        return found

    def _rows(self, game: Game, form: RowFormat, waiting: _Waiting, replayed: "_Replayed", index: int) -> Rows | None:
        record = waiting.record
        length, first = len(record.actions), record.opening
        wrong = np.flatnonzero(~replayed.legal[index, :length])
        if len(wrong):
            ended = replayed.ended[index, wrong[0]]
            reason = "has moves after its end" if ended else "has a move that is not legal"
            return self.skip(reason, f"move {wrong[0] + 1} of {waiting.where}")
        over, returns = bool(replayed.over[index]), float(replayed.returns[index])
        targets = {name: values[index] for name, values in replayed.targets.items()}
        assert record.result is not None
        if record.game == "go":
            score = float(targets["score"])
            if (
                _OTHER_SCORING.search(record.notes.get("rules", ""))
                and _names_rules(record)
                and np.sign(score) != record.result
            ):
                return self.skip("is won by other scoring rules", waiting.where)
            counted = record.score is not None and abs(score - record.score) <= _SAME_SCORE
        else:
            if over and returns != record.result:
                return self.skip("has another result than its moves", waiting.where)
            counted = over
        rows = row.blank(form, length)
        player = replayed.player[index, :length]
        sign = 1 - 2 * player.astype(np.float32)
        result = record.result * sign
        values = [result[ply] if value is None else value for ply, value in enumerate(record.values)]
        played = np.eye(form.num_actions, dtype=np.float16)[list(record.actions)]
        rows |= {
            "planes": replayed.planes[index, :length],
            "scalars": replayed.scalars[index, :length],
            "policy": played,
            "policy_weight": np.ones(length, np.float32),
            "outcome": np.stack([np.maximum(result, 0), 1 - abs(result), np.maximum(-result, 0)], -1),
            "search_value": np.asarray(values, np.float32),
            "to_play": player,
            "ply": np.arange(length, dtype=np.int16),
            "moves_left": np.arange(length, 0, -1).astype(np.int16),
            "weight": np.ones(length, np.float32),
            "game": np.tile(np.asarray(waiting.number, np.uint32), (length, 1)),
        }
        rows |= {name: np.ones(length, np.float32) for name in row.TARGET_WEIGHTS if name in form.fields}
        if "opponent_policy" in form.fields:
            other = np.append(player[1:] != player[:-1], False)
            rows["opponent_policy"] = np.where(other[:, None], np.roll(played, -1, 0), 0).astype(np.float16)
            rows["opponent_weight"] = other.astype(np.float32)
        for target in game.extra_targets:
            if target.name in form.fields:
                dtype = form.fields[target.name].dtype
                seen = target.seen_by(targets[target.name][None], player[None])[0].astype(dtype)
                rows[target.name] = seen if counted else np.full_like(seen, row.unknown(dtype))
        self.without_targets += not counted
        return {name: rows[name][first:] for name in form.fields}


class _Replayed(NamedTuple):
    """B games of at most M moves, on the host."""

    planes: np.ndarray  # UInt8[B, M, bytes]
    scalars: np.ndarray  # Float32[B, M, S]
    player: np.ndarray  # Int8[B, M]
    legal: np.ndarray  # Bool[B, M]: whether the move was
    ended: np.ndarray  # Bool[B, M]: whether the game was over before the move
    over: np.ndarray  # Bool[B]: whether the last position ends the game
    returns: np.ndarray  # Float32[B]: of player 0 there
    targets: Mapping[str, np.ndarray]  # [B, ...]: there


def _replay(game: Game, starts: list[Any], actions: list[tuple[int, ...]]) -> _Replayed:
    """Play the games move by move, all at once; after an illegal move a game means nothing."""
    count, longest = len(starts), max(map(len, actions))
    table = np.full((_BATCH, -(-longest // _BLOCK) * _BLOCK), -1, np.int32)
    for place, each in zip(table, actions, strict=False):
        place[: len(each)] = each
    states = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), *starts, *starts[:1] * (_BATCH - count)
    )  # one size, so one program
    blocks = []
    for begin in range(0, table.shape[1], _BLOCK):
        states, seen = _moves(game, states, jnp.asarray(table[:, begin : begin + _BLOCK]))
        blocks.append(jax.device_get(seen))
    planes, scalars, player, legal, ended = (np.concatenate(part, 1)[:count] for part in zip(*blocks, strict=True))
    return _Replayed(planes, scalars, player, legal, ended, *jax.device_get(_ends(game, states)))


@partial(jax.jit, static_argnums=0)
def _moves(game: Game, states: Any, actions: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:
    """Some moves (Int32[B, T]; -1: none) of every game: the states after them, and what was seen before each."""

    def move(carry: Any, action: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:
        states, look = carry
        inside = (action >= 0) & (action < game.num_actions)
        legal = inside & jnp.take_along_axis(look.legal, jnp.where(inside, action, 0)[:, None], 1)[:, 0]
        player = jax.vmap(game.to_play)(states).astype(jnp.int8)
        planes, scalars = row.pack_planes(look.observation.planes), look.observation.scalars.astype(jnp.float32)
        after = game.step_and_look(states, jnp.where(legal, action, 0), ~legal)
        return after, (planes, scalars, player, legal, look.over)

    (states, _), seen = jax.lax.scan(move, (states, jax.vmap(game.look)(states)), actions.T)
    return states, tuple(leaf.swapaxes(0, 1) for leaf in seen)


@partial(jax.jit, static_argnums=0)
def _ends(game: Game, states: Any) -> tuple[jax.Array, jax.Array, dict[str, jax.Array]]:
    ends = jax.vmap(game.is_over)(states), jax.vmap(game.returns)(states)[:, 0]
    return *ends, jax.vmap(game.final_targets)(states)


# What a game may have been played with instead: another limit of its moves, or inputs for another network.
_FREE = ("max_moves", "observation")


@lru_cache(maxsize=64)
def _go(size: int, **options: Any) -> Game:
    return games.make("go", size=size, komi=0.0, **options)


def _names_rules(record: Record) -> bool:
    """Whether the options of a record of Go are the rules by which it was played, not a guess."""
    return "max_moves" in record.options or bool(_EXACT_RULES.match(record.notes.get("rules", "")))


@dataclass(frozen=True)
class ImportedGames:
    """What became of the games in some files."""

    folder: Path
    chunks: int
    games: int
    rows: int
    without_targets: int  # games
    skipped: dict[str, int]  # a reason -> games
    examples: dict[str, str]  # a reason -> one of them

    def __str__(self) -> str:
        many = counted(self.rows, "row"), counted(self.games, "game"), counted(self.chunks, "file")
        lines = [f"{self.folder}: {many[0]} of {many[1]} in {many[2]}"]
        if self.without_targets:
            unknown = f"{self.without_targets:,} of {many[1]}"
            lines.append(f"not counted on the board: {unknown}, whose ends teach only who won")
        return "\n".join([*lines, *skipped_lines(self.skipped, self.examples)])


def from_games(
    paths: Sequence[Path],
    out: Path,
    game: Game,
    form: RowFormat,
    *,
    name: str = "games",
    chunk_rows: int = 20_000,
    tell: Callable[[str], object] = lambda words: None,
) -> ImportedGames:
    """Write the rows of all games in these files to a new folder in `out`, which appears complete or not at all.

    FileError if a file cannot be read, TengenError if no game can be used. `tell` is called with progress.
    """
    for path in paths:
        files.open_regular(path).close()  # before anything is done
    maker, store = RowMaker(game, form, chunk_rows), Store(out, GAMES)
    folder, first, written = _free(out, name), store.last() + 1, 0

    def fill(hidden: Path) -> None:
        nonlocal written
        for rows in chain.from_iterable((*(_added(maker, path, tell) for path in paths), maker.finish())):
            path = hidden / f"{first + written:010d}-{GAMES}.npz"
            write_chunk(path, form, rows, GameIdentity.of(game), network=folder.name, more={"source": "games"})
            written += 1
        if not written:
            raise TengenError("\n".join(["no game can be used", *skipped_lines(maker.skipped, maker.examples)]))

    files.write_folder(folder, fill)
    return ImportedGames(
        folder, written, maker.games, maker.rows, maker.without_targets, dict(maker.skipped), maker.examples
    )


def skipped_lines(skipped: dict[str, int], examples: dict[str, str]) -> list[str]:
    return [
        f"skipped {number:,}: {reason}" + (f" (such as {examples[reason]})" if examples.get(reason) else "")
        for reason, number in sorted(skipped.items(), key=lambda item: -item[1])
    ]


def _added(maker: RowMaker, path: Path, tell: Callable[[str], object]) -> Iterator[Rows]:
    for number, record in enumerate(read_each(path), 1):
        where = f"{path}, game {number}"
        if isinstance(record, RecordError):
            maker.skip("cannot be read", f"{where}: {record}")
        else:
            yield from maker.add(record, where)
    tell(f"{path}: {maker.rows:,} rows so far")


def _free(out: Path, name: str) -> Path:
    return next(path for n in count(1) if not (path := out / (name if n == 1 else f"{name}-{n}")).exists())
