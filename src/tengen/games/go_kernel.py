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

# The bits of a point. The first twelve are the planes of the observation, in their order.
ON, MINE, THEIRS, ONE, TWO, THREE, BANNED, *AGO, LEGAL = (1 << bit for bit in range(13))


class Position(NamedTuple):
    """What a move changes; fields as in `go.GoState`."""

    chains: Array
    turn: Array
    moves: Array
    last: Array
    ko: Array
    hash: Array
    recent: Array


class Seen(NamedTuple):
    """What the program says of the new boards."""

    marks: Array  # Int16[B, P]: the bits above
    ended: Array  # Int32[B]: 1 where the game is over
    area: Array  # Int32[B]: Black's points minus White's where it is, otherwise 0


class Rules(NamedTuple):
    """What is fixed when the program is compiled."""

    size: int
    suicide: bool
    superko: bool
    situational: bool
    max_moves: int
    interpret: bool


def move_and_look(
    rules: Rules, before: Position, history: Array, actions: Array, stay: Array, keys: np.ndarray
) -> tuple[Position, Seen]:
    """Play `actions` (Int32[B]) in every game, except where it has ended or `stay` (Bool[B]) says not to.

    `history` UInt32[B, H, 2] holds further positions that may not come again. `keys` UInt32[2 words, 2 colours, P + 1]
    are the random numbers of stones, whose sum is the hash, and of the turn.
    """
    batch, points = before.chains.shape
    words = partial(lax.bitcast_convert_type, new_dtype=jnp.int32)  # sums wrap around alike, and GPUs add int32
    nothing = jnp.full((batch, 1, 2), 0xFFFFFFFF, jnp.uint32)
    kernel = partial(_kernel, rules, before.recent.shape[1], history.shape[1])
    recent, history = (x if x.size else nothing for x in (before.recent, history))
    inputs = before._replace(hash=words(before.hash), recent=words(recent))
    scratch = [jax.ShapeDtypeStruct((batch, points), jnp.int32)] * (3 if rules.superko else 1)
    number = jax.ShapeDtypeStruct((batch,), jnp.int32)
    seen = (jax.ShapeDtypeStruct((batch, points), jnp.int16), number, number)  # the fields of Seen
    warps = 1 if points <= 128 else 4
    found = pl.pallas_call(
        kernel,
        grid=(batch,),
        out_shape=[*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs), *seen, *scratch],
        interpret=rules.interpret,
        compiler_params=None if rules.interpret else plgpu.CompilerParams(num_warps=warps, num_stages=2),
        name="go_move_and_look",
    )(*inputs, words(history), actions.astype(jnp.int32), stay.astype(jnp.int32), words(jnp.asarray(keys)))
    after = Position(*found[: len(Position._fields)])
    hash_ = lax.bitcast_convert_type(after.hash, jnp.uint32)
    kept = lax.bitcast_convert_type(after.recent, jnp.uint32) if before.recent.size else before.recent
    return after._replace(hash=hash_, recent=kept), Seen(*found[len(after) : len(after) + len(seen)])


class _Turn(NamedTuple):
    """What happens in this game; scalars."""

    action: Array  # a point, or P where the board stays as it is
    player: Array  # who plays it
    next_player: Array  # who looks at the board afterwards
    rests: Array  # Bool: nothing changes
    ended: Array  # Bool: nothing is legal afterwards


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


