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
# Ladders on small boards, and on large ones: games and threads of a block, blocks on a multiprocessor.
_READING = {True: (8, 256, 4), False: (1, 128, 1)}


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


def katago(
    chains: UInt[Array, "batch points"],
    ko: Int16[Array, " batch"],
    turn: Int32[Array, " batch"],
    size: int,
    suicide: bool,
    moves: int,
    depth: int,
    ladders: bool = True,
    areas: bool = True,
) -> UInt32[Array, "batch 4 words"]:
    """A bit for every point, see `unpack`.

    The stones captured in ladders and the moves that start one, as `go_ladders.read` gives them with these limits, and
    the points of Black and White, as `go_katago.areas` does. What is not wanted stays 0.
    """
    batch, points = chains.shape
    games, threads, blocks = _READING[points <= 128]
    program = gpu.Program(
        "games/go_katago.cu",
        "go_katago",
        threads=threads,
        defines=defines(
            SIZE=size, BATCH=batch, GAMES=games, THREADS=threads, BLOCKS=blocks,
            LADDERS=ladders, AREAS=areas, MOVES=moves, DEPTH=depth, EXACT=2 * depth >= 3 * points, SUICIDE=suicide,
            CHAIN=_chain(chains.dtype),
        ),
        header="games/go_bits.cuh",
    )  # fmt: skip
    shape = jax.ShapeDtypeStruct((batch, 4, -(-points // 32)), jnp.uint32)
    return gpu.call(program, [chains, ko, turn], [shape], blocks=-(-batch // games))[0]


def ladders(
    chains: UInt[Array, "batch points"], ko: Array, turn: Array, size: int, moves: int, depth: int
) -> Bool[Array, "batch 2 points"]:
    """The stones captured in ladders, and the moves that start one."""
    found = katago(chains, ko.astype(jnp.int16), turn.astype(jnp.int32), size, False, moves, depth, areas=False)
    return unpack(found[:, :2], size * size)


def areas(chains: UInt[Array, "batch points"], size: int, suicide: bool) -> Bool[Array, "batch 2 points"]:
    """The points of Black and White."""
    nothing = jnp.zeros(len(chains), jnp.int16)
    found = katago(chains, nothing, nothing.astype(jnp.int32), size, suicide, 1, 1, ladders=False)
    return unpack(found[:, 2:], size * size)


def pack(mask: Bool[Array, "*rows points"]) -> UInt32[Array, "*rows words"]:
    """A bit for every point."""
    rows, points = mask.shape[:-1], mask.shape[-1]
    padded = jnp.pad(mask, [*[(0, 0)] * len(rows), (0, -points % 32)]).reshape(*rows, -1, 32).astype(jnp.uint32)
    return (padded << jnp.arange(32, dtype=jnp.uint32)).sum(-1, dtype=jnp.uint32)


def unpack(packed: UInt32[Array, "*rows words"], points: int) -> Bool[Array, "*rows points"]:
    bits = (packed[..., None] >> jnp.arange(32, dtype=jnp.uint32)) & 1
    return bits.reshape(*packed.shape[:-1], -1)[..., :points] > 0
