"""Batches of positions of many games for your own Python functions: see docs/context.md."""

import atexit
import itertools
import threading
from collections.abc import Callable
from dataclasses import asdict
from types import TracebackType
from typing import Any, Literal

import jax
import numpy as np

from tengen import schema, search
from tengen.config.settings.search import SearchSettings
from tengen.context import batches, replies
from tengen.context.batches import COLOURS, Batch, TrainRows
from tengen.context.exchange import BatchExchange, ContextStopped, Stats
from tengen.context.group import Group, News
from tengen.context.program import ContextPlan, program
from tengen.context.settings import ContextSettings
from tengen.context.thinking import RawPolicy, Thinking, TreeSearch
from tengen.data.format.rows import RowFormat
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.search.tree import check_memory

Callback = Callable[[Batch], Any]

ACTORS = ("actor_black", "actor_white")
LABELS = (*ACTORS, "game_start", "game_end", "train")


class GameContext:
    """Many games, whose positions come out as batches for callbacks.

    ctx = GameContext(game, num_games=256, batch_size=64, search=SearchSettings(simulations=32))
    ctx.on("actor_black", net)     # net(batch) -> {"policy": logits [n, A], "value": [n] in [-1, 1]}
    ctx.on("actor_white", net)
    with ctx:                      # start() ... stop()
        while ctx.stats().games_finished < 1000:
            ctx.run()              # wait for a batch, call its function, return its reply
    """

    def __init__(
        self, game: Game, num_games: int, batch_size: int, search: SearchSettings | None = None, **options: Any
    ) -> None:
        """`search`: None, or fewer than 2 simulations, plays by the policy alone. `options`: see `ContextSettings`."""
        if not isinstance(game, Game):
            raise OptionError(f"GameContext: expected a game, as games.make gives it, got {schema.quote(game)}")
        self.game = game
        given = {"num_games": num_games, "batch_size": batch_size, **options}
        self.settings = schema.from_options(ContextSettings, given, "GameContext")
        self._thinking = _thinking(game, search, self.settings.reuse)
        self._format = RowFormat.of(game, self.settings.targets)
        self._callbacks: dict[str, Callback] = {}
        self._versions = (0, 0)
        self._exchange: BatchExchange | None = None
        self._state: Literal["new", "starting", "started", "stopped"] = "new"
        self._lock = threading.Lock()  # of `_state`

    def on(self, label: str, function: Callback | None = None) -> Any:
        """Call `function` with the batches of that label; also a decorator: `@ctx.on("train")`."""
        if label not in LABELS:
            raise OptionError(f"on: {label}: {schema.unknown('label', str(label), LABELS)}")
        if function is None:
            return lambda found: self.on(label, found)
        if not callable(function):
            raise OptionError(f"on: {label}: expected a function, got {schema.quote(function)}")
        if self._state != "new":
            raise TengenError(f"on: {label}: the games have begun; say who listens before start()")
        if label in self._callbacks:
            raise TengenError(f"on: {label} has a function already")
        self._callbacks[label] = function
        return function

    def start(self) -> None:
        """Compile, and start the games. TengenError if a callback is missing."""
        missing = [label for label in ACTORS if label not in self._callbacks]
        if missing:
            hint = "; the same function may serve both colours" if len(missing) == 1 else ""
            calls = ", ".join(f'on("{label}", ...)' for label in missing)
            raise TengenError(f"start: nobody answers {' and '.join(missing)}: call {calls} first{hint}")
        with self._lock:
            if self._state != "new":
                raise TengenError(f"start: this context has been {self._state} before; make a new one")
            self._state = "starting"
        try:
            exchange, begun = self._prepare()
        except BaseException:
            self._state = "stopped"
            raise
        with self._lock:
            if self._state == "stopped":  # by another thread, meanwhile
                return
            self._exchange, self._state = exchange, "started"
            exchange.versions = self._versions
            exchange.begin(begun)
            atexit.register(self.stop)

    def _prepare(self) -> tuple[BatchExchange, list[News]]:
        settings, thinking = self.settings, self._thinking
        games = min(settings.num_games, settings.total_games or settings.num_games)
        size = -(-games // max(1, games * thinking.leaves // settings.batch_size))
        count = -(-games // size)
        row_format = self._format if "train" in self._callbacks else None
        if isinstance(thinking, TreeSearch):
            needed = search.bytes_needed(self.game, thinking.settings, count * size, thinking.slots)
            check_memory(needed, count * size)
        compiled = program(ContextPlan(thinking, size, settings.opening_moves, row_format))
        numbers = itertools.count() if settings.total_games is None else iter(range(settings.total_games))
        groups = [Group(compiled, lambda: next(numbers, None), settings) for _ in range(count)]
        keys = jax.random.split(jax.random.key(settings.seed), count)
        # A last group that is not full keeps places empty: all groups share one program.
        begun = [group.start(keys[n], min(size, games - n * size)) for n, group in enumerate(groups)]
        labels = {label: label for label in self._callbacks}
        if self._callbacks["actor_black"] == self._callbacks["actor_white"]:
            labels["actor_white"] = "actor_black"  # one function gets both colours together, in fuller batches
        rows = None if row_format is None else TrainRows(row_format, settings.batch_size)
        on_device = settings.arrays == "jax"
        return BatchExchange(self.game, groups, settings.batch_size, labels, rows, on_device), begun

    def run(self, seconds: float | None = None) -> str | None:
        """Wait for one batch, call its function and return the reply; the label of the batch.

        None if there was no batch in `seconds`, or if all games are over (see `stats().waiting`). An exception of the
        function stops the context, and is raised here.
        """
        batch = self.wait(seconds)
        if batch is None:
            return None
        try:
            self.step("done", self._callbacks[batch.label](batch))
        except BaseException:
            self.stop()
            raise
        return batch.label

    def wait(self, seconds: float | None = None) -> Batch | None:
        """The next batch, as `run` would get it. Return it with `step` before the next one."""
        return self._opened("wait").wait(seconds)

    def step(self, status: Literal["done", "failed"] = "done", reply: Any = None) -> None:
        """Return the batch: "done" with a reply (or with `batch.reply` filled in), "failed" to get it once more.

        ReplyError names the wrong field; the batch is still out then. After `stop` nothing happens.
        """
        if status not in ("done", "failed"):
            raise OptionError(f'step: expected "done" or "failed", got {schema.quote(status)}')
        exchange = self._opened("step", stopped=True)
        out = exchange.out
        if out is None:
            if self._state == "stopped":
                return
            raise TengenError("step: there is no batch to give back; wait() hands one out")
        batch, before = out
        versions = None
        if status == "done" and batch.reply:
            if reply is not None or batches.untouched(batch):
                replies.take(batch, reply)
            replies.check(batch)
        elif status == "done" and batch.label == "game_start":
            versions = replies.versions(batch, reply, before, exchange.versions)
        exchange.give_back(status == "done", versions)

    def stop(self) -> None:
        """End the games at once. Safe from any thread, at any time, more than once; waits for no callback."""
        with self._lock:
            self._state = "stopped"
        if self._exchange is not None:
            self._exchange.close()
            atexit.unregister(self.stop)

    def version(self) -> dict[str, int]:
        """The versions of games that begin now: {"black": ..., "white": ...}."""
        versions = self._versions if self._exchange is None else self._exchange.versions
        return dict(zip(COLOURS, versions, strict=True))

    def set_version(self, *, black: int | None = None, white: int | None = None) -> None:
        """Set the versions of games that begin from now on, and of those in the present `game_start`."""
        given = dict(zip(COLOURS, (black, white), strict=True))
        now = self.version()
        chosen = [now[name] if version is None else _version(name, version) for name, version in given.items()]
        self._versions = (chosen[0], chosen[1])
        if self._exchange is not None:
            self._exchange.versions = self._versions

    def stats(self) -> Stats:
        """Statistics so far, and what is waited for."""
        if self._exchange is not None:
            return self._exchange.stats
        return Stats(waiting="nothing: the context has been stopped" if self._state == "stopped" else "start()")

    def __enter__(self) -> "GameContext":
        if self._state == "new":
            self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _opened(self, what: str, stopped: bool = False) -> BatchExchange:
        if self._exchange is not None and (stopped or self._state != "stopped"):
            return self._exchange
        if self._state == "stopped":
            raise ContextStopped(f"{what}: this context has been stopped; make a new one to play on")
        raise TengenError(f"{what}: the games have not begun; call start() first")


def _thinking(game: Game, settings: SearchSettings | None, reuse: bool) -> Thinking:
    if settings is not None and not isinstance(settings, SearchSettings):
        raise OptionError(f"GameContext: search: expected SearchSettings or None, got {schema.quote(settings)}")
    if settings is None or settings.simulations in (0, 1):
        return RawPolicy(game)
    schema.from_options(SearchSettings, asdict(settings), "GameContext: search")
    return TreeSearch(game, settings, reuse)


def _version(name: str, version: Any) -> int:
    """A version that fits the arrays of a batch; NumPy's whole numbers are welcome."""
    if isinstance(version, int | np.integer) and not isinstance(version, bool) and -(2**63) <= version < 2**63:
        return int(version)
    raise OptionError(f"set_version: {name}: expected a whole number of 64 bits, got {schema.quote(version)}")
