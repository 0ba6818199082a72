"""Matches in which at least one player is a foreign engine: many tables, each with a game, and a referee.

Engines think in threads. A player of ours gets the positions of all tables that wait for it as one batch of a fixed
size, so nothing is compiled twice. A player that breaks the rules, crashes or does not answer loses that game.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from tengen import jax_setup
from tengen.data.records.records import shorten
from tengen.games.core import Game
from tengen.games.players import Player
from tengen.match.engines.engine import RESIGN
from tengen.match.engines.pool import EnginePool
from tengen.match.engines.process import Fault
from tengen.match.match_games import EngineOpinions, PlayedGame
from tengen.match.openings import MatchOpenings

Side = Player | EnginePool
_BEAT = 0.2  # seconds between two checks of whether to stop
_PATIENCE = (0.05, 5.0)  # seconds, at least and at most, that a position waits for others to fill the batch


class RefereePosition(NamedTuple):
    state: Any  # of NumPy arrays
    legal: np.ndarray  # Bool[A]
    player: int  # who moves
    over: bool
    returns: np.ndarray  # Float32[2]


class Referee:
    """Applies the rules of a game, on the CPU: a single position is too small to be worth a trip to a device."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self._cpu = jax_setup.cpu()

    def begin(self, seed: np.ndarray) -> RefereePosition:
        """The start of a game; `seed` is the data of a key."""
        return self._called(_begin, np.asarray(seed, np.uint32))

    def play(self, position: RefereePosition, action: int) -> RefereePosition:
        return self._called(_play, position.state, np.int32(action))

    def name(self, position: RefereePosition, action: int) -> str:
        with jax.default_device(self._cpu):
            return self.game.action_name(position.state, action)

    def read(self, position: RefereePosition, move: str) -> int:
        """The legal action that a player names. Fault if it names no legal action."""
        with jax.default_device(self._cpu):
            try:
                return self.game.parse_action(position.state, move)
            except ValueError as error:
                raise Fault("illegal move", f"played {shorten(move)}: {error}") from None

    def score(self, position: RefereePosition) -> float | None:
        """The score of player 0 in points; None for games without points."""
        with jax.default_device(self._cpu):
            found = _facts(self.game, position.state).get("score")
        return None if found is None else float(found)

    def _called(self, function: Any, *inputs: Any) -> RefereePosition:
        with jax.default_device(self._cpu):
            state, legal, player, over, returns = jax.device_get(function(self.game, *inputs))
        return RefereePosition(state, legal, int(player), bool(over), returns)


@partial(jax.jit, static_argnames="game")
def _begin(game: Game, seed: Array) -> tuple[Any, ...]:
    return _look(game, game.init(jax.random.wrap_key_data(seed)))


@partial(jax.jit, static_argnames="game")
def _play(game: Game, state: Any, action: Array) -> tuple[Any, ...]:
    return _look(game, game.step(state, action))


@partial(jax.jit, static_argnames="game")
def _facts(game: Game, state: Any) -> dict[str, Array]:
    return game.record_facts(state)


def _look(game: Game, state: Any) -> tuple[Any, ...]:
    return state, game.legal_actions(state), game.to_play(state), game.is_over(state), game.returns(state)


@dataclass
class GameTable:
    """A game under way. Sides are 0 (A) and 1 (B); players are 0 (moves first) and 1."""

    place: int
    number: int  # of the game
    position: RefereePosition
    actions: list[int]
    moves: list[tuple[int, str]]  # (player, what the game calls the move)
    began: float
    since: float = 0.0  # when it began to wait for a player of ours

    @property
    def side(self) -> int:
        return self.position.player ^ (self.number % 2)


Then = Callable[[GameTable, Any], PlayedGame | None]
"""Handles what an engine's thread has done (a future): gives the game if that ended it."""


