"""The processes of one engine in a match: one for each table, used for one game after the other."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from tengen.games.core import Game
from tengen.match.engines import engine
from tengen.match.engines.engine import ForeignEngine, NotStarted, Terms
from tengen.match.engines.process import Fault, Process

_TRIES = 3  # to start it, for one game


@dataclass
class EngineSeat:
    engine: ForeignEngine
    game: int  # which game it follows
    told: int = 0  # how many moves of the game the engine knows


class EnginePool:
    """All processes of one engine. One thread at a time uses a table."""

    def __init__(self, text: str, game: Game, terms: Terms) -> None:
        self.text = text
        self._game, self._terms = game, terms
        self._seats: dict[int, EngineSeat] = {}
        self._lock = threading.Lock()
        self._processes: list[Process] = []
        self._ending = False

    @property
    def about(self) -> str:
        """The name and version that the engine gives; empty before the first process has started."""
        return next((seat.engine.about for seat in list(self._seats.values())), "")

    @property
    def remarks(self) -> tuple[str, ...]:
        """How its rules may differ from those of the game; empty before the first process has started."""
        found = next((seat.engine.remarks for seat in list(self._seats.values())), ())
        return tuple(f"{self.text}: {remark}" for remark in found)

    def consult(self, table: int, game: int, moves: list[tuple[int, str]], player: int) -> str:
        """Its move in a game with these moves, (player, move), so far. Fault, or TengenError if it does not start."""
        with self._caught_up(table, game, moves) as seat:
            move = seat.engine.choose(player)
            seat.told += 1
            return move

    def opinion(self, table: int, game: int, moves: list[tuple[int, str]]) -> str | None:
        """Who has won a finished game, in its view; None if it does not say."""
        with contextlib.suppress(Fault), self._caught_up(table, game, moves) as seat:
            return seat.engine.opinion()
        return None

    def ready(self, table: int, game: int) -> EngineSeat:
        """The engine at a table, prepared for that game. TengenError if it cannot be started."""
        seat = self._seats.get(table)
        if seat is not None and seat.game == game:
            return seat
        if seat is not None:
            try:
                seat.engine.begin()
                self._seats[table] = EngineSeat(seat.engine, game)
                return self._seats[table]
            except Fault:  # it has died since, or cannot be used any more
                self.dismiss(table)
        self._seats[table] = EngineSeat(self._start(), game)
        return self._seats[table]

    def dismiss(self, table: int) -> None:
        seat = self._seats.pop(table, None)
        if seat is not None:
            seat.engine.close()

    def interrupt(self) -> None:
        """Ends all processes, from any thread; waiting threads get a Fault."""
        with self._lock:
            self._ending = True
            for process in self._processes:
                process.kill()

    def close(self) -> None:
        """Ends all processes in order, when no thread waits for them."""
        for table in list(self._seats):
            self.dismiss(table)

    @contextlib.contextmanager
    def _caught_up(self, table: int, game: int, moves: list[tuple[int, str]]) -> Iterator[EngineSeat]:
        """The engine at a table, with all moves played on its board; a Fault ends its process."""
        try:
            seat = self.ready(table, game)
            for player, move in moves[seat.told :]:
                seat.engine.tell(player, move)
                seat.told += 1
            yield seat
        except Fault:
            self.dismiss(table)
            raise

    def _start(self) -> ForeignEngine:
        for attempt in range(_TRIES):
            try:
                return engine.start(self.text, self._game, self._terms, self._made)
            except NotStarted as error:
                if attempt == _TRIES - 1 or self._ending or error.fault.kind == "time":
                    raise
        raise AssertionError

    def _made(self, process: Process) -> None:
        with self._lock:
            self._processes = [known for known in self._processes if known.running]
            self._processes.append(process)
            if self._ending:
                process.kill()
