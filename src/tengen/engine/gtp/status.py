"""The end of a game of Go: which stones are dead, and the score without them."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from tengen.engine.engine import Engine
from tengen.games.go import NO_POINT, Go
from tengen.games.go_chains import EMPTY


def running(game: Go, state: Any) -> Any:
    """The position, in which the game goes on even if it was over.

    Two passes are forgotten; after the longest game that the rules allow, the past is.
    """
    if not bool(game.is_over(state)):
        return state
    if int(state.moves) >= game.max_moves:
        fresh = game.position(state.chains, int(state.turn))
        return fresh._replace(komi=state.komi, ko=state.ko)
    return unpassed(state)


def unpassed(state: Any) -> Any:
    """The position as if nobody had passed: the next pass does not end the game. The board's past is kept."""
    return state._replace(last=jnp.full_like(state.last, NO_POINT))


def dead(engine: Engine, game: Go) -> np.ndarray:
    """Bool[P]: stones that the network's ownership gives to the other side, whole chains at a time.

    A network without that head has no opinion: all stones are alive, as the area rules that it plays by have it.
    """
    state = running(game, engine.state)
    look = engine.look(state)
    chains = np.asarray(state.chains).astype(int)
    found = np.zeros(len(chains), bool)
    if look.ownership is None:
        return found
    black = look.ownership.reshape(-1) * (1 if look.player == 0 else -1)
    for chain in set(chains[chains != EMPTY].tolist()):
        mine = black[chains == chain].mean() * (1 if (chain - 1) % 2 == 0 else -1)
        found[chains == chain] = mine < 0
    return found


def score(engine: Engine, game: Go, dead: np.ndarray) -> float:
    """Black's area minus White's minus komi, with the dead stones, Bool[P], taken off."""
    chains = jnp.where(jnp.asarray(dead), EMPTY, engine.state.chains)
    return float(game.score(engine.state._replace(chains=chains.astype(engine.state.chains.dtype))))
