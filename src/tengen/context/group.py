"""Games that think and move together on the device; the host has their numbers, versions and positions to evaluate."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tengen.context import batches
from tengen.context.batches import Batch, EndedGame, Versions
from tengen.context.program import ContextProgram
from tengen.context.settings import ContextSettings
from tengen.context.thinking import LeafQuery


class Questions:
    """K positions of each of G games, [G * K, ...]. Not safe for two threads at the same time."""

    def __init__(self, rows: int, leaves: int, num_actions: int, fields: frozenset[str], on_device: bool) -> None:
        """`fields`: those that some batch holds; with `on_device` observations, features and answers stay there."""
        self._leaves, self._fields, self._on_device = leaves, fields, on_device
        self._shown: dict[str, np.ndarray] = {}  # by the names of a batch
        self._arrays: dict[str, Any] = {}  # the observation, on the device if it stays there
        self._features: dict[str, dict[str, Any]] = {}  # label -> the arrays that its function of states gives
        zeros = jnp.zeros if on_device else np.zeros
        self.logits: Any = zeros((rows, num_actions), np.float32)
        self.value: Any = zeros(rows, np.float32)
        self.wanted = np.zeros(0, np.int64)  # rows that have to be evaluated
        self.missing = 0  # how many of them are not yet

    def ask(self, query: LeafQuery, ply: Any, features: dict[str, dict[str, Any]]) -> None:
        """Replace the positions by those of a query. `ply` Int32[G * K]: the moves made in their games."""
        arrays = dict(zip(("planes", "scalars"), query.observation, strict=True))
        arrays = {name: values for name, values in arrays.items() if name in self._fields}
        if not self._on_device:
            arrays, features = jax.device_get((arrays, features))
        self._arrays, self._features = arrays, features
        wanted, legal, player, colour, ply = jax.device_get(
            (query.wanted, query.legal, query.player, query.colour, ply)
        )
        shown = {"legal": legal, "player": player.astype(np.int8), "colour": colour.astype(np.int8), "ply": ply}
        self._shown = shown
        self.wanted = np.flatnonzero(wanted)
        self.missing = len(self.wanted)

    def show(self, rows: np.ndarray, batch: Batch, start: int, number: np.ndarray, version: np.ndarray) -> None:
        """Copy these rows into a batch, from the row `start` on.

        `number` Int64[G] are the numbers of the games, `version` Int64[2, G] the versions of both colours in them.
        """
        to, places = slice(start, start + len(rows)), rows // self._leaves
        arrays = self._arrays | self._features.get(batch.label, {})
        if self._on_device:
            before = {name: batch[name] for name in batch.device_fields}
            batch.update(batches.place(before, {name: arrays[name] for name in before}, rows, start))
            arrays = {}
        for name, values in (self._shown | arrays).items():
            if name in batch:
                np.take(values, rows, 0, out=batch[name][to], mode="clip")  # which is not buffered
        batch["version"][to] = version[self._shown["colour"][rows], places]
        if "game" in batch:
            batch["game"][to] = number[places]

    def hear(self, rows: np.ndarray, reply: Mapping[str, Any], start: int) -> None:
        """Store the answers for these rows: those of a batch's reply from `start` on."""
        policy, value = reply["policy"], reply["value"]
        if self._on_device:
            before = (self.logits, self.value)
            self.logits, self.value = batches.hear(before, (policy, value), rows, start)
        else:
            self.logits[rows] = policy[start : start + len(rows)]
            self.value[rows] = value[start : start + len(rows)]
        self.missing -= len(rows)

    def of_colour(self, colour: int) -> np.ndarray:
        return self.wanted[self._shown["colour"][self.wanted] == colour]


class TurnEvents(NamedTuple):
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
        """`numbers` gives each new game its number, None for no more games; `fields` are those of some batch."""
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

    def start(self, key: Any, games: int) -> TurnEvents:
        """Begin this many games; the other places stay empty."""
        begun = self._name(range(games))
        self._state = self._program.start(key, self.number >= 0)
        self._ask()
        return TurnEvents([], begun, 0)

    def turn(self) -> TurnEvents:
        """Go on with the answers, until something else has to be evaluated or no game is left."""
        program, answers = self._program, (self.questions.logits, self.questions.value)
        self._state, ready = program.answer(self._state, self._notes, *answers)
        ready = np.array(ready)
        news = TurnEvents([], [], int(ready.sum()))
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
        return bool((self.number >= 0).any())

    @property
    def versions(self) -> set[int]:
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

    def _replace(self, over: np.ndarray, moves: int) -> TurnEvents:
        """Collect the games that are over, Bool[G], and begin new ones in their places."""
        places = np.flatnonzero(over).tolist()
        ended = []
        for place in places:
            finished = jax.device_get(self._program.end(self._state, np.int32(place)))
            black, white = self._version[:, place].tolist()
            ended.append(EndedGame(int(self.number[place]), (black, white), finished))
        begun = self._name(places)
        self._state = self._program.renew(self._state, over, over & (self.number >= 0))
        return TurnEvents(ended, begun, moves)

    def _name(self, places: Any) -> list[int]:
        """Number the new games in these places; returns the places that got a number."""
        for place in places:
            number = self._numbers()
            self.number[place] = -1 if number is None else number
        return [place for place in places if self.number[place] >= 0]
