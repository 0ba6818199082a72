"""Connects games and callbacks: one thread plays the games, another one fetches batches and returns answers.

The cycle of a group of games: a turn of the playing thread -> events -> its positions wait in a pool -> a batch -> the
answers -> its next turn. While a batch is out, the thread works on other groups.
"""

import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tengen.context import batches
from tengen.context.batches import Batch, EndedGame, TrainRows, Versions
from tengen.context.group import Group, TurnEvents
from tengen.context.listeners import COLOURS
from tengen.errors import TengenError
from tengen.games.core import Game

_ENOUGH = 0.75  # of a batch: filling it further is not worth the wait


class ContextStopped(TengenError):
    """There are no more batches, because the context has been stopped."""


@dataclass(frozen=True)
class Stats:
    games_started: int = 0
    games_finished: int = 0
    black_wins: int = 0
    draws: int = 0
    white_wins: int = 0
    total_length: int = 0  # moves of the finished games, with those of openings
    moves: int = 0  # of all games, without those of openings
    batches: int = 0  # of positions that were answered
    evaluations: int = 0  # positions in them
    rows: int = 0  # of finished games, for `train`
    train_batches: int = 0
    callback_seconds: float = 0.0  # while batches were out
    waiting_seconds: float = 0.0  # spent in `wait`
    waiting: str = ""  # what is waited for now

    @property
    def win_rate(self) -> float | None:
        """Black's share of the points, a draw being half a point; None before the first game is over."""
        return (self.black_wins + self.draws / 2) / self.games_finished if self.games_finished else None

    @property
    def mean_length(self) -> float | None:
        """Moves of a finished game, with those of its opening; None before the first game is over."""
        return self.total_length / self.games_finished if self.games_finished else None


class ExchangePart(NamedTuple):
    """Some of a batch's rows, in order."""

    group: Group
    rows: np.ndarray


@dataclass
class _Out:
    batch: Batch
    parts: tuple[ExchangePart, ...] = ()
    group: Group | None = None  # waits until its new games have versions
    begun: tuple[int, ...] = ()  # the places of these games
    since: float = 0.0
    versions: Versions = (0, 0)  # when it was handed out


