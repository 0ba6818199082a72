"""Games that think and move together: they live on the device, and the host knows their numbers and versions."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tengen.context import device_rows
from tengen.context.program import ContextProgram
from tengen.context.settings import ContextSettings
from tengen.selfplay.finished import FinishedGames

Versions = tuple[int, int]
"""The versions of black's and white's network."""


class EndedGame(NamedTuple):
    """A game that is over."""

    number: int
    versions: Versions
    finished: FinishedGames  # this one game, on the host


class News(NamedTuple):
    """What happened in a turn."""

    ended: list[EndedGame]
    begun: list[int]  # the places of new games
    moves: int  # how many were made


class Group:
    """G places for games. Not safe for two threads at the same time."""

    def __init__(self, program: ContextProgram, numbers: Callable[[], int | None], settings: ContextSettings) -> None:
        """`numbers` gives each new game its number, and None when there are to be no more games."""
        size, rows = program.plan.size, program.plan.size * program.thinking.leaves
        self._program, self._numbers = program, numbers
        warm = settings.temperature_moves
        most = np.iinfo(np.int32).max
        self._temperature = np.float32(settings.temperature), np.int32(most if warm is None else min(warm, most))
        self._state: Any = None
        self._notes: Any = None
        self._shown: dict[str, np.ndarray] = {}  # [G * K, ...] the positions to evaluate, by the names of a batch
        self.number = np.full(size, -1, np.int64)  # the game in each place; -1 for none
        self._version = np.zeros((2, size), np.int64)
        self._shared = np.zeros(size, bool)  # both colours have the same network
        self._observation: Any = None  # on the device, if it stays there
        self._on_device = settings.arrays == "jax"
        zeros = jnp.zeros if self._on_device else np.zeros
        self._logits: Any = zeros((rows, program.game.num_actions), np.float32)
        self._value: Any = zeros(rows, np.float32)
        self.wanted = np.zeros(0, np.int64)  # rows that have to be evaluated before the next turn
        self.missing = 0  # how many of them are not yet

    def start(self, key: Any, games: int) -> News:
        """Begin this many games; the other places stay empty."""
        begun = self._name(range(games))
        self._state = self._program.start(key, self.number >= 0)
        self._ask()
        return News([], begun, 0)

    def turn(self) -> News:
        """Go on with the answers: until something else has to be evaluated, or no game is left."""
        program = self._program
        self._state, ready = program.answer(self._state, self._notes, self._logits, self._value)
        ready = np.array(ready)
        news = News([], [], int(ready.sum()))
        if ready.any():
            self._state, over = program.move(self._state, self._shared, *self._temperature)
            over = np.asarray(over)
            if over.any():
                news = self._replace(over, news.moves)
            ready[news.begun] = True
            self._state = program.begin(self._state, ready)
        self._ask()
        return news

    @property
    def playing(self) -> bool:
        """Whether there is any game."""
        return bool((self.number >= 0).any())

    def show(self, rows: np.ndarray, batch: dict[str, Any], start: int) -> None:
        """Copy these rows into a batch, from the row `start` on."""
        to = slice(start, start + len(rows))
        for name, values in self._shown.items():
            np.take(values, rows, 0, out=batch[name][to], mode="clip")  # which is not buffered
        if self._on_device:
            before = (batch["planes"], batch["scalars"])
            batch["planes"], batch["scalars"] = device_rows.place(before, self._observation, rows, start)
        places = rows // self._program.thinking.leaves
        batch["game"][to] = self.number[places]
        batch["version"][to] = self._version[self._shown["colour"][rows], places]

    def hear(self, rows: np.ndarray, reply: Mapping[str, Any], start: int) -> None:
        """The answers for these rows, which are those of a batch's reply from `start` on."""
        policy, value = reply["policy"], reply["value"]
        if self._on_device:
            before = (self._logits, self._value)
            self._logits, self._value = device_rows.hear(before, (policy, value), rows, start)
        else:
            self._logits[rows] = policy[start : start + len(rows)]
            self._value[rows] = value[start : start + len(rows)]
        self.missing -= len(rows)

    def assign(self, place: int, versions: Versions, one_network: bool) -> None:
        """Set the networks of a game that has just begun; `one_network` if one function speaks for both colours."""
        self._version[:, place] = versions
        self._shared[place] = one_network and versions[0] == versions[1]

    def of_colour(self, colour: int) -> np.ndarray:
        """Those of the rows `wanted` in which that player thinks."""
        return self.wanted[self._shown["colour"][self.wanted] == colour]

    def _ask(self) -> None:
        query, ply = self._program.ask(self._state)
        self._notes = query.notes
        self._observation = tuple(query.observation)
        shown = {} if self._on_device else dict(zip(("planes", "scalars"), self._observation, strict=True))
        wanted, shown, legal, player, colour, ply = jax.device_get(
            (query.wanted, shown, query.legal, query.player, query.colour, ply)
        )
        self._shown = {
            **shown,
            "legal": legal,
            "player": player.astype(np.int8),
            "colour": colour.astype(np.int8),
            "ply": ply,
        }
        self.wanted = np.flatnonzero(wanted)
        self.missing = len(self.wanted)

    def _replace(self, over: np.ndarray, moves: int) -> News:
        """Take the games that are over, Bool[G], and begin new ones in their places."""
        places = np.flatnonzero(over).tolist()
        ended = []
        for place in places:
            finished = jax.device_get(self._program.end(self._state, np.int32(place)))
            black, white = self._version[:, place].tolist()
            ended.append(EndedGame(int(self.number[place]), (black, white), finished))
        begun = self._name(places)
        self._state = self._program.renew(self._state, over, over & (self.number >= 0))
        return News(ended, begun, moves)

    def _name(self, places: Any) -> list[int]:
        """Give the new games in these places their numbers; the places that get one."""
        for place in places:
            number = self._numbers()
            self.number[place] = -1 if number is None else number
        return [place for place in places if self.number[place] >= 0]
