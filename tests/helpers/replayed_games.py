"""Finished games played again, move by move, by the rules alone; and what their rows must then say."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import jax
import numpy as np

from tengen.data.records.moves import start_of
from tests.helpers import game_recording
from tests.helpers.selfplay_plans import Played

BATCH = 64  # games of one record


@dataclass(frozen=True)
class Replay:
    """One game: arrays over its plies, the position after the last move included."""

    record: game_recording.Record
    column: int
    length: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.record, name)[: self.length + 1, self.column]

    @cached_property
    def final(self) -> dict[str, np.ndarray]:
        """The final targets, for player 0."""
        return {name: values[self.length, self.column] for name, values in self.record.targets.items()}

    def state(self, ply: int) -> Any:
        return self.record.state(ply, self.column)


@cache
def replays(played: Played) -> list[Replay]:
    """All finished games again. What happens after their last recorded move is left to chance."""
    game, found = played.plan.game, played.everything
    starts = [_start(played, number) for number in range(played.games)]
    moments = game.max_moves + 2
    games: list[Replay] = []
    for first in range(0, played.games, BATCH):
        columns = [min(first + column, played.games - 1) for column in range(BATCH)]
        actions = np.full((moments, BATCH), game_recording.ANY, np.int32)
        actions[: game.max_moves] = found.action[columns].T
        states = jax.tree.map(lambda *leaves: np.stack(leaves), *(starts[column] for column in columns))
        record = game_recording.record(game, states, actions=actions)
        lengths = found.length[first : first + BATCH]
        games += [Replay(record, column, int(length)) for column, length in enumerate(lengths)]
    return games


def _start(played: Played, number: int) -> Any:
    """How that game began."""
    game, found = played.plan.game, played.everything
    text = start_of(game, found.seed[number])
    if game.name == "hironaka":
        assert text is not None
        return jax.tree.map(np.asarray, game.from_text(text))
    assert text is None
    if game.name == "go":
        return game_recording.new(game)._replace(komi=np.int16(2 * found.extra["komi"][number]))
    return game_recording.new(game)
