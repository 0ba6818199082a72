"""Go on a GPU, for batches of games: rules (`go.cu`), and ladders and areas for KataGo's observation."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int16, Int32, UInt, UInt32

from tengen import gpu
from tengen.gpu.program import defines

# Bits of the marks of a point. The first twelve are the planes of the observation, in their order.
LEGAL = 1 << 12
_THREADS = 128  # in a block


class GoPosition(NamedTuple):
    """The part of a state that a move changes; fields as in `go.GoState`."""

    chains: Array
    turn: Array
    moves: Array
    last: Array
    ko: Array
    hash: Array
    recent: Array


class GoLook(NamedTuple):
    """What the program returns about the new boards."""

    marks: Int16[Array, "batch points"]  # the planes of the observation and LEGAL, as bits
    ended: Int32[Array, " batch"]  # 1 if the game is over
    area: Int32[Array, " batch"]  # Black's points minus White's if the game is over, otherwise 0


class GoRules(NamedTuple):
    """The constants of a compiled program."""

    size: int
    suicide: bool
    superko: bool
    situational: bool
    max_moves: int


def _teams(points: int) -> int:
    """Games per block: one warp plays a small board."""
    return _THREADS // 32 if points <= 128 else 1


def _chain(dtype: Any) -> str:
    """The type of a chain's number in memory."""
    return "u8" if np.dtype(dtype).itemsize == 1 else "u16"


def program(rules: GoRules, batch: int, kept: int, older: int, chain: Any) -> gpu.Program:
    """The program for a batch of games; `kept` and `older` are the lengths of the lists of positions."""
    teams = _teams(rules.size**2)
    return gpu.Program(
        "games/go.cu",
        "go_move_and_look",
        threads=_THREADS,
        defines=defines(
            SIZE=rules.size,
            TEAM=_THREADS // teams,
            TEAMS=teams,
            BATCH=batch,
            MAX_MOVES=rules.max_moves,
            KEPT=kept,
            OLDER=older,
            SUICIDE=rules.suicide,
            SUPERKO=rules.superko,
            SITUATIONAL=rules.situational,
            CHAIN=_chain(chain),
        ),
    )


def move_and_look(
    rules: GoRules,
    before: GoPosition,
    history: UInt32[Array, "batch older 2"],
    actions: Int32[Array, " batch"],
    stay: Bool[Array, " batch"],
    keys: UInt32[np.ndarray, "2 2 _"],
) -> tuple[GoPosition, GoLook]:
    """Plays `actions` in every game, except in games that have ended or are marked in `stay`.

    `history` holds further positions that must not repeat. `keys` [word, colour, point] are the random numbers of the
    stones, whose sum is the hash; the last point stands for the turn.
    """
    batch, points = before.chains.shape
    kept, older = before.recent.shape[1], history.shape[1]
    nothing = jnp.zeros((1,), jnp.uint32)  # in place of an empty list, which has no memory
    recent, history = (x if x.size else nothing for x in (before.recent, history))
    kernel = program(rules, batch, kept, older, before.chains.dtype)
    number = jax.ShapeDtypeStruct((batch,), jnp.int32)
    inputs = before._replace(recent=recent)
    found = gpu.call(
        kernel,
        [*inputs, history, actions.astype(jnp.int32), stay.astype(jnp.uint8), jnp.asarray(keys)],
        [
            *(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs),
            jax.ShapeDtypeStruct((batch, points), jnp.int16),
            number,
            number,
        ],
        blocks=-(-batch // _teams(points)),
    )
    after = GoPosition(*found[: len(inputs)])
    after = after if kept else after._replace(recent=before.recent)
    return after, GoLook(*found[len(inputs) :])


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
            EXACT=2 * depth >= 3 * points, CHAIN=_chain(chains.dtype),
        ),
    )  # fmt: skip
    shape = jax.ShapeDtypeStruct(chains.shape, jnp.uint8)
    (marks,) = gpu.call(program, [chains, ko, turn], [shape], blocks=-(-batch // games))
    return marks & 1 > 0, marks & 2 > 0


def areas(chains: UInt[Array, "batch points"], size: int, suicide: bool) -> Bool[Array, "batch 2 points"]:
    """The points of Black and White, as `go_katago.areas` gives them."""
    batch, points = chains.shape
    teams = _teams(points)
    program = gpu.Program(
        "games/go_areas.cu",
        "go_areas",
        threads=_THREADS,
        defines=defines(
            SIZE=size, BATCH=batch, TEAM=_THREADS // teams, TEAMS=teams, SUICIDE=suicide, CHAIN=_chain(chains.dtype)
        ),
    )
    (owner,) = gpu.call(program, [chains], [jax.ShapeDtypeStruct(chains.shape, jnp.uint8)], blocks=-(-batch // teams))
    return owner[:, None] == jnp.array([1, 2], jnp.uint8)[:, None]
