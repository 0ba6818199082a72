"""Counting all move sequences on the device, as a check that known numbers exist for."""

from functools import cache
from typing import Any

import jax
import numpy as np

from tengen.games.core import Game
from tests.helpers.game_recording import jit, start


@cache
def _programs(game: Game, compiler: Any) -> tuple[Any, Any]:
    return compiler(jax.vmap(game.legal_actions)), compiler(jax.vmap(game.step))


def perft(game: Game, depth: int, chunk: int, state: Any = None, compiler: Any = jit) -> list[int]:
    """How many sequences of 1, 2, ..., `depth` legal moves there are; `chunk` moves are made at once.

    `state` is where they begin, the start of the game unless it is given. `jax.jit` as the compiler takes longer to
    compile, and is faster where there is much to count.
    """
    look, play = _programs(game, compiler)
    counts = [0] * depth

    def descend(states: Any, ply: int) -> None:
        """Count from at most `chunk` states."""
        some = len(jax.tree.leaves(states)[0])
        full = jax.tree.map(lambda leaf: np.resize(leaf, (chunk, *leaf.shape[1:])), states)
        parents, actions = np.nonzero(np.asarray(look(full))[:some])
        counts[ply] += len(actions)
        for at in range(0, len(actions) if ply + 1 < depth else 0, chunk):
            chosen = np.arange(at, min(at + chunk, len(actions)))
            wide = np.resize(chosen, chunk)
            after = play(jax.tree.map(lambda leaf: leaf[parents[wide]], full), actions[wide].astype(np.int32))
            descend(jax.tree.map(lambda leaf: np.asarray(leaf)[: len(chosen)], after), ply + 1)

    one = start(game, 1) if state is None else jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
    descend(jax.tree.map(np.asarray, jax.vmap(game.split)(one)[0]), 0)
    return counts
