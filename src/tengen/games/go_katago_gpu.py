"""Ladders and areas of Go on a GPU, for KataGo's observation (`go_ladders.cu`, `go_areas.cu`)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int16, Int32, UInt

from tengen import gpu
from tengen.gpu.program import defines

_THREADS = 128  # in a block


def ladders(
    chains: UInt[Array, "batch points"],
    ko: Int16[Array, " batch"],
    turn: Int32[Array, " batch"],
    size: int,
    moves: int,
    depth: int,
) -> tuple[Bool[Array, "batch points"], Bool[Array, "batch points"]]:
    """The stones captured in ladders, and the moves that start one, as `go_ladders.read` gives them."""
    batch, points = chains.shape
    games = 8 if points <= 128 else 4  # in a block: enough for all of its threads to have something to read
    program = gpu.Program(
        "games/go_ladders.cu",
        "go_ladders",
        threads=_THREADS,
        defines=defines(
            SIZE=size, BATCH=batch, GAMES=games, THREADS=_THREADS, MOVES=moves, DEPTH=depth,
            EXACT=2 * depth >= 3 * points, CHAIN=_chain(chains),
        ),
    )  # fmt: skip
    (marks,) = gpu.call(program, [chains, ko, turn], [_bytes(chains)], blocks=-(-batch // games))
    return marks & 1 > 0, marks & 2 > 0


def areas(chains: UInt[Array, "batch points"], size: int, suicide: bool) -> Bool[Array, "batch 2 points"]:
    """The points of Black and White, as `go_katago.areas` gives them."""
    batch, points = chains.shape
    teams = _THREADS // 32 if points <= 128 else 1
    program = gpu.Program(
        "games/go_areas.cu",
        "go_areas",
        threads=_THREADS,
        defines=defines(
            SIZE=size, BATCH=batch, TEAM=_THREADS // teams, TEAMS=teams, SUICIDE=suicide, CHAIN=_chain(chains)
        ),
    )
    (owner,) = gpu.call(program, [chains], [_bytes(chains)], blocks=-(-batch // teams))
    return owner[:, None] == jnp.array([1, 2], jnp.uint8)[:, None]


def _chain(chains: Array) -> str:
    """The type of a chain's number in memory."""
    return "u8" if np.dtype(chains.dtype).itemsize == 1 else "u16"


def _bytes(chains: Array) -> jax.ShapeDtypeStruct:
    """A byte for every point."""
    return jax.ShapeDtypeStruct(chains.shape, jnp.uint8)
