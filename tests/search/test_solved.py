"""Solved positions: with an evaluator that knows nothing, the search finds what they are worth."""

import random
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game, Observation
from tengen.nets.outputs import Evaluation
from tengen.search.result import SearchResult
from tests.helpers.game_recording import jit, make
from tests.helpers.search_positions import after, hashed, stacked
from tests.oracles.tic_tac_toe import TicTacToe

SETTINGS = [
    SearchSettings(algorithm="puct", simulations=400, c_init=0.7, noise_share=0, forced_playouts=0),
    SearchSettings(algorithm="gumbel", simulations=400, gumbel_scale=0, value_scale=1.0),
]
WORTH = {"win in 1": 1, "win in 3": 1, "loss": -1, "draw": 0}


@cache
def program(game: Game, settings: SearchSettings) -> Any:
    def evaluate(observation: Observation) -> Evaluation:
        return hashed(observation, game.num_actions, 0.0, 0.0, xp=jnp)

    def run(roots: Any, key: Any) -> tuple[SearchResult, Any]:
        tree = search.plant(game, settings, roots)
        batch = tree.root.shape[0]
        budget = jnp.full(batch, settings.simulations)
        tree = search.finish(evaluate, search.begin(tree, key, budget, jnp.ones(batch, bool)))
        result = search.summarise(tree, key)
        each = jnp.arange(batch)
        child = tree.child[each, tree.root, result.action].astype(jnp.int32)
        side = 1 - 2 * tree.player[each, tree.root]
        return result, side * tree.total[each, child] / tree.visits[each, child]

    return jit(run)


def searched(game: Game, settings: SearchSettings, games: list[list[int]]) -> tuple[SearchResult, np.ndarray]:
    """The positions after these moves, searched; and the mean value [B] of the move that was chosen."""
    roots = stacked([after(game, moves) for moves in games])
    return jax.tree.map(np.asarray, program(game, settings)(roots, jax.random.key(0)))


def check_values(settings: SearchSettings, result: SearchResult, chosen: np.ndarray, worth: np.ndarray) -> None:
    assert (np.abs(chosen - worth) < 0.2).all(), chosen
    if settings.algorithm == "puct":  # Gumbel's root looks at the alternatives just as often, for comparison
        assert (np.abs(result.value - worth) < 0.3).all(), result.value


def value(game: TicTacToe) -> int:
    """With best play, for the player to move."""
    if game.over:
        return game.returns()[game.to_play]
    return max(-value(later) for later in game.replies().values())


@cache
def solved_tic_tac_toe(kind: str, count: int = 4) -> list[list[int]]:
    """Games up to a position of that kind, with three to five empty points."""
    rng = random.Random(kind)
    found: list[list[int]] = []
    while len(found) < count:
        moves = rng.sample(range(9), rng.randint(4, 6))
        game = TicTacToe()
        for action in moves:
            if game.legal_actions()[action]:
                game.play(action)
        if game.over or moves in found:
            continue
        wins_now = any(later.over and later.returns() != (0, 0) for later in game.replies().values())
        if value(game) == WORTH[kind] and wins_now == (kind == "win in 1"):
            found.append(moves)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.algorithm)
def test_tic_tac_toe(settings: SearchSettings) -> None:
    games = [(moves, worth) for kind, worth in WORTH.items() for moves in solved_tic_tac_toe(kind)]
    result, chosen = searched(make("tic_tac_toe"), settings, [moves for moves, _ in games])
    check_values(settings, result, chosen, np.array([worth for _, worth in games]))
    for (moves, worth), action in zip(games, result.action.tolist(), strict=True):
        game = TicTacToe()
        for move in moves:
            game.play(move)
        assert -value(game.replies()[action]) == worth, f"{action} after {moves} throws something away"


@pytest.mark.parametrize(
    "settings", [SETTINGS[0], pytest.param(SETTINGS[1], marks=pytest.mark.slow)], ids=["puct", "gumbel"]
)
def test_connect_four(settings: SearchSettings) -> None:
    columns = {  # the moves so far: the result for the player to move, and the moves that keep it
        "010101": (1, {0}),  # four in column 0
        "2233": (1, {1, 4}),  # three in the bottom row, open on both sides
        "22334": (-1, set(range(7))),  # which is what the other player faces
        "1644645441235322536632124566512003": (0, set(range(7))),  # eight points are left, a draw by exhaustive search
    }
    games = [[int(column) for column in moves] for moves in columns]
    result, chosen = searched(make("connect_four"), settings, games)
    check_values(settings, result, chosen, np.array([worth for worth, _ in columns.values()]))
    for action, (_, good) in zip(result.action.tolist(), columns.values(), strict=True):
        assert action in good
