"""A move and the look at the board after it, for a batch of Go games, as one GPU program per game.

The plain version in `go.py` spends its time between kernels; here a whole game stays in the registers and the first
cache of one multiprocessor. Points lie on vector lanes. What one point needs from another goes through memory that
only this program touches (`Scratch`), with a barrier before it is read.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from tengen.games.go_chains import EMPTY

MINE, THEIRS, ONE, TWO, THREE, BANNED, LEGAL = (1 << bit for bit in range(7))


class Turn(NamedTuple):
    """What happens in every game; Int32[B] unless said."""

    action: Array  # a point, or P where the board stays as it is
    player: Array  # who plays it
    next_player: Array  # who looks at the board afterwards
    recent: Array  # how many of the recent positions count
    past: Array  # how many of all positions count
    ended: Array  # 1 where nothing is legal afterwards
    kept_ko: Array  # the ko point where the move makes none, or -1
    shift: Array  # UInt32[B, 2]: what makes a hash comparable with the lists of positions


ACTION, PLAYER, NEXT_PLAYER, RECENT, PAST, ENDED, KEPT_KO, SHIFT = range(len(Turn._fields))  # columns in the program


class Board(NamedTuple):
    """What the move changes."""

    chains: Array  # [B, P] as in go_chains
    ko: Array  # Int32[B]
    hash: Array  # UInt32[B, 2]
    marks: Array  # UInt8[B, P]: the bits above
    area: Array  # Int32[B]: Black's points minus White's where nothing is legal any more, otherwise 0


class Rules(NamedTuple):
    """What is fixed when the program is compiled."""

    size: int
    suicide: bool
    superko: bool
    interpret: bool


def move_and_look(
    rules: Rules,
    chains: Array,
    hash_: Array,
    turn: Turn,
    recent: Array,
    history: Array,
    stone_keys: np.ndarray,
) -> Board:
    """Play `turn.action` in every game and mark the points of the new board.

    `recent` UInt32[B, R, 2] and `history` UInt32[B, H, 2] hold the positions that may not come again. `stone_keys`
    UInt32[2 words, 2 colours, P] are the random numbers whose sum is the hash.
    """
    batch, points = chains.shape
    words = partial(lax.bitcast_convert_type, new_dtype=jnp.int32)  # sums wrap around alike, and GPUs add int32
    scratch = [jax.ShapeDtypeStruct((batch, points), jnp.int32)] * (3 if rules.superko else 1)
    outputs = [
        jax.ShapeDtypeStruct((batch, points), chains.dtype),
        jax.ShapeDtypeStruct((batch,), jnp.int32),
        jax.ShapeDtypeStruct((batch, 2), jnp.int32),
        jax.ShapeDtypeStruct((batch, points), jnp.uint8),
        jax.ShapeDtypeStruct((batch,), jnp.int32),
    ]
    lists = [x if x.size else jnp.full((batch, 1, 2), 0xFFFFFFFF, jnp.uint32) for x in (recent, history)]
    scalars = jnp.stack([x.astype(jnp.int32) for x in turn[:-1]], -1)
    scalars = jnp.concatenate([scalars, words(turn.shift)], -1)
    warps = 1 if points <= 128 else 4
    chains, ko, hash_, marks, area, *_ = pl.pallas_call(
        partial(_kernel, rules),
        grid=(batch,),
        out_shape=[*outputs, *scratch],
        interpret=rules.interpret,
        compiler_params=None if rules.interpret else plgpu.CompilerParams(num_warps=warps, num_stages=2),
        name="go_move_and_look",
    )(chains, words(hash_), scalars, *map(words, lists), words(jnp.asarray(stone_keys)))
    return Board(chains, ko, lax.bitcast_convert_type(hash_, jnp.uint32), marks, area)


class _Lanes(NamedTuple):
    """The points of one board on the lanes of a program, and how to read at and beside them."""

    game: Array
    size: int
    lane: Array
    row: Array
    column: Array

    def read(self, ref: Any, rows: int = 0, columns: int = 0) -> tuple[Array, Array]:
        """The values `rows` below and `columns` right of every point (0 off the board), and which are on it."""
        row, column = self.row + rows, self.column + columns
        inside = (row >= 0) & (row < self.size) & (column >= 0) & (column < self.size)
        point = jnp.where(inside, self.lane + rows * self.size + columns, 0)
        value = plgpu.load(ref.at[self.game, point], mask=inside, other=0)
        return value.astype(jnp.int32), inside

    def write(self, ref: Any, value: Array) -> None:
        """Lanes beyond the board write nothing."""
        plgpu.store(ref.at[self.game, self.lane], value.astype(ref.dtype), mask=self.row < self.size)


def _colour_is(chain: Array, colour: Array) -> Array:
    return (chain != EMPTY) & (((chain - 1) & 1) == colour)


AROUND = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right: the order in which a liberty is claimed


def _kernel(rules: Rules, chains, hash_, turn, recent, history, keys, new_chains, ko, new_hash, marks, area, *scratch):
    game = pl.program_id(0)
    size = rules.size
    width = max(16, 1 << (size * size - 1).bit_length())
    lane = lax.broadcasted_iota(jnp.int32, (width,), 0)
    lanes = _Lanes(game, size, lane, lane // size, lane % size)
    barrier = (lambda: None) if rules.interpret else plgpu.debug_barrier

    chain, placed_hash = _move(rules, lanes, chains, hash_, turn, keys, ko, new_hash)
    lanes.write(new_chains, chain)
    barrier()
    near = [lanes.read(new_chains, *step)[0] for step in AROUND]
    values = [_claims(lanes, new_chains, chain)]
    if rules.superko:
        values += [_stone_key(keys, lanes, word, chain) for word in (0, 1)]
    for ref, value in zip(scratch, values, strict=True):
        lanes.write(ref, value)
    barrier()
    sums = _chain_sums(rules, game, new_chains, scratch, chain)
    barrier()
    for ref, value in zip(scratch, sums, strict=True):
        lanes.write(ref, value)
    barrier()
    result = _look(rules, lanes, chain, near, sums[0], scratch, turn, keys, placed_hash, ko, recent, history)
    lanes.write(marks, result)
    barrier()
    area[game] = _area(lanes, chain, scratch[0], turn[game, ENDED], barrier)


def _move(rules, lanes, chains, hash_, turn, keys, ko, new_hash):
    """Play the move: the new chains, and the hash as two scalars, which are also stored with the ko point."""
    game, size, lane = lanes.game, rules.size, lanes.lane
    points = size * size
    action, me = turn[game, ACTION], turn[game, PLAYER]
    on_board = lanes.row < size
    chain = lanes.read(chains)[0]
    placed = on_board & (lane == action)  # a pass is no point, but there may be a lane of that number
    touches_free = jnp.zeros_like(placed)
    for rows, columns in AROUND:
        beside, inside = lanes.read(chains, rows, columns)
        touches_free |= inside & (beside == EMPTY) & (lane + rows * size + columns != action)

    captured = jnp.zeros_like(placed)
    joined = placed
    alone = action < points
    for rows, columns in AROUND:
        row, column = action // size + rows, action % size + columns
        inside = (action < points) & (row >= 0) & (row < size) & (column >= 0) & (column < size)
        beside = chains[game, jnp.where(inside, row * size + column, 0)].astype(jnp.int32)
        beside = jnp.where(inside, beside, EMPTY)
        member = (chain == beside) & on_board
        theirs = _colour_is(beside, 1 - me)
        alive = jnp.max(jnp.where(member & touches_free, 1, 0)) > 0
        captured |= member & (theirs & ~alive)
        joined |= member & _colour_is(beside, me)
        alone &= theirs | ~inside
    count = jnp.sum(jnp.where(captured, 1, 0))
    number = 1 + 2 * action + me
    chain = jnp.where(joined, number, jnp.where(captured, EMPTY, chain))
    died = jnp.zeros_like(placed)
    if rules.suicide:
        breathes = (jnp.max(jnp.where(joined & touches_free, 1, 0)) > 0) | (count > 0)
        died = joined & ~breathes
        chain = jnp.where(died, EMPTY, chain)

    ko_point = jnp.max(jnp.where(captured, lane, -1))
    ko[game] = jnp.where((count == 1) & alone, ko_point, turn[game, KEPT_KO])
    placed_hash = []
    for word in (0, 1):
        change = jnp.where(placed, _key(keys, lanes, word, me), 0)
        change -= jnp.where(captured, _key(keys, lanes, word, 1 - me), 0)
        if rules.suicide:
            change -= jnp.where(died, _key(keys, lanes, word, me), 0)
        total = hash_[game, word] + jnp.sum(change)
        new_hash[game, word] = total
        placed_hash.append(total)
    return chain, placed_hash


def _key(keys, lanes, word, colour):
    """The random numbers of stones of that colour, one per lane."""
    on_board = lanes.row < lanes.size
    return plgpu.load(keys.at[word, colour, jnp.where(on_board, lanes.lane, 0)], mask=on_board, other=0)


def _stone_key(keys, lanes, word, chain):
    """The random number of the stone on every point, 0 where there is none."""
    on_board = lanes.row < lanes.size
    point = jnp.where(on_board, lanes.lane, 0)
    key = plgpu.load(keys.at[word, (chain - 1) & 1, point], mask=on_board, other=0)
    return jnp.where(chain == EMPTY, 0, key)


def _claims(lanes, chains, chain):
    """How many liberties each stone is the first of its chain to claim, in the order of AROUND seen from them."""

    def other(rows: int, columns: int) -> Array:
        return lanes.read(chains, rows, columns)[0] != chain

    def free(rows: int, columns: int) -> Array:
        beside, inside = lanes.read(chains, rows, columns)
        return inside & (beside == EMPTY)

    claims = jnp.where(free(1, 0), 1, 0)
    claims += jnp.where(free(-1, 0) & other(-2, 0), 1, 0)
    claims += jnp.where(free(0, 1) & other(-1, 1) & other(1, 1), 1, 0)
    claims += jnp.where(free(0, -1) & other(-1, -1) & other(1, -1) & other(0, -2), 1, 0)
    return jnp.where(chain == EMPTY, 0, claims)


def _chain_sums(rules, game, chains, scratch, chain):
    """At every stone: the sums of what `scratch` holds, over the stones of its chain."""

    def add_row(row, sums):
        for column in range(rules.size):  # unrolled, so that the loads of a row overlap
            point = row * rules.size + column
            same = chain == chains[game, point].astype(jnp.int32)
            sums = tuple(s + jnp.where(same, ref[game, point], 0) for s, ref in zip(sums, scratch, strict=True))
        return sums

    return lax.fori_loop(0, rules.size, add_row, (jnp.zeros_like(chain),) * len(scratch))


def _look(rules, lanes, chain, near, liberties, scratch, turn, keys, placed_hash, ko, recent, history):
    """The marks of every point."""
    game, lane = lanes.game, lanes.lane
    me, ended = turn[game, NEXT_PLAYER], turn[game, ENDED]
    on_board = lanes.row < rules.size
    empty = on_board & (chain == EMPTY)
    mine = _colour_is(chain, me)
    lives = jnp.zeros_like(empty)
    own_beside = jnp.zeros_like(empty)
    captures, owns = [], []
    for step, beside in zip(AROUND, near, strict=True):
        count, inside = lanes.read(scratch[0], *step)
        own = _colour_is(beside, me)
        capture = (beside != EMPTY) & ~own & (count == 1)
        lives |= (inside & (beside == EMPTY)) | (own & (count >= 2)) | capture
        own_beside |= own
        captures.append(capture)
        owns.append(own)
    playable = empty & (lives | own_beside) if rules.suicide else empty & lives
    banned = lane == ko[game]
    if rules.superko:
        up, down, left, right = near
        first = (
            jnp.ones_like(empty), down != up, (left != up) & (left != down),
            (right != up) & (right != down) & (right != left),
        )  # fmt: skip
        goes = [jnp.where(lives, c, o) & f for c, o, f in zip(captures, owns, first, strict=True)]
        after = []
        for word in (0, 1):
            situation = placed_hash[word] + turn[game, SHIFT + word] + jnp.where(lives, _key(keys, lanes, word, me), 0)
            for step, gone in zip(AROUND, goes, strict=True):
                situation -= jnp.where(gone, lanes.read(scratch[1 + word], *step)[0], 0)
            after.append(situation)

        def compare(ref):
            def body(i, seen):
                return seen | jnp.where((after[0] == ref[game, i, 0]) & (after[1] == ref[game, i, 1]), 1, 0)

            return body

        seen = lax.fori_loop(0, turn[game, RECENT], compare(recent), jnp.zeros_like(lane))
        seen = lax.fori_loop(0, turn[game, PAST], compare(history), seen)
        banned |= seen > 0
    banned &= playable
    stone = chain != EMPTY
    result = jnp.where(mine, MINE, 0) | jnp.where(stone & ~mine, THEIRS, 0)
    for count, bit in ((1, ONE), (2, TWO), (3, THREE)):
        result |= jnp.where(stone & (liberties == count), bit, 0)
    result |= jnp.where(banned, BANNED, 0)
    return result | jnp.where(playable & ~banned & (ended == 0), LEGAL, 0)


def _area(lanes, chain, scratch, ended, barrier):
    """Black's points minus White's in a game that has ended: stones, and empty points that one colour alone reaches."""
    empty = (lanes.row < lanes.size) & (chain == EMPTY)
    stones = jnp.where(chain == EMPTY, 0, 1 + ((chain - 1) & 1))  # bit 0: Black reaches it, bit 1: White does

    def spread(carry):
        reached, _ = carry
        lanes.write(scratch, reached)
        barrier()
        wider = reached
        for step in AROUND:
            wider |= jnp.where(empty, lanes.read(scratch, *step)[0], 0)
        barrier()
        return wider, jnp.max(jnp.where(wider != reached, 1, 0)) > 0

    reached, _ = lax.while_loop(lambda carry: carry[1], spread, (stones, ended > 0))
    points = jnp.where(reached == 1, 1, 0) - jnp.where(reached == 2, 1, 0)
    return jnp.where(ended > 0, jnp.sum(points), 0)