def _kernel(rules: Rules, kept: int, older: int, *refs):
    size = len(Position._fields)
    before, after = Position(*refs[:size]), Position(*refs[size + 4 : 2 * size + 4])
    history, actions, stay, keys = refs[size : size + 4]
    seen, scratch = Seen(*refs[2 * size + 4 : 2 * size + 7]), refs[2 * size + 7 :]
    game = pl.program_id(0)
    width = max(16, 1 << (rules.size**2 - 1).bit_length())
    lane = lax.broadcasted_iota(jnp.int32, (width,), 0)
    lanes = _Lanes(game, rules.size, lane, lane // rules.size, lane % rules.size)
    barrier = (lambda: None) if rules.interpret else plgpu.debug_barrier

    turn = _turn(rules, game, before, actions, stay)
    chain, ko, placed_hash = _move(rules, lanes, before, turn, keys, after)
    lanes.write(after.chains, chain)
    last = _write_counters(rules, game, before, after, turn, actions)
    if rules.superko:
        _write_recent(rules, game, kept, before, after, turn, keys, placed_hash)
    barrier()
    near = [lanes.read(after.chains, *step)[0] for step in AROUND]
    values = [_claims(lanes, after.chains, chain)]
    if rules.superko:
        values += [_stone_key(keys, lanes, word, chain) for word in (0, 1)]
    for ref, value in zip(scratch, values, strict=True):
        lanes.write(ref, value)
    barrier()
    sums = _chain_sums(rules, game, after.chains, scratch, chain)
    barrier()
    for ref, value in zip(scratch, sums, strict=True):
        lanes.write(ref, value)
    barrier()
    # A node remembers a fixed number of positions, of which the new one, which cannot come again, will be one.
    past = jnp.minimum(before.moves[game].astype(jnp.int32) + 1, older)
    lists = ((before.recent, kept, kept - 1 + turn.rests.astype(jnp.int32)), (history, older, past))
    result = _look(rules, lanes, chain, near, sums[0], scratch, turn, keys, placed_hash, ko, lists)
    for bit, point in zip(AGO, last, strict=True):
        result |= jnp.where(lane == point, bit, 0)
    lanes.write(seen.marks, result | ON)
    barrier()
    seen.ended[game] = turn.ended.astype(jnp.int32)
    seen.area[game] = _area(lanes, chain, scratch[0], turn.ended, barrier)


def _turn(rules, game, before, actions, stay) -> _Turn:
    points = rules.size**2
    newest, second = before.last[game, 0].astype(jnp.int32), before.last[game, 1].astype(jnp.int32)
    moves, me, action = before.moves[game].astype(jnp.int32), before.turn[game].astype(jnp.int32), actions[game]
    over = ((newest == points) & (second == points)) | (moves >= rules.max_moves)
    stays = stay[game] > 0
    rests = over | stays
    ends = ((action == points) & (newest == points)) | (moves + 1 >= rules.max_moves)
    return _Turn(
        action=jnp.where(rests, points, action),
        player=me,
        next_player=jnp.where(rests, me, 1 - me),
        rests=rests,
        ended=over | ((stay[game] == 0) & ends),
    )


def _write_counters(rules, game, before, after, turn, actions):
    """Whose turn it is, the number of moves and the newest moves; the last are also given, as scalars."""
    after.turn[game] = turn.next_player.astype(after.turn.dtype)
    moved = 1 - turn.rests.astype(jnp.int32)
    after.moves[game] = (before.moves[game].astype(jnp.int32) + moved).astype(after.moves.dtype)
    old = [before.last[game, k].astype(jnp.int32) for k in range(len(AGO))]
    last = [jnp.where(turn.rests, now, then) for now, then in zip(old, [actions[game], *old[:-1]], strict=True)]
    for k, point in enumerate(last):
        after.last[game, k] = point.astype(after.last.dtype)
    return last


def _write_recent(rules, game, kept, before, after, turn, keys, placed_hash):
    """The new position at the head of the list."""
    slot = lax.broadcasted_iota(jnp.int32, (max(16, 1 << (kept - 1).bit_length()),), 0)
    for word in (0, 1):
        now = placed_hash[word] + _turn_key(rules, keys, word, turn.next_player)
        source = jnp.where(turn.rests, slot, slot - 1)
        old = plgpu.load(before.recent.at[game, jnp.maximum(source, 0), word], mask=slot < kept, other=0)
        plgpu.store(after.recent.at[game, slot, word], jnp.where(source < 0, now, old), mask=slot < kept)


def _turn_key(rules, keys, word, player):
    """What makes a hash comparable with the lists of positions when `player` is to move."""
    return keys[word, player, rules.size**2] if rules.situational else 0


def _move(rules, lanes, before, turn, keys, after):
    """Play the move: the new chains, the ko point and the hash as two scalars; ko and hash are also stored."""
    game, size, lane = lanes.game, rules.size, lanes.lane
    points = size * size
    chains, action, me = before.chains, turn.action, turn.player
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
    old_ko = jnp.where(turn.rests, before.ko[game].astype(jnp.int32), -1)
    ko = jnp.where((count == 1) & alone, ko_point, old_ko)
    after.ko[game] = ko.astype(after.ko.dtype)
    placed_hash = []
    for word in (0, 1):
        change = jnp.where(placed, _key(keys, lanes, word, me), 0)
        change -= jnp.where(captured, _key(keys, lanes, word, 1 - me), 0)
        if rules.suicide:
            change -= jnp.where(died, _key(keys, lanes, word, me), 0)
        total = before.hash[game, word] + jnp.sum(change)
        after.hash[game, word] = total
        placed_hash.append(total)
    return chain, ko, placed_hash


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


def _look(rules, lanes, chain, near, liberties, scratch, turn, keys, placed_hash, ko, lists):
    """The bits of every point, without those of the newest moves."""
    game, lane = lanes.game, lanes.lane
    me = turn.next_player
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
    banned = lane == ko
    if rules.superko:
        up, down, left, right = near
        first = (
            jnp.ones_like(empty), down != up, (left != up) & (left != down),
            (right != up) & (right != down) & (right != left),
        )  # fmt: skip
        goes = [jnp.where(lives, c, o) & f for c, o, f in zip(captures, owns, first, strict=True)]
        after = []
        for word in (0, 1):
            situation = placed_hash[word] + _turn_key(rules, keys, word, 1 - me)
            situation += jnp.where(lives, _key(keys, lanes, word, me), 0)
            for step, gone in zip(AROUND, goes, strict=True):
                situation -= jnp.where(gone, lanes.read(scratch[1 + word], *step)[0], 0)
            after.append(situation)

        seen = jnp.zeros_like(lane)
        for ref, length, count in lists:
            seen = lax.fori_loop(0, (count + TOGETHER - 1) // TOGETHER, _compare(game, ref, length, count, after), seen)
        banned |= seen > 0
    banned &= playable
    stone = chain != EMPTY
    result = jnp.where(mine, MINE, 0) | jnp.where(stone & ~mine, THEIRS, 0)
    for count, bit in ((1, ONE), (2, TWO), (3, THREE)):
        result |= jnp.where(stone & (liberties == count), bit, 0)
    result |= jnp.where(banned, BANNED, 0)
    return result | jnp.where(playable & ~banned & ~turn.ended, LEGAL, 0)


TOGETHER = 8  # positions read at once, because each read waits for memory


def _compare(game, ref, length, count, after):
    """A part of a loop over the first `count` positions of a list: which points lead to one of them."""

    def body(part, seen):
        for k in range(TOGETHER):
            place = part * TOGETHER + k
            at = jnp.minimum(place, length - 1)
            same = (after[0] == ref[game, at, 0]) & (after[1] == ref[game, at, 1]) & (place < count)
            seen |= jnp.where(same, 1, 0)
        return seen

    return body


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

    reached, _ = lax.while_loop(lambda carry: carry[1], spread, (stones, ended))
    points = jnp.where(reached == 1, 1, 0) - jnp.where(reached == 2, 1, 0)
    return jnp.where(ended, jnp.sum(points), 0)
