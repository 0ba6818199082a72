"""Counting all move sequences on the device, as a check that known numbers exist for."""

from typing import Any

import jax
import numpy as np

from tengen.games.core import Game
from tests.helpers.game_recording import jit, start


def perft(game: Game, depth: int, chunk: int) -> list[int]:
    """How many sequences of 1, 2, ..., `depth` legal moves there are; `chunk` moves are made at once."""

    @jit
    def play(states: Any, actions: Any) -> tuple[Any, Any]:
        after = jax.vmap(game.step)(states, actions)
        return after, jax.vmap(game.legal_actions)(after)

    level = jax.tree.map(np.asarray, start(game, 1))
    legal = np.asarray(jit(jax.vmap(game.legal_actions))(level))
    counts = [int(legal.sum())]
    while len(counts) < depth:
        parents, actions = np.nonzero(legal)
        parts = []
        for at in range(0, len(actions), chunk):
            chosen = np.arange(at, min(at + chunk, len(actions)))
            full = np.resize(chosen, chunk)
            after = play(jax.tree.map(lambda leaf: leaf[parents[full]], level), actions[full].astype(np.int32))
            parts.append(jax.tree.map(lambda leaf: np.asarray(leaf)[: len(chosen)], after))
        level, legal = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
        counts.append(int(legal.sum()))
    return counts