class BatchExchange:
    """The groups of a context, with their thread. All methods are safe from any thread."""

    def __init__(
        self,
        game: Game,
        groups: list[Group],
        labels: dict[str, str],
        actors: dict[str, Batch],
        rows: TrainRows | None,
        steps_per_version: int,
    ) -> None:
        """`labels` has the label of each kind of batch; both actors have the same label if one function answers both.

        `actors` has the batches of positions, by label.
        """
        self._game, self._groups, self._labels = game, groups, labels
        self._rows, self._steps_per_version = rows, steps_per_version
        self._changed = threading.Condition()
        self._todo: deque[Group] = deque()
        self._busy = False
        self._events: deque[_Out] = deque()
        self._pools: dict[str, deque[ExchangePart]] = {label: deque() for label in actors}
        self._buffers, self._sizes = actors, {label: len(batch["mask"]) for label, batch in actors.items()}
        self._out: _Out | None = None
        self._again: _Out | None = None
        self._stopped = False
        self._error: BaseException | None = None
        self._stats = Stats()
        self.versions: Versions = (0, 0)  # of games that begin
        self._thread = threading.Thread(target=self._work, name="tengen-games", daemon=True)

    def begin(self, begun: list[TurnEvents]) -> None:
        """Start the thread that plays; the games of all groups have just begun."""
        for group, news in zip(self._groups, begun, strict=True):
            self._note(group, news)
        self._thread.start()

    def close(self) -> None:
        """End the thread, which takes up to one turn, and drop the games."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        with self._changed:
            self._groups, self._out = [], None
            for queue in (self._todo, self._events, *self._pools.values()):
                queue.clear()

    @property
    def stats(self) -> Stats:
        with self._changed:
            return replace(self._stats, waiting=self._words())

    # For the thread that answers

    def wait(self, seconds: float | None) -> Batch | None:
        """The next batch; None if none comes in time, or if no more will ever come: see `stats.waiting`."""
        began = time.monotonic()
        with self._changed:
            if self._out is not None and not self._stopped:
                raise TengenError(f"{self._out.batch.label}: this batch is out: give it back with step() first")
            out = None
            while out is None:
                if self._error is not None:
                    raise self._error
                if self._stopped:
                    raise ContextStopped("this context has been stopped; make a new one to play on")
                out = self._next()
                left = None if seconds is None else began + seconds - time.monotonic()
                if out is None and (self._finished() or (left is not None and left <= 0)):
                    break
                if out is None:
                    self._changed.wait(left)
            now = time.monotonic()
            self._count(waiting_seconds=now - began)
            if out is None:
                return None
            if out.batch.label == "train_control":
                now_played = {name: getattr(self._stats, name) for name in ("games_finished", "rows", "train_batches")}
                versions = zip(("black_version", "white_version"), self.versions, strict=True)
                out.batch.update(now_played | dict(versions))
            out.since, out.versions, self._out = now, self.versions, out
            if out.group is not None:
                for colour, version in zip(COLOURS, self.versions, strict=True):
                    out.batch[f"{colour}_version"] = np.full(len(out.begun), version, np.int64)
            return out.batch

    def versions_in_use(self) -> set[int]:
        """The versions of games that are played or begin now."""
        with self._changed:
            return set(self.versions).union(*(group.versions for group in self._groups))

    @property
    def out(self) -> tuple[Batch, Versions] | None:
        """The batch that has not been given back, and the versions when it was handed out."""
        with self._changed:
            return (self._out.batch, self._out.versions) if self._out is not None else None

    def give_back(self, answered: bool, versions: np.ndarray | None) -> None:
        """Return the batch that is out, with its `reply` filled in, or with `versions` Int64[2, n] of new games."""
        with self._changed:
            out = self._out
            if out is None:
                return
            self._out = None
            self._count(callback_seconds=time.monotonic() - out.since)
            if not answered:
                self._again = out
                return
            if out.parts:
                self._hear(out)
                self._count(batches=1, evaluations=out.batch.count)
            if out.batch.label == "train":
                self._count(train_batches=1)
                due = self._stats.train_batches % self._steps_per_version == 0
                if due and "train_control" in self._labels:
                    self._events.appendleft(_Out(Batch("train_control", {})))
            if out.group is not None and versions is not None:
                for number, place in enumerate(out.begun):
                    chosen = (int(versions[0, number]), int(versions[1, number]))
                    out.group.assign(place, chosen, len(self._pools) == 1)
                self._release(out.group)
            self._changed.notify_all()

    def _hear(self, out: _Out) -> None:
        """Pass the answers to the groups; a group with all its answers gets its next turn."""
        start = 0
        for group, rows in out.parts:
            group.questions.hear(rows, out.batch.reply, start)
            start += len(rows)
            if not group.questions.missing:
                self._todo.append(group)

    def _next(self) -> _Out | None:
        """The next batch to hand out, if any. A batch that is not full is better than none."""
        if self._again is not None:
            out, self._again = self._again, None
            batches.forget(out.batch)
            return out
        if self._events:
            return self._events.popleft()
        if self._rows is not None and (batch := self._rows.next()) is not None:
            return _Out(batch)
        waiting = {label: sum(len(rows) for _, rows in pool) for label, pool in self._pools.items()}
        label = max(waiting, key=lambda label: waiting[label] / self._sizes[label])
        enough = 1 if not (self._todo or self._busy) else _ENOUGH * self._sizes[label]
        return self._filled(label) if waiting[label] >= enough else None

    def _filled(self, label: str) -> _Out:
        pool, batch, size = self._pools[label], self._buffers[label], self._sizes[label]
        parts: list[ExchangePart] = []
        filled = 0
        while pool and filled < size:
            group, rows = pool.popleft()
            taken, left = rows[: size - filled], rows[size - filled :]
            group.show(taken, batch, filled)
            parts.append(ExchangePart(group, taken))
            filled += len(taken)
            if len(left):
                pool.appendleft(ExchangePart(group, left))
        batches.pad(batch, filled)
        return _Out(batch, tuple(parts))

    def _finished(self) -> bool:
        nothing = not (self._todo or self._busy or self._events or any(self._pools.values()) or self._out)
        return nothing and not any(group.playing for group in self._groups)

    def _words(self) -> str:
        more = f"; {self._rows.waiting}" if self._rows is not None and self._rows.waiting else ""
        return self._waited_for() + more

    def _waited_for(self) -> str:
        if self._error is not None:
            return f"nothing: the games have failed: {self._error}"
        if self._stopped:
            return "nothing: the context has been stopped"
        if self._out is not None:
            seconds = time.monotonic() - self._out.since
            return f"the reply to {self._out.batch.label}, which has been out for {seconds:.1f} s"
        if self._busy or self._todo:
            count = len(self._todo) + self._busy
            return f"the games: {count} of {len(self._groups)} groups are searching for what to evaluate next"
        if self._finished():
            return f"nothing: all {self._stats.games_finished} games are over"
        return "nothing: a batch can be fetched"

    # For the thread that plays

    def _work(self) -> None:
        try:
            while (group := self._take()) is not None:
                news = group.turn()
                # Where all leaves were ends of games there is nothing to evaluate.
                while not group.questions.missing and group.playing and not self._stopped:
                    more = group.turn()
                    news = TurnEvents(news.ended + more.ended, news.begun + more.begun, news.moves + more.moves)
                self._note(group, news)
        except BaseException as error:  # raised in `wait`
            with self._changed:
                self._error = error
                self._busy = False
                self._changed.notify_all()

    def _take(self) -> Group | None:
        with self._changed:
            self._changed.wait_for(lambda: self._todo or self._stopped)
            if self._stopped:
                return None
            self._busy = True
            return self._todo.popleft()

    def _note(self, group: Group, news: TurnEvents) -> None:
        """Process what happened in a turn: events first, then the positions to evaluate."""
        events: list[_Out] = []
        if "game_end" in self._labels:
            events = [_Out(batches.for_game_end(self._game, ended)) for ended in news.ended]
        with self._changed:
            self._busy = False
            self._count(games_started=len(news.begun), moves=news.moves, **_counts(news.ended))
            self._events += events
            if self._rows is not None:
                for ended in news.ended:
                    self._rows.add(ended)
                self._stats = replace(self._stats, rows=self._rows.bucket.rows)
            for place in news.begun:
                group.assign(place, self.versions, len(self._pools) == 1)
            if news.begun and "game_start" in self._labels:
                numbers = {"game": group.number[news.begun]}
                self._events.append(_Out(Batch("game_start", numbers), group=group, begun=tuple(news.begun)))
            else:
                self._release(group)
            self._changed.notify_all()

    def _release(self, group: Group) -> None:
        """Let the group's positions be evaluated."""
        for player, colour in enumerate(COLOURS):
            rows = group.questions.of_colour(player)
            if len(rows):
                self._pools[self._labels[f"actor_{colour}"]].append(ExchangePart(group, rows))

    def _count(self, **more: Any) -> None:
        self._stats = replace(self._stats, **{name: getattr(self._stats, name) + n for name, n in more.items()})


def _counts(ended: list[EndedGame]) -> dict[str, int]:
    signs = [float(game.finished.result[0]) for game in ended]
    return {
        "games_finished": len(ended),
        "black_wins": sum(sign > 0 for sign in signs),
        "draws": sum(sign == 0 for sign in signs),
        "white_wins": sum(sign < 0 for sign in signs),
        "total_length": sum(int(game.finished.length[0]) for game in ended),
    }
