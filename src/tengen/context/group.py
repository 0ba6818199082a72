"""Games that think and move together: they live on the device, and the host knows who they are."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from tengen.context.batches import Batch
from tengen.context.game_seat import GameSeat
from tengen.context.program import ContextProgram
from tengen.context.settings import ContextSettings
from tengen.selfplay.openings import PreparedGames


class EndedGame(NamedTuple):
    """A game that is over."""

    seat: GameSeat
    result: float  # for player 0
    facts: dict[str, float]
    rows: dict[str, np.ndarray] | None  # what it teaches, if somebody wants to know


class News(NamedTuple):
    """What happened in a turn."""

    ended: list[EndedGame]
    begun: list[GameSeat]
    moves: int  # that were made


class Group:
    """G places for games. Nothing here is for two threads at the same time."""

    def __init__(self, program: ContextProgram, numbers: Callable[[], int | None], settings: ContextSettings) -> None:
        """`numbers` gives new games their numbers, and None if there shall be no more."""
        self._program, self._numbers, self._settings = program, numbers, settings
        self._place: Any = None
        self._notes: Any = None
        self._shown: dict[str, np.ndarray] = {}  # [G * K, ...] what was asked, as a batch wants it
        self._ply = np.zeros(program.plan.size, np.int32)
        self.seats: list[GameSeat | None] = [None] * program.plan.size
        self._number = np.zeros(program.plan.size, np.int64)
        self._version = np.zeros((2, program.plan.size), np.int64)
        self._shared = np.zeros(program.plan.size, bool)  # both colours have the same network
        rows = program.plan.size * program.thinking.leaves
        self._logits = np.zeros((rows, program.game.num_actions), np.float32)
        self._value = np.zeros(rows, np.float32)
        self.wanted = np.zeros(0, np.int64)  # rows that have to be evaluated before the next turn
        self.missing = 0  # how many of them are not yet

    def start(self, key: Any, games: int) -> News:
        """Begin so many games; other places stay empty for ever."""
        size = len(self.seats)
        names = [self._numbers() if place < games else None for place in range(size)]
        live = np.array([name is not None for name in names])
        self._place, openings = self._program.start(key, live)
        begun = self._sit_down(dict(zip(range(size), names, strict=True)), openings)
        self._ask()
        return News([], begun, 0)

    def turn(self) -> News:
        """Go on with the answers: until something else has to be evaluated, or no game is left."""
        program = self._program
        self._place, ready = program.answer(self._place, self._notes, self._logits, self._value)
        ready = np.array(ready)
        news = News([], [], 0)
        if ready.any():
            self._place, moved = program.move(self._place, self._shared, self._temperature())
            news = self._moved(ready, jax.device_get(moved))
            ready[[seat.place for seat in news.begun]] = True
            self._place = program.begin(self._place, ready)
        self._ask()
        return news

    @property
    def playing(self) -> bool:
        """Whether there is any game."""
        return any(seat is not None for seat in self.seats)

    def show(self, rows: np.ndarray, batch: Batch, start: int) -> None:
        """Copy what was asked into a batch, from the row `start` on."""
        to = slice(start, start + len(rows))
        for name, values in self._shown.items():
            np.take(values, rows, 0, out=batch[name][to], mode="clip")  # which is not buffered
        places = rows // self._program.thinking.leaves
        batch["ply"][to] = self._ply[places]
        batch["game"][to] = self._number[places]
        batch["version"][to] = self._version[self._shown["colour"][rows], places]

    def hear(self, rows: np.ndarray, policy: np.ndarray, value: np.ndarray) -> None:
        """The answers for these rows."""
        self._logits[rows] = policy
        self._value[rows] = value
        self.missing -= len(rows)

    def assign(self, seat: GameSeat, versions: tuple[int, int], one_network: bool) -> None:
        """Which networks play a game that has just begun; `one_network` if one function speaks for both colours."""
        seat.versions = versions
        self._version[:, seat.place] = versions
        self._shared[seat.place] = one_network and versions[0] == versions[1]

    def of_colour(self, colour: int) -> np.ndarray:
        """Those of the rows `wanted` in which that player thinks."""
        return self.wanted[self._shown["colour"][self.wanted] == colour]

    def _temperature(self) -> np.ndarray:
        """Float32[G]: of the choice of the next moves."""
        warm = self._settings.temperature_moves
        hot = np.ones(len(self._ply), bool) if warm is None else self._ply < warm
        return np.where(hot, self._settings.temperature, 0).astype(np.float32)

    def _ask(self) -> None:
        asked = self._program.ask(self._place)
        self._notes = asked.notes
        wanted, planes, scalars, legal, player, colour = jax.device_get(
            (asked.wanted, *asked.observation, asked.legal, asked.player, asked.colour)
        )
        self._shown = {
            "planes": planes,
            "scalars": scalars,
            "legal": legal,
            "player": player.astype(np.int8),
            "colour": colour.astype(np.int8),
        }
        self.wanted = np.flatnonzero(wanted)
        self.missing = len(self.wanted)

    def _moved(self, ready: np.ndarray, moved: Any) -> News:
        """Note the moves; replace the games that are over."""
        actions, values = moved.action.tolist(), np.clip(moved.value, -1, 1).tolist()
        for place in np.flatnonzero(ready).tolist():
            seat = self._seat(place)
            seat.actions.append(actions[place])
            seat.values.append(values[place])
        self._ply += ready
        if not moved.over.any():
            return News([], [], int(ready.sum()))
        ended, names = [], {}
        for place in np.flatnonzero(moved.over).tolist():
            facts = {name: float(values[place]) for name, values in moved.facts.items()}
            ended.append(EndedGame(self._seat(place), float(moved.result[place]), facts, self._rows(place)))
            names[place] = self._numbers()
            self.seats[place] = None
        again = np.zeros(len(self.seats), bool)
        again[[place for place, name in names.items() if name is not None]] = True
        self._place, openings = self._program.renew(self._place, moved.over, again)
        return News(ended, self._sit_down(names, openings), int(ready.sum()))

    def _sit_down(self, names: dict[int, int | None], openings: PreparedGames) -> list[GameSeat]:
        """The new games, by their places."""
        actions, length, seed = jax.device_get((openings.actions, openings.length, openings.seed))
        begun = []
        for place, name in names.items():
            if name is not None:
                count = int(length[place])
                moves = [int(action) for action in actions[place, :count]]
                seat = GameSeat(name, place, np.array(seed[place]), moves, count)
                self.seats[place], self._ply[place], self._number[place] = seat, count, name
                begun.append(seat)
        return begun

    def _rows(self, place: int) -> dict[str, np.ndarray] | None:
        if self._program.teach is None:
            return None
        number = self._seat(place).number
        words = np.array([number >> 32, number & 0xFFFFFFFF], np.uint32)
        rows, kept = jax.device_get(self._program.teach(self._place, np.int32(place), words))
        return {name: values[kept] for name, values in rows.items()}

    def _seat(self, place: int) -> GameSeat:
        seat = self.seats[place]
        assert seat is not None
        return seat
