"""Go positions for GTP: the places of handicap stones, dead stones, and the score without them."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from tengen.engine.engine import Engine
from tengen.engine.gtp.protocol import GtpError
from tengen.games.go import NO_POINT, Go
from tengen.games.go_chains import EMPTY


def fixed_handicap(size: int, count: int) -> list[int]:
    """The points of handicap stones by GTP's specification. GtpError if there are none for that number."""
    if not 2 <= count <= most_fixed(size):
        raise GtpError("invalid number of stones")
    edge = 2 if size < 12 else 3  # as GNU Go, whose author wrote the specification
    low, middle, high = edge, size // 2, size - 1 - edge  # rows and columns from the bottom left
    corners = [(low, low), (high, high), (low, high), (high, low)]
    sides = [(low, middle), (high, middle), (middle, low), (middle, high)]  # (column, row)
    points = corners[:count] if count < 4 else corners + sides[: (count - 4) // 2 * 2]
    if count > 4 and count % 2 == 1:
        points.append((middle, middle))
    return [(size - 1 - row) * size + column for column, row in points]


def most_fixed(size: int) -> int:
    """The most handicap stones that have fixed places."""
    if size < 7:
        return 0
    return 4 if size == 7 or size % 2 == 0 else 9


def running(game: Go, state: Any) -> Any:
    """The position with the game going on, even if it was over.

    Two passes are forgotten; at the move limit, all past positions are.
    """
    if not bool(game.is_over(state)):
        return state
    if int(state.moves) >= game.max_moves:
        return game.position(state.chains, int(state.turn), state.ko)._replace(komi=state.komi)
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
