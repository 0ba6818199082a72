"""Chains of stones on a square board, as arrays over its points.

`chains[p]` is 0 on an empty point and otherwise `1 + 2 * root + colour`, where `root` is one stone of the chain. So two
stones belong together exactly if their numbers are equal, and the number gives the colour. Everything below compares
neighbours and sums over equal numbers; only areas (`reached`) are found by spreading from point to point.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, Integer, Shaped, UInt, UInt32

from tengen.games.batching import joined

EMPTY = 0
Chains = UInt[Array, " points"]
PointMask = Bool[Array, " points"]
Sums = Integer[Array, " points"]
Number = Int32[Array, ""]


class Around(NamedTuple):
    """The value above, below, left and right of every point."""

    up: Shaped[Array, " points"]
    down: Shaped[Array, " points"]
    left: Shaped[Array, " points"]
    right: Shaped[Array, " points"]


def chain_dtype(size: int) -> type:
    return jnp.uint8 if 2 * size * size <= 255 else jnp.uint16


def around(values: Shaped[Array, " points"], size: int, outside: int | bool) -> Around:
    """The four neighbours of every point; beyond the edge the value is `outside`."""
    padded = jnp.pad(values.reshape(size, size), 1, constant_values=outside)
    middle = slice(1, size + 1)
    sides = padded[:size, middle], padded[2:, middle], padded[middle, :size], padded[middle, 2:]
    return Around(*(side.reshape(-1) for side in sides))


def colour_is(chains: UInt[Array, "*points"], colour: Array | int) -> Bool[Array, "*points"]:
    """Where there is a stone of that colour (0 or 1)."""
    return (chains != EMPTY) & (((chains - 1) & 1) == colour)


def first_of_its_chain(near: Around) -> tuple[Array, Array, Array, Array]:
    """For each direction, where no earlier direction shows the same chain number.

    So a chain that touches an empty point from several sides is counted once.
    """
    up, down, left, right = near
    return (
        jnp.ones_like(up, dtype=bool),
        down != up,
        (left != up) & (left != down),
        (right != up) & (right != down) & (right != left),
    )


def any_around(mask: PointMask, size: int) -> PointMask:
    """Whether a neighbour of each point is in the mask."""
    return jnp.stack(around(mask, size, False)).any(0)


def chain_sums(chains: Chains, values: tuple[Sums, ...]) -> tuple[Sums, ...]:
    """For each of the `values`: at every stone the sum over the stones of its chain."""
    points = chains.shape[0]
    root = jnp.where(chains == EMPTY, points, (chains.astype(jnp.int32) - 1) >> 1)
    return tuple(jnp.zeros(points + 1, v.dtype).at[root].add(v)[root] for v in values)


def sums_of_liberties(chains: Chains, near: Around, size: int, worth: Sequence[Sums | int]) -> Sums:
    """At every stone, the sum over its chain's liberties: `worth` is that of the liberties below, above, right, left.

    Each liberty is claimed by one stone of the chain.
    """
    empty = chains == EMPTY
    up, down, left, right = (around(empty & first, size, False) for first in first_of_its_chain(near))
    # The stone above an empty point finds that point below itself, and so on.
    claims = zip((up.down, down.up, left.right, right.left), worth, strict=True)
    claimed = sum(jnp.where(claim, value, 0) for claim, value in claims)
    return chain_sums(chains, (jnp.where(empty, 0, claimed).astype(jnp.int32),))[0]


class ChainMove(NamedTuple):
    """The effect of a move."""

    chains: Chains
    captured: PointMask  # stones of the other player
    died: PointMask  # own stones, in a suicide
    ko: Number  # where the other player may not recapture at once, or -1


def beside(point: Number, size: int) -> tuple[Int32[Array, "4"], Bool[Array, "4"]]:
    """The neighbours of a point, and which of them are on the board; none are for a pass (any other number)."""
    points, row, column = size * size, point // size, point % size
    inside = jnp.stack([row > 0, row < size - 1, column > 0, column < size - 1]) & (point < points)
    return jnp.clip(jnp.stack([point - size, point + size, point - 1, point + 1]), 0, points - 1), inside


def move(chains: Chains, action: Number, me: Number, size: int, suicide: bool) -> ChainMove:
    """Puts a stone of player `me` on point `action`; a pass (any other number) leaves the board as it is."""
    points = size * size
    placed = jnp.arange(points, dtype=jnp.int32) == action
    at, inside = beside(action, size)
    near = jnp.where(inside, chains[at], EMPTY)  # [4]
    mine, theirs = colour_is(near, me), colour_is(near, 1 - me)

    free = (chains == EMPTY) & ~placed
    touches_free = any_around(free, size)
    member = chains[:, None] == near[None, :]  # [P, 4]
    alive = (member & touches_free[:, None]).any(0)
    captured = (member & (theirs & ~alive)).any(1)
    captures = captured.sum(dtype=jnp.int32)
    joined = placed | (member & mine).any(1)
    number = (1 + 2 * action + me).astype(chains.dtype)
    after = jnp.where(joined, number, jnp.where(captured, EMPTY, chains))
    died = jnp.zeros_like(placed)
    if suicide:
        breathes = (joined & touches_free).any() | (captures > 0)
        died = joined & ~breathes
        after = jnp.where(died, EMPTY, after)
    alone = (theirs | ~inside).all()
    ko = jnp.where((captures == 1) & alone, jnp.argmax(captured), -1)
    return ChainMove(after, captured, died, ko)


class ChainSurvey(NamedTuple):
    """What player `me` may do on every point, ko apart."""

    liberties: Int32[Array, " points"]  # of the chain at each stone
    playable: PointMask
    lives: PointMask  # a stone there is not suicide
    goes: Bool[Array, "4 points"]  # the chain on that side disappears, counted once if it is on several sides


def survey(chains: Chains, me: Number, size: int, suicide: bool) -> ChainSurvey:
    """Surveys all points of a board at once."""
    empty = chains == EMPTY
    mine = colour_is(chains, me)
    near = around(chains, size, EMPTY)
    liberties = sums_of_liberties(chains, near, size, (1, 1, 1, 1))
    free_beside, safe_beside = any_around(empty, size), any_around(mine & (liberties >= 2), size)
    capture = jnp.stack(around(~empty & ~mine & (liberties == 1), size, False))
    own_beside = jnp.stack(around(mine, size, False))
    lives = free_beside | safe_beside | capture.any(0)
    playable = empty & (lives | own_beside.any(0)) if suicide else empty & lives
    goes = jnp.where(lives, capture, own_beside) & jnp.stack(first_of_its_chain(near))
    return ChainSurvey(liberties, playable, lives, goes)


def hashes_after(
    chains: Chains, seen: ChainSurvey, me: Number, now: UInt32[Array, "2"], keys: UInt32[Array, "2 2 points"], size: int
) -> UInt32[Array, "points 2"]:
    """The hash of the position after a stone of `me` on every playable point.

    `now` is the hash of the position, and `keys` [word, colour, point] the random number of every stone.
    """
    stones = jnp.where(colour_is(chains, 1), keys[:, 1], keys[:, 0])
    sums = chain_sums(chains, (stones[0], stones[1]))
    after = []
    for word in (0, 1):
        gone = jnp.where(seen.goes, jnp.stack(around(sums[word], size, 0)), 0).sum(0, dtype=jnp.uint32)
        added = jnp.where(seen.lives, jnp.where(me == 0, keys[word, 0], keys[word, 1]), 0)
        after.append(now[word] + added - gone)
    return jnp.stack(after, -1)


def chains_of(colours: Sequence[int], size: int) -> np.ndarray:
    """The chain numbers of a position given as colours (-1 empty). Raises ValueError if a chain has no liberty."""
    chains = np.zeros(size * size, chain_dtype(size))
    for root, colour in enumerate(colours):
        if colour < 0 or chains[root] != EMPTY:
            continue
        reached, liberty = {root}, False
        waiting = [root]
        while waiting:
            row, column = divmod(waiting.pop(), size)
            for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                point = r * size + c
                if not (0 <= r < size and 0 <= c < size) or point in reached:
                    continue
                liberty |= colours[point] < 0
                if colours[point] == colour:
                    reached.add(point)
                    waiting.append(point)
        if not liberty:
            raise ValueError(f"go: the stones around row {root // size + 1}, column {root % size + 1} have no liberty")
        chains[list(reached)] = 1 + 2 * root + colour
    return chains


_MOST_PAIRS = 2**25  # of points, on all boards of a batch, whose connections are found at once


def reached(
    stones: Bool[Array, "2 points"], empty: PointMask, size: int, wanted: Array | bool = True
) -> Bool[Array, "2 points"]:
    """The stones of each colour, and all empty points that are connected with them.

    Boards that are not `wanted` may have any result, and do not slow down a batch.
    """
    step_by_step = partial(reached_step_by_step, size=size)
    return lax.platform_dependent(stones, empty, jnp.asarray(wanted), cuda=reached_on_gpu(size), default=step_by_step)


def reached_on_gpu(size: int) -> Callable[..., Array]:
    """`reached` for GPUs, which would wait after each step of a loop, while the host asks whether it was the last one.

    Only on so many large boards that products need too much memory are there steps.
    """

    @joined
    def found(*boards: Array) -> Array:
        way: Any = reached_at_once if len(boards[0]) * size**4 <= _MOST_PAIRS else reached_step_by_step
        return jax.vmap(partial(way, size=size))(*boards)

    return lambda *board: found(*(part[None] for part in board))[0]


def reached_step_by_step(
    stones: Bool[Array, "2 points"], empty: PointMask, wanted: Bool[Array, ""], size: int
) -> Bool[Array, "2 points"]:
    """`reached` in as many steps as it takes."""

    def spread(reach: PointMask) -> PointMask:
        return reach | (empty & any_around(reach, size))

    def body(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        wider = jnp.stack([spread(spread(reach)) for reach in carry[0]])
        return wider, (wider != carry[0]).any()

    return lax.while_loop(lambda carry: carry[1], body, (stones & wanted, jnp.bool_(True)))[0]


def reached_at_once(
    stones: Bool[Array, "2 points"], empty: PointMask, wanted: Bool[Array, ""], size: int
) -> Bool[Array, "2 points"]:
    """`reached` by a fixed number of products: which points are at most 1, 2, 4, 8, ... steps apart."""
    del wanted  # so that all who ask for the same boards share the answer
    rows, columns = np.divmod(np.arange(size * size), size)
    near = abs(rows[:, None] - rows) + abs(columns[:, None] - columns) <= 1
    linked = jnp.asarray(near) & empty & empty[:, None]
    for _ in range((size * size - 1).bit_length()):
        linked = _any_product(linked, linked)
    beside = jnp.stack([any_around(mask, size) for mask in stones]) & empty
    return stones | _any_product(beside, linked)


def _any_product(a: Bool[Array, "rows inner"], b: Bool[Array, "inner columns"]) -> Bool[Array, "rows columns"]:
    """Whether there is a place where both the row of `a` and the column of `b` have a True."""
    return jnp.matmul(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)) > 0  # sums of ones, rounded, are not 0


def results(score: Float32[Array, "*batch"]) -> Float32[Array, "*batch 2"]:
    """The results of both players, given Black's final score."""
    return jnp.stack([jnp.sign(score), -jnp.sign(score)], -1)


def repeats(situation: UInt32[Array, "points 2"], past: UInt32[Array, "length 2"], count: Array | int) -> PointMask:
    """Whether each `situation` is among the first `count` of the list `past`."""
    chunk = min(32, past.shape[0])  # so that a short game does not pay for the longest possible one

    def compare(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        start, found = carry
        first, second = lax.dynamic_slice_in_dim(past, start, chunk).T[:, :, None]
        return start + chunk, found | ((situation[:, 0] == first) & (situation[:, 1] == second)).any(0)

    nothing = (jnp.int32(0), jnp.zeros(len(situation), bool))
    return lax.while_loop(lambda carry: carry[0] < count, compare, nothing)[1]
