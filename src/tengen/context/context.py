"""Batches of positions of many games for your own Python functions: see docs/context.md."""

import atexit
import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal

import jax
import numpy as np

from tengen import schema, search
from tengen.config.settings.search import SearchSettings
from tengen.context import batches, evaluating, listeners, replies
from tengen.context.batches import Batch, TrainRows
from tengen.context.exchange import BatchExchange, ContextStopped, Stats
from tengen.context.group import Group, TurnEvents
from tengen.context.listeners import ACTORS, COLOURS, LABELS, Features, Listener
from tengen.context.program import ContextPlan, program
from tengen.context.settings import ContextSettings
from tengen.context.thinking import RawPolicy, Thinking, TreeSearch
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.match.results import MatchResult
from tengen.search.tree import check_memory

Callback = Callable[[Batch], Any]


class GameContext:
    """Many games, whose positions come out as batches for callbacks.

    ctx = GameContext(game, num_games=256, batch_size=64, search=SearchSettings(simulations=32))
    ctx.on("actor", net)           # net(batch) -> {"policy": logits [n, A], "value": [n] in [-1, 1]}
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
        listeners.row_format(game, self.settings, None)  # OptionError if the game has no such target
        self._listeners: dict[str, Listener] = {}
        self._versions = (0, 0)
        self._params: dict[int, Any] = {}  # by version
        self._exchange: BatchExchange | None = None
        self._state: Literal["new", "starting", "started", "stopped"] = "new"
        self._lock = threading.Lock()  # of `_state`

    def on(
        self,
        label: str,
        function: Callback | None = None,
        *,
        batch_size: int | None = None,
        fields: Sequence[str] | None = None,
        features: Features | None = None,
    ) -> Any:
        """Call `function` with the batches of that label; also a decorator: `@ctx.on("train")`.

        For positions and rows, `batch_size` and `fields` (names) change what the batches hold, and `features` adds to
        them: a function in `jax.numpy` that maps states [N, ...] to arrays [N, ...] by name.
        """
        if label not in LABELS:
            raise OptionError(f"on: {label}: {schema.unknown('label', str(label), LABELS)}")
        if function is None:
            return lambda found: self.on(label, found, batch_size=batch_size, fields=fields, features=features)
        if self._state != "new":
            raise TengenError(f"on: {label}: the games have begun; call on() before start()")
        if label in self._listeners:
            raise TengenError(f"on: {label} has a function already")
        others = ACTORS if label == "actor" else ("actor",) if label in ACTORS else ()
        if taken := [other for other in others if other in self._listeners]:
            raise TengenError(f"on: {label}: {taken[0]} has a function already; actor is for both colours")
        about = (batch_size, fields, features)
        self._listeners[label] = listeners.listener(label, function, self.game, self.settings, *about)
        return function

    def start(self) -> None:
        """Compile, and start the games. TengenError if a callback is missing."""
        labels = listeners.labels(self._listeners)
        with self._lock:
            if self._state != "new":
                raise TengenError(f"start: this context has been {self._state} before; make a new one")
            self._state = "starting"
        try:
            exchange, begun = self._prepare(labels)
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

    def _prepare(self, labels: dict[str, str]) -> tuple[BatchExchange, list[TurnEvents]]:
        settings, thinking = self.settings, self._thinking
        actors = {label: self._listeners[label] for label in dict.fromkeys(labels[actor] for actor in ACTORS)}
        train = self._listeners.get("train")
        largest = max(listener.batch_size for listener in actors.values())
        games = min(settings.num_games, settings.total_games or settings.num_games)
        size = -(-games // max(1, games * thinking.leaves // largest))
        count = -(-games // size)
        if isinstance(thinking, TreeSearch):
            needed = search.bytes_needed(self.game, thinking.settings, count * size, thinking.slots)
            check_memory(needed, count * size)
        form = None if train is None else listeners.row_format(self.game, settings, train)
        given = {**actors, **({} if train is None else {"train": train})}
        features = tuple((label, one.features) for label, one in given.items() if one.features is not None)
        compiled = program(ContextPlan(thinking, size, settings.opening_moves, form, features))
        numbers = itertools.count() if settings.total_games is None else iter(range(settings.total_games))
        buffers = {
            label: batches.for_actor(label, self.game, listener, settings.arrays == "jax")
            for label, listener in actors.items()
        }
        fields = frozenset(name for batch in buffers.values() for name in batch)
        groups = [Group(compiled, lambda: next(numbers, None), settings, fields) for _ in range(count)]
        rows = None
        if train is not None and form is not None:
            rows = TrainRows(form, self.game.max_moves, train.feature_shapes(self.game), train, settings)
        keys = jax.random.split(jax.random.key(settings.seed), count)
        # A last group that is not full keeps places empty: all groups share one program.
        begun = [group.start(keys[n], min(size, games - n * size)) for n, group in enumerate(groups)]
        return BatchExchange(self.game, groups, labels, buffers, rows, settings.steps_per_version), begun

    def run(self, seconds: float | None = None) -> str | None:
        """Wait for one batch, call its function and pass on the reply; returns the label of the batch.

        None if there was no batch within `seconds`, or if all games are over (see `stats().waiting`). An exception in
        the function stops the context, and is raised here.
        """
        batch = self.wait(seconds)
        if batch is None:
            return None
        try:
            function = self._listeners[batch.label].function
            reply = function(batch)
            with replies.given_by(function):
                self.step("done", reply)
        except BaseException:
            self.stop()
            raise
        return batch.label

    def wait(self, seconds: float | None = None) -> Batch | None:
        """The next batch, as `run` would get it. Return it with `step` before the next one."""
        batch = self._opened("wait").wait(seconds)
        if batch is not None and batch.reply:
            batch.params = self._known_params(batch["version"][: batch.count])
        return batch

    def step(self, status: Literal["done", "failed"] = "done", reply: Any = None) -> None:
        """Return the batch: "done" with a reply (or with `batch.reply` filled in), "failed" to get it again.

        ReplyError names the wrong field; then the batch has not been returned. After `stop` nothing happens.
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
            replies.accept(batch, reply)
        elif status == "done" and batch.label == "game_start":
            versions = replies.versions(batch, reply, before, exchange.versions)
        elif status == "done" and batch.label == "train_control":
            self.set_version(**replies.new_version(reply))
        exchange.give_back(status == "done", versions)

    def stop(self) -> None:
        """End the games at once. May be called from any thread, at any time, repeatedly; waits for no callback."""
        with self._lock:
            self._state = "stopped"
        if self._exchange is not None:
            self._exchange.close()
            atexit.unregister(self.stop)

    def version(self) -> dict[str, int]:
        """The versions of games that begin now: {"black": ..., "white": ...}."""
        versions = self._versions if self._exchange is None else self._exchange.versions
        return dict(zip(COLOURS, versions, strict=True))

    def set_version(self, *, black: int | None = None, white: int | None = None, params: Any = None) -> None:
        """Set the versions of games that begin from now on, and of those in the current `game_start`.

        Batches pass `params` on to actors, as `batch.params[version]`, while games use these versions. If only `params`
        is given, both colours get the next version.
        """
        now = self.version()
        if params is not None and black is None and white is None and self._exchange is not None:
            black = white = max(now.values()) + 1
        given = dict(zip(COLOURS, (black, white), strict=True))
        chosen = [now[name] if version is None else _version(name, version) for name, version in given.items()]
        changed = [new for new, version in zip(chosen, given.values(), strict=True) if version is not None]
        if params is not None:
            self._params |= dict.fromkeys(changed or chosen, params)
        self._versions = (chosen[0], chosen[1])
        if self._exchange is not None:
            self._exchange.versions = self._versions
            used = self._exchange.versions_in_use()
            self._params = {version: params for version, params in self._params.items() if version in used}

    def evaluate(
        self,
        *,
        black: Any,
        white: Any,
        games: int = 100,
        swap: bool = False,
        search: SearchSettings | Literal["same"] | None = "same",
        opening_moves: int = 2,
        seed: int = 0,
        black_version: int | None = None,
        white_version: int | None = None,
    ) -> MatchResult:
        """Play a match; the result is that of `black`. Nothing else happens in the meantime.

        A player is a function as for `on("actor", ...)`, a network or its path, `random`, `mcts:200`,
        `python:module:function`, or a `match.Player`. Each game begins with its own random moves; with `swap` each
        opening is played twice, with the colours swapped. Networks and functions search as in this context, or with
        `search`, without noise. A function gets batches with these versions, by default the current ones.
        """
        given = {"black": black_version, "white": white_version}
        versions = {name: self.version()[name] if one is None else _version(name, one) for name, one in given.items()}
        thinking = self._thinking if search == "same" else _thinking(self.game, search, reuse=False)
        match = evaluating.EvaluationMatch(self.game, self.settings, thinking, tuple(self._listeners.values()))
        players = [
            match.player(player, name, versions[name], lambda: self._known_params(versions.values()))
            for name, player in (("black", black), ("white", white))
        ]
        return match.play(players[0], players[1], games, swap, opening_moves, seed)

    def _known_params(self, versions: Any) -> dict[int, Any]:
        return {int(version): self._params[version] for version in set(versions) if version in self._params}

    def stats(self) -> Stats:
        """Statistics so far, and what the context waits for."""
        if self._exchange is not None:
            return self._exchange.stats
        return Stats(waiting="nothing: the context has been stopped" if self._state == "stopped" else "start()")

    def __enter__(self) -> "GameContext":
        if self._state == "new":
            self.start()
        return self

    def __exit__(self, *exception: object) -> None:
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
    """A version that fits the arrays of a batch; NumPy's integers are allowed."""
    if isinstance(version, int | np.integer) and not isinstance(version, bool) and -(2**63) <= version < 2**63:
        return int(version)
    raise OptionError(f"set_version: {name}: expected a whole number of 64 bits, got {schema.quote(version)}")
