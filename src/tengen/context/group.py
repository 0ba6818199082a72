"""Games that think and move together: they are on the device, and the host has their numbers and versions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from tengen.context.batches import Batch, EndedGame, Versions
from tengen.context.program import ContextProgram
from tengen.context.questions import Questions
from tengen.context.settings import ContextSettings


class News(NamedTuple):
    """What happened in a turn."""

    ended: list[EndedGame]
    begun: list[int]  # the places of new games
    moves: int  # how many were made


class Group:
    """G places for games. Not safe for two threads at the same time."""

    def __init__(
        self,
        program: ContextProgram,
        numbers: Callable[[], int | None],
        settings: ContextSettings,
        fields: frozenset[str],
    ) -> None:
        """`numbers` gives each new game its number, and None when there should be no more games.

        `fields` are the fields of positions that some batch holds.
        """
        size, rows = program.plan.size, program.plan.size * program.thinking.leaves
        self._program, self._numbers = program, numbers
        warm = settings.temperature_moves
        most = np.iinfo(np.int32).max
        self._temperature = np.float32(settings.temperature), np.int32(most if warm is None else min(warm, most))
        self._state: Any = None
        self._notes: Any = None
        self.questions = Questions(
            *(rows, program.thinking.leaves, program.game.num_actions, fields, settings.arrays == "jax")
        )
        self.number = np.full(size, -1, np.int64)  # the game in each place; -1 for none
        self._version = np.zeros((2, size), np.int64)
        self._shared = np.zeros(size, bool)  # both colours have the same network

    def start(self, key: Any, games: int) -> News:
        """Begin this many games; the other places stay empty."""
        begun = self._name(range(games))
        self._state = self._program.start(key, self.number >= 0)
        self._ask()
        return News([], begun, 0)

    def turn(self) -> News:
        """Go on with the answers, until something else has to be evaluated or no game is left."""
        program, answers = self._program, (self.questions.logits, self.questions.value)
        self._state, ready = program.answer(self._state, self._notes, *answers)
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

    @property
    def versions(self) -> set[int]:
        """The versions that its games use."""
        return set(self._version[:, self.number >= 0].ravel().tolist())

    def show(self, rows: np.ndarray, batch: Batch, start: int) -> None:
        """Copy these rows of its positions into a batch, from the row `start` on."""
        self.questions.show(rows, batch, start, self.number, self._version)

    def assign(self, place: int, versions: Versions, one_network: bool) -> None:
        """Set the versions of a game that has just begun; `one_network`: one function answers for both colours."""
        self._version[:, place] = versions
        self._shared[place] = one_network and versions[0] == versions[1]

    def _ask(self) -> None:
        query, ply, features = self._program.ask(self._state)
        self._notes = query.notes
        self.questions.ask(query, ply, features)

    def _replace(self, over: np.ndarray, moves: int) -> News:
        """Collect the games that are over, Bool[G], and begin new ones in their places."""
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
        """Number the new games in these places; returns the places that got a number."""
        for place in places:
            number = self._numbers()
            self.number[place] = -1 if number is None else number
        return [place for place in places if self.number[place] >= 0]
