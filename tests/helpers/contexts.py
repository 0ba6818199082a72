"""What the tests of contexts share: functions that know nothing but always say the same, and whole runs."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tengen.config.settings.search import SearchSettings
from tengen.context import GameContext
from tengen.data.records import sgf, text
from tengen.data.records.records import Record
from tengen.games.core import Game, Observation
from tests.helpers import game_recording
from tests.helpers.search_positions import hashed

TIC_TAC_TOE = game_recording.make("tic_tac_toe")
CONNECT_FOUR = game_recording.make("connect_four")
CERTAIN: dict[str, Any] = {"noise_share": 0.0, "forced_playouts": 0.0, "gumbel_scale": 0.0}
SEARCH = SearchSettings(algorithm="puct", simulations=7, **CERTAIN)
SIDES = ((2.0, 1.0), (0.5, 0.7))  # sharpness and weight of `hashed` for black and white
OPENINGS: dict[str, Any] = {"opening_moves": 3}  # of tests that share one compiled program


@dataclass
class Speaker:
    """A callback that remembers what it was asked."""

    game: Game
    side: tuple[float, float]
    colours: set[int] = field(default_factory=set)
    versions: set[int] = field(default_factory=set)

    def __call__(self, batch: Any) -> dict[str, Any]:
        count = batch.count
        self.colours |= set(batch["colour"][:count].tolist())
        self.versions |= set(batch["version"][:count].tolist())
        seen = Observation(batch["planes"], batch["scalars"])
        policy, value, _ = hashed(seen, self.game.num_actions, *self.side)
        return {"policy": policy, "value": value}


@dataclass
class Run:
    """A context that has played all its games."""

    context: GameContext
    black: Any
    white: Any
    ends: list[dict[str, Any]]

    @property
    def records(self) -> list[Record]:
        return [read(end) for end in self.ends]


def read(end: dict[str, Any]) -> Record:
    """The record that `game_end` was told."""
    reader = sgf if end["record"].startswith("(") else text
    (record,) = reader.read(end["record"])
    return record


def played(game: Game, search: SearchSettings | None, black: Any, white: Any, games: int = 8, **options: Any) -> Run:
    """All games of a context."""
    ends: list[dict[str, Any]] = []
    sizes = {"num_games": 4, "batch_size": 2, "total_games": games} | options
    context = GameContext(game, search=search, **sizes)
    context.on("actor_black", black)
    context.on("actor_white", white)
    context.on("game_end", lambda end: ends.append(dict(end)))
    with context:
        while context.run() is not None:
            pass
    assert len(ends) == games
    return Run(context, black, white, ends)


def idle(batch: Any) -> dict[str, np.ndarray]:
    """An answer to anything."""
    return {"policy": np.zeros(batch["legal"].shape, np.float32), "value": np.zeros(len(batch["mask"]), np.float32)}


def waiting(**options: Any) -> GameContext:
    """A context with games of tic-tac-toe, not started."""
    context = GameContext(TIC_TAC_TOE, **({"num_games": 4, "batch_size": 2} | OPENINGS | options))
    context.on("actor_black", idle)
    context.on("actor_white", idle)
    return context
