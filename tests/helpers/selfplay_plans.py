"""The programs that test files share, and the games that they play. Compiling takes the time, so plans are few."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen.config.settings.search import SearchSettings
from tengen.config.settings.selfplay import SelfplaySettings
from tengen.data.format.rows import RowFormat
from tengen.games.core import Game, Observation
from tengen.nets.outputs import Evaluation
from tengen.selfplay.collector import on_host
from tengen.selfplay.history import Finished
from tengen.selfplay.playing import Actor, Selfplay
from tests.helpers import emulator
from tests.helpers.game_recording import jit, make
from tests.helpers.search_plans import ALL_FRILLS, NO_FRILLS
from tests.helpers.search_positions import DOUBLE_MOVE, hashed

SESSION = 77
CALLS, PHASES = 20, 12  # of the games that tests share
EVALUATOR = (2.0, 1.0)  # sharpness and weight of `hashed`


@dataclass(frozen=True, eq=False)
class Plan:
    """What is compiled. `room`: Finished has place for one game of the greatest length and so many rows and games."""

    game: Game
    searching: SearchSettings
    settings: SelfplaySettings
    room: tuple[int, int] | None = None


def evaluate(num_actions: int) -> Any:
    """An evaluator that knows nothing, but always the same."""

    def nonsense(parameters: Any, observation: Observation) -> Evaluation:
        return hashed(observation, num_actions, *parameters, xp=jnp)

    return nonsense


@cache
def selfplay(plan: Plan) -> Selfplay:
    """Compiled quickly rather than well; nothing is donated, so that tests may look at old actors."""
    game = plan.game
    form = RowFormat.of(game, ("opponent_policy", *(target.name for target in game.extra_targets)))
    made = Selfplay(game, evaluate(game.num_actions), plan.searching, plan.settings, form)
    if plan.room is not None:
        made.together = 1
        made.rows_room = game.max_moves + plan.room[0]
        made.games_room = 1 + plan.room[1]
    made.start = jit(made._start)
    made.play = jit(made._play)
    return made


@dataclass(frozen=True, eq=False)
class Played:
    """What several calls of `play` gave; NumPy arrays."""

    plan: Plan
    calls: list[Finished]
    actors: list[Actor]  # before the first call, after the first call, ...
    everything: Finished  # of all calls

    @property
    def games(self) -> int:
        return len(self.everything.length)


def play(plan: Plan, calls: int, phases: int, seed: int = 0) -> Played:
    """New games, and so many calls of `play`."""
    how = selfplay(plan)
    actors, found = [how.start(jax.random.key(seed))], []
    for _ in range(calls):
        actor, finished = how.play(EVALUATOR, actors[-1], np.int32(phases), np.uint32(SESSION))
        actors.append(actor)
        found.append(jax.tree.map(np.asarray, on_host(finished)))

    def joined(*parts: Any) -> Any:
        return np.concatenate(parts) if parts[0].ndim else np.sum(parts)

    return Played(plan, found, actors, jax.tree.map(joined, *found))


played = cache(play)


def by_game(games: Played) -> dict[int, dict[int, dict[str, Any]]]:
    """Game -> ply -> row. No ply is there twice."""
    found: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
    rows = games.everything.rows
    assert (rows["game"][:, 0] == SESSION).all()
    for index, (ply, (_, number)) in enumerate(zip(rows["ply"], rows["game"], strict=True)):
        assert int(ply) not in found[int(number)]
        found[int(number)][int(ply)] = {name: values[index] for name, values in rows.items()}
    return found


PUCT: dict[str, Any] = {"algorithm": "puct", "forced_playouts": 0.0}

# A turn is two moves, rows of cheap searches are kept, and there is seldom room for all games that end.
CROWDED = Plan(
    DOUBLE_MOVE,
    SearchSettings(simulations=6, **PUCT),
    SelfplaySettings(games=24, full_share=0.5, cheap_simulations=4, cheap_weight=0.25, opening_moves=3),
    room=(20, 3),
)
# Komi is drawn, games end by passes or at the move limit, and rows have all targets.
GO = Plan(
    make("go", size=3, komi=2.5, max_moves=16),
    SearchSettings(simulations=8, considered=4),
    SelfplaySettings(games=32, full_share=0.6, cheap_simulations=2, surprise_share=0.5, opening_moves=4,
                     temperature=1.5, last_temperature=0.2, halving_plies=4, komi_spread=2.0),
)  # fmt: skip
# No planes, players that choose among different things, and each game with a start of its own.
HIRONAKA = Plan(
    make("hironaka", max_points=4, max_moves=12, rescale=False),
    SearchSettings(simulations=4, considered=4),
    SelfplaySettings(games=8, full_share=1.0, reuse=False, opening_moves=1),
)
# Nothing is left to chance but the openings: what a search says can be found again.
CERTAIN = Plan(
    make("tic_tac_toe"),
    SearchSettings(simulations=9, algorithm="puct", **NO_FRILLS),
    SelfplaySettings(games=8, full_share=0.5, cheap_simulations=3, cheap_weight=0.5, value_horizon=3, reuse=False,
                     opening_moves=100, temperature=0.0, last_temperature=0.0),
)  # fmt: skip
FAST = {"double_move": CROWDED, "go3": GO, "hironaka": HIRONAKA, "tic_tac_toe": CERTAIN}

OTHELLO = Plan(
    make("othello"),
    SearchSettings(simulations=4, considered=4),
    SelfplaySettings(games=8, full_share=0.3, cheap_simulations=2, cheap_weight=0.1, opening_moves=20),
)
CONNECT_FOUR = Plan(
    make("connect_four"),
    SearchSettings(simulations=8, algorithm="puct", **ALL_FRILLS),
    SelfplaySettings(games=16, full_share=0.5, cheap_simulations=4),
)
LEAFY = Plan(
    make("go", size=5, max_moves=40),
    SearchSettings(simulations=8, algorithm="puct", leaves=2, **ALL_FRILLS),
    SelfplaySettings(games=16, full_share=0.5, cheap_simulations=2, cheap_weight=0.5, komi_spread=1.0),
)
KERNELS = Plan(
    make("hex", size=4, swap=True),
    SearchSettings(simulations=6, kernels="gpu" if emulator.is_available() else "auto"),
    SelfplaySettings(games=8, full_share=0.5, cheap_simulations=3, opening_moves=2),
)
SLOW = {"othello": OTHELLO, "connect_four": CONNECT_FOUR, "go5": LEAFY, "hex": KERNELS}
