"""Go's rules on a GPU: `step_and_look` for a batch of games (`go.cu`)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int16, Int32, UInt32

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


def teams(rules: GoRules) -> int:
    """Games per block: one warp plays a small board."""
    return _THREADS // 32 if rules.size**2 <= 128 else 1


def program(rules: GoRules, batch: int, kept: int, older: int, chain: Any) -> gpu.Program:
    """The program for a batch of games; `kept` and `older` are the lengths of the lists of positions."""
    return gpu.Program(
        "games/go.cu",
        "go_move_and_look",
        threads=_THREADS,
        defines=defines(
            SIZE=rules.size,
            TEAM=_THREADS // teams(rules),
            TEAMS=teams(rules),
            BATCH=batch,
            MAX_MOVES=rules.max_moves,
            KEPT=kept,
            OLDER=older,
            SUICIDE=rules.suicide,
            SUPERKO=rules.superko,
            SITUATIONAL=rules.situational,
            CHAIN="u8" if np.dtype(chain).itemsize == 1 else "u16",
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
        blocks=-(-batch // teams(rules)),
    )
    after = GoPosition(*found[: len(inputs)])
    after = after if kept else after._replace(recent=before.recent)
    return after, GoLook(*found[len(inputs) :])