class EngineMatch:
    """Plays the games of a match, `tables` of them at a time, with `parallel` engines thinking at once."""

    def __init__(
        self,
        game: Game,
        sides: tuple[Side, Side],
        start: Callable[[], MatchOpenings],
        key: jax.Array,
        parallel: int,
        tables: int,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`start` gives the openings of all pairs; it is called when the engines have started.

        `say` gets, before the first game, remarks about the engines for the user.
        """
        self.moves = 0  # played so far
        self.under_way = 0
        self._game, self._sides, self._key = game, sides, key
        self._make_openings, self._say = start, say
        self._openings: MatchOpenings | None = None
        self._tables = tables
        self._batch = -(-tables // 2)  # the other half is with the engines
        self._quickest = _PATIENCE[1]  # seconds that our player took for a batch
        self._referee = Referee(game)
        self._batches = 0
        self._waiting: list[GameTable] = []  # for the player of ours
        self._thinking: dict[Future[Any], tuple[GameTable, Then]] = {}
        self._threads = ThreadPoolExecutor(parallel, "engine")

    def play(self, numbers: Iterable[int], stop: Callable[[], bool]) -> Generator[PlayedGame | None, None, None]:
        """The games with these numbers as they end, until all are played or `stop` says so; None in between.

        TengenError if an engine does not start. The processes end with the iteration, however that ends.
        """
        to_play, free = deque(numbers), list(range(self._tables))[::-1]
        try:
            # An engine that cannot play at all is known before anything else is done.
            started = [self._threads.submit(pool.ready, 0, number) for pool in self._pools for number in [*to_play][:1]]
            while not stop() and wait(started, _BEAT).not_done:
                yield None
            for future in started:
                if future.done():
                    future.result()
            for pool in self._pools:
                for remark in pool.remarks:
                    self._say(remark)
            yield None
            self._openings = jax.device_get(self._make_openings()) if to_play and not stop() else None
            while not stop():
                while to_play and free:
                    self._go_on(self._sit(free.pop(), to_play.popleft()))
                if not (self._thinking or self._waiting):
                    break
                self.under_way = self._tables - len(free)
                yield None
                for place, played in self._some():
                    free.append(place)
                    yield played
        finally:
            for pool in self._pools:
                pool.interrupt()
            self._threads.shutdown(wait=True, cancel_futures=True)
            for pool in self._pools:
                pool.close()

    @property
    def compiling(self) -> bool:
        """Whether the openings, or the first moves of our player, are still to come: both are compiled first."""
        return self._openings is None or (not self._batches and len(self._pools) < len(self._sides))

    @property
    def _pools(self) -> list[EnginePool]:
        return [side for side in self._sides if isinstance(side, EnginePool)]

    def _some(self) -> list[tuple[int, PlayedGame]]:
        """Waits until something happens: (place, game) of the games that ended by it."""
        # As long as a batch takes, since one that is not full takes as long.
        patience = max(_PATIENCE[0], self._quickest)
        full = len(self._waiting) >= self._batch or not self._thinking
        if self._waiting and (full or time.monotonic() - self._waiting[0].since > patience):
            ended = [(table, self._ours(table, action)) for table, action in self._choose()]
        else:
            ended = []
            for future in wait(self._thinking, min(_BEAT, patience) if self._waiting else _BEAT, FIRST_COMPLETED).done:
                table, then = self._thinking.pop(future)
                ended.append((table, then(table, future)))
        return [(table.place, played) for table, played in ended if played is not None]

    def _sit(self, place: int, number: int) -> GameTable:
        pair = number // 2
        assert self._openings is not None
        position = self._referee.begin(self._openings.seeds[pair])
        table = GameTable(place, number, position, [], [], time.monotonic())
        for action in self._openings.actions[pair]:
            self._put(table, int(action))
        return table

    def _put(self, table: GameTable, action: int) -> None:
        table.moves.append((table.position.player, self._referee.name(table.position, action)))
        table.actions.append(action)
        table.position = self._referee.play(table.position, action)
        self.moves += 1

    def _go_on(self, table: GameTable) -> None:
        """Asks for the next move, or for the engines' opinions of a game that is over."""
        side = self._sides[table.side]
        if table.position.over or len(table.actions) >= self._game.max_moves:
            self._thinking[self._threads.submit(self._opinions, table)] = table, self._judged
        elif isinstance(side, Player):
            table.since = time.monotonic()
            self._waiting.append(table)
        else:
            arguments = (table.place, table.number, list(table.moves), table.position.player)
            self._thinking[self._threads.submit(side.consult, *arguments)] = table, self._theirs

    def _choose(self) -> list[tuple[GameTable, int]]:
        """The moves of our player at the tables that have waited longest."""
        tables, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
        player = next(side for side in self._sides if isinstance(side, Player))
        filled = [*tables, *[tables[0]] * (self._batch - len(tables))]
        states = jax.tree.map(lambda *leaves: np.stack(leaves), *(table.position.state for table in filled))
        self._batches += 1
        key = jax.random.fold_in(self._key, self._batches)
        began = time.monotonic()
        actions = np.asarray(player.ask(key, states, np.arange(self._batch) < len(tables)))
        self._quickest = min(self._quickest, time.monotonic() - began)
        return [(table, int(action)) for table, action in zip(tables, actions, strict=False)]

    def _ours(self, table: GameTable, action: int) -> PlayedGame | None:
        if not (0 <= action < self._game.num_actions and table.position.legal[action]):
            return self._forfeited(table, Fault("illegal move", f"chose action {action}, which is not legal"))
        self._put(table, action)
        return self._go_on(table)

    def _theirs(self, table: GameTable, future: Future[str]) -> PlayedGame | None:
        try:
            move = future.result()
            if move == RESIGN:
                return self._lost(table, ending="resigned", reason="resigned")
            action = self._referee.read(table.position, move)
        except Fault as fault:
            return self._forfeited(table, fault)
        self._put(table, action)
        return self._go_on(table)

    def _opinions(self, table: GameTable) -> EngineOpinions:
        arguments = (table.place, table.number, table.moves)
        a, b = (side.opinion(*arguments) if isinstance(side, EnginePool) else None for side in self._sides)
        return EngineOpinions(a, b)

    def _judged(self, table: GameTable, future: Future[EngineOpinions]) -> PlayedGame:
        result, score = float(table.position.returns[table.number % 2]), self._referee.score(table.position)
        return self._played(table, result=result, score=score, opinions=future.result())

    def _forfeited(self, table: GameTable, fault: Fault) -> PlayedGame:
        return self._lost(table, ending=fault.ending, fault=fault.kind, reason=fault.words)

    def _lost(self, table: GameTable, **about: Any) -> PlayedGame:
        return self._played(table, result=1.0 if table.side == 1 else -1.0, **about)

    def _played(self, table: GameTable, **about: Any) -> PlayedGame:
        assert self._openings is not None
        return PlayedGame(
            number=table.number,
            actions=tuple(table.actions),
            opening=int(self._openings.actions.shape[1]),
            seed=tuple(self._openings.seeds[table.number // 2].tolist()),
            seconds=round(time.monotonic() - table.began, 3),
            **about,
        )
