"""Reading ladders on many boards at once, as KataGo does for its inputs.

A chain with one liberty is read with its owner to move; a chain with two, after each move of the attacker on one of
them. Each of these is a task. The owner (the defender) takes a chain in atari next to his own, or extends; the
attacker plays on one of two liberties. Three liberties are an escape, and so is a ko, which the defender is assumed to
win.

The tasks of all boards form one queue. A number of readers, each with a stack of boards, take tasks from it and search
depth first; in every round each reader makes one move. So a long ladder on one board does not keep the others waiting.
On NVIDIA GPUs a program does the same (`go_katago.cu`).
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int16, Int32, UInt, UInt8

from tengen.games import go_chains as rules
from tengen.games import go_gpu
from tengen.games.batching import joined
from tengen.games.go_chains import EMPTY, Number, any_around

Boards = UInt[Array, "batch points"]  # chains
NOWHERE = -1
_READERS = 8  # few, because CPUs compute them one after the other, and the last ladders are waited for
_SHIFT = 512  # more than the points of a board


class LadderLimits(NamedTuple):
    """How far one ladder is read; beyond that its chain is not captured."""

    moves: int
    depth: int  # moves in a row


class Ladders(NamedTuple):
    captured: Bool[Array, "*batch points"]  # stones of chains that a ladder captures
    attacks: Bool[Array, "*batch points"]  # moves of the player to move that start a ladder


class _Board(NamedTuple):
    chains: UInt[Array, "*batch points"]
    liberties: UInt8[Array, "*batch points"]  # of the chain at each stone, at most 3


class _Node(NamedTuple):
    board: _Board
    ko: Int16[Array, ""]
    priority: UInt8[Array, " points"]  # of the moves that may decide it; the highest is tried first, 0 not at all
    captured: Bool[Array, ""]
    escaped: Bool[Array, ""]
    cramped: Bool[Array, ""]  # the attacker moves, and neither of the two liberties has room


class _Readers(NamedTuple):
    """The readers' stacks, of which entry `depth` is the newest, and the queue."""

    frames: UInt[Array, "readers frames 2 points"]  # chains; 4 * priority + liberties
    ko: Int16[Array, "readers frames"]
    tried: Int32[Array, "readers frames"]  # the rank of the last move that was tried, see `_ranks`
    open: Bool[Array, "readers frames"]  # there is a move that was not tried
    depth: Int32[Array, " readers"]
    moves: Int32[Array, " readers"]
    task: Int32[Array, " readers"]  # or NOWHERE
    taken: Int32[Array, ""]  # tasks that were taken from the queue
    captured: Bool[Array, " tasks"]


def limits(size: int) -> LadderLimits:
    """What self-play reads: nearly every ladder of real games, to its end."""
    moves, depth = (128, 40) if size < 14 else (512, 64)
    return LadderLimits(moves, min(depth, full_limits(size).depth))


def full_limits(size: int) -> LadderLimits:
    """KataGo's own limits, which no real ladder reaches."""
    return LadderLimits(moves=25_000, depth=-(-3 * size * size // 2))


def read(chains: UInt[Array, " points"], ko: Array, turn: Array, size: int, limits: LadderLimits) -> Ladders:
    """The ladders of one board, where `ko` is banned and `turn` is to move. Under `vmap` all boards share the work."""
    return Ladders(*(x[0] for x in _reading(size, limits)(chains[None], ko[None], turn[None])))


@cache
def _reading(size: int, limits: LadderLimits) -> Callable[..., Ladders]:
    plain, program = (partial(reader, size=size, limits=limits) for reader in (_read_all, read_on_gpu))

    def choose(chains: Array, ko: Array, turn: Array) -> Ladders:
        return lax.platform_dependent(chains, ko, turn, cuda=program, default=plain)

    # The stacks of a program take memory for as many threads as a GPU can run at once.
    return joined(choose if limits != full_limits(size) else plain)


def read_on_gpu(chains: Boards, ko: Array, turn: Array, size: int, limits: LadderLimits) -> Ladders:
    """The ladders of a batch of boards by one GPU program."""
    return Ladders(*go_gpu.ladders(chains, ko, turn, size, *limits).swapaxes(0, 1))


@partial(jax.jit, static_argnames=("size", "limits"))
def _read_all(chains: Boards, ko: Array, turn: Array, size: int, limits: LadderLimits) -> Ladders:
    points = chains.shape[1]
    wanted, liberties = jax.vmap(lambda board, banned: _tasks(board, banned, size))(chains, ko)  # [B, 4, P], [B, P]
    count = wanted.sum(dtype=jnp.int32)
    (queue,) = jnp.nonzero(wanted.reshape(-1), size=wanted.size, fill_value=0)
    stacks = _READERS, min(limits.depth, limits.moves)
    start = _Readers(
        frames=jnp.zeros((*stacks, 2, points), chains.dtype),
        ko=jnp.full(stacks, NOWHERE, jnp.int16),
        tried=jnp.zeros(stacks, jnp.int32),
        open=jnp.zeros(stacks, bool),
        depth=jnp.zeros(_READERS, jnp.int32),
        moves=jnp.zeros(_READERS, jnp.int32),
        task=jnp.full(_READERS, NOWHERE, jnp.int32),
        taken=jnp.int32(0),
        captured=jnp.zeros(wanted.size, bool),
    )
    boards = _Board(chains, liberties)

    def working(now: _Readers) -> Array:
        return (now.taken < count) | (now.task >= 0).any()

    def round_(now: _Readers) -> _Readers:
        return _round(now, boards, queue.astype(jnp.int32), count, size, limits)

    done = lax.while_loop(working, round_, start)
    found = done.captured.reshape(wanted.shape)
    return jax.vmap(lambda board, hits, player: _ladders(board, hits, player, size))(chains, found, turn)


def _tasks(chains: UInt[Array, " points"], ko: Array, size: int) -> tuple[Bool[Array, "4 points"], Array]:
    """What must be read, and the liberties of all chains, at most 3.

    At an empty point, that is the attack on the chain above, below, left and right of it. At one stone of a chain with
    one liberty, the first of the four stands for that chain. An attack that leaves a liberty with three empty
    neighbours is hopeless.
    """
    empty = chains == EMPTY
    near = rules.around(chains, size, EMPTY)
    here = jnp.arange(chains.shape[0])
    packed = _liberties(chains, near, size)
    room = _room(empty, size)
    tasks = []
    for first, beside in zip(rules.first_of_its_chain(near), rules.around(packed, size, 0), strict=True):
        two = empty & (beside % _SHIFT == 2)  # a chain that is not there has no liberties
        other = jnp.where(two, beside // _SHIFT - here, 0)
        left = room[other] - _adjacent(here, other, size)
        tasks.append(two & first & (left < 3) & (here != ko))
    one = ~empty & (_root(chains) == here) & (packed % _SHIFT == 1)
    tasks[0] |= one & (room[jnp.where(one, packed // _SHIFT, 0)] < 3)
    return jnp.stack(tasks), jnp.minimum(packed % _SHIFT, 3).astype(jnp.uint8)


def _ladders(chains: UInt[Array, " points"], found: Bool[Array, "4 points"], turn: Array, size: int) -> Ladders:
    """The captured chains and the attacks, given which tasks succeeded."""
    near = jnp.stack(rules.around(chains, size, EMPTY))
    stone = (chains != EMPTY)[None]
    target = jnp.where(stone, chains, near)
    points = chains.shape[0]
    fallen = jnp.zeros(points + 1, bool).at[jnp.where(found, _root(target), points)].set(True)
    captured = (chains != EMPTY) & fallen[_root(chains)]
    return Ladders(captured, (found & ~stone & rules.colour_is(near, 1 - turn)).any(0))


def _round(now: _Readers, boards: _Board, queue: Array, count: Array, size: int, limits: LadderLimits) -> _Readers:
    """One move of every reader: the first of a new task, or the next one of its newest position."""
    points = boards.chains.shape[1]
    readers, frames = now.open.shape
    each = jnp.arange(readers)
    idle = now.task < 0
    number = now.taken + jnp.cumsum(idle, dtype=jnp.int32) - 1
    begins = idle & (number < count)
    task = jnp.where(begins, queue[jnp.where(begins, number, 0)], now.task)
    at = jnp.maximum(task, 0)
    first, side, point = at // (4 * points), at // points % 4, at % points
    attack = boards.chains[first, point] == EMPTY
    stone = jnp.where(attack, point + jnp.array([-size, size, -1, 1])[side], point)
    defender = ((boards.chains[first, stone] - 1) & 1).astype(jnp.int32)

    frame = now.frames[each, now.depth]
    new = begins[:, None]
    before = _Board(
        jnp.where(new, boards.chains[first], frame[:, 0]),
        jnp.where(new, boards.liberties[first], (frame[:, 1] & 3).astype(jnp.uint8)),
    )
    ranks = _ranks(frame[:, 1] >> 2)
    ranks = jnp.where(ranks < now.tried[each, now.depth][:, None], ranks, 0)
    best, rank = ranks.argmax(1), ranks.max(1)
    move = jnp.where(begins, jnp.where(attack, point, points), best).astype(jnp.int32)
    attacks = begins | (now.depth % 2 == 1)
    banned = jnp.where(begins, NOWHERE, now.ko[each, now.depth])
    node: _Node = jax.vmap(lambda *given: _after(*given, size=size))(before, move, banned, stone, defender, attacks)
    double_ko = lax.cond(
        node.cramped.any(),
        lambda: node.cramped & jax.vmap(lambda *given: _double_ko(*given, size=size))(node.board, stone, defender),
        lambda: jnp.zeros(readers, bool),
    )

    depth = jnp.where(begins, 0, now.depth + 1)
    moves = jnp.where(begins, 0, now.moves + 1)
    # At KataGo's own limit of depth the chain counts as captured; below it the reading is given up.
    exact = frames >= full_limits(size).depth
    escaped = node.escaped | (attacks & ~begins & (node.ko >= 0))
    captured = node.captured | double_ko
    too_deep = ~captured & ~escaped & (depth >= frames)
    captured |= too_deep & exact
    gives_up = (moves >= limits.moves) | (too_deep & (not exact))
    decided = captured | escaped
    # A decided position decides those before it, up to one where the side that it is bad for has another move.
    older = jnp.arange(frames)
    newest = ~begins[:, None] & (older == now.depth[:, None])
    waiting = jnp.where(newest, ((ranks > 0) & (ranks < rank[:, None])).any(1)[:, None], now.open)
    usable = waiting & (older % 2 == jnp.where(captured, 0, 1)[:, None]) & (older < depth[:, None]) & ~new
    back = jnp.where(usable, older, NOWHERE).max(1)
    busy = begins | ~idle
    over = busy & (gives_up | (decided & (back < 0)))
    goes_on = busy & ~decided & ~gives_up
    put = (older == depth[:, None]) & goes_on[:, None]
    content = jnp.stack([node.board.chains, (node.priority * 4 + node.board.liberties).astype(frame.dtype)], 1)
    fallen = jnp.where(over & captured & ~gives_up, task, now.captured.shape[0])
    return _Readers(
        frames=now.frames.at[each, jnp.where(goes_on, depth, frames)].set(content, mode="drop"),
        ko=jnp.where(put, jnp.where(begins, NOWHERE, node.ko)[:, None], now.ko).astype(jnp.int16),
        tried=jnp.where(put, jnp.iinfo(jnp.int32).max, jnp.where(newest, rank[:, None], now.tried)),
        open=waiting | put,
        depth=jnp.where(goes_on, depth, jnp.maximum(back, 0)),
        moves=moves,
        task=jnp.where(over, NOWHERE, task),
        taken=now.taken + begins.sum(dtype=jnp.int32),
        captured=now.captured.at[fallen].set(True, mode="drop"),
    )


def _ranks(priority: UInt[Array, "*batch points"]) -> Int32[Array, "*batch points"]:
    """Numbers for the order in which moves are tried, the highest first: by priority, then by point; 0 is no move."""
    points = priority.shape[-1]
    return jnp.where(priority > 0, priority.astype(jnp.int32) * points + points - jnp.arange(points), 0)


def _after(before: _Board, move: Number, ban: Array, stone: Array, defender: Array, attacks: Array, size: int) -> _Node:
    """The position after a move of the attacker or the defender, and whether it is decided."""
    chains, ko, legal = _play(before, move, jnp.where(attacks, 1 - defender, defender), size)
    legal &= move != ban
    empty = chains == EMPTY
    near = rules.around(chains, size, EMPTY)
    beside = any_around(chains == chains[stone], size)
    liberties = empty & beside
    count = liberties.sum()
    room = _room(empty, size)
    of_chain = _liberties(chains, near, size) % _SHIFT
    in_atari = rules.colour_is(chains, 1 - defender) & (of_chain == 1)
    (touching,) = rules.chain_sums(chains, ((in_atari & beside).astype(jnp.int32),))
    rescues = empty & any_around(in_atari & (touching > 0), size)

    here = jnp.arange(chains.shape[0])
    low = jnp.argmax(liberties)
    high = jnp.where(liberties, here, 0).max()
    close = _adjacent(low, high, size)
    attacker = jnp.where(liberties & (room[jnp.where(here == low, high, low)] - close < 3), 1 + room - close, 0)
    defence = jnp.where(rescues, 2, liberties)

    breathes = (count >= 2) | (liberties & (room >= 3)).any()
    escaped = jnp.where(attacks, breathes, (count >= 3) | ((count == 2) & ~attacker.any()))
    return _Node(
        board=_Board(chains, jnp.minimum(of_chain, 3).astype(jnp.uint8)),
        ko=ko.astype(jnp.int16),
        priority=jnp.where(attacks, defence, attacker).astype(jnp.uint8),
        captured=jnp.where(legal, ~attacks & (count <= 1), ~attacks),
        escaped=jnp.where(legal, escaped, attacks),
        cramped=legal & ~attacks & (count == 2) & ~(liberties & (room > 0)).any() & ~rescues.any(),
    )


def _play(board: _Board, move: Int32[Array, ""], me: Array, size: int) -> tuple[Array, Array, Array]:
    """The chains after a move (a pass is any number that is not a point), the ko point, and whether it is legal."""
    chains, points = board.chains, size * size
    at, inside = rules.beside(move, size)
    beside, liberties = jnp.where(inside, chains[at], EMPTY), board.liberties[at]
    mine, theirs = rules.colour_is(beside, me), rules.colour_is(beside, 1 - me)
    taken = theirs & (liberties == 1)
    legal = (inside & (beside == EMPTY)).any() | taken.any() | (mine & (liberties > 1)).any() | (move >= points)

    def members(which: Array) -> Array:
        return (chains != EMPTY) & ((chains[:, None] == beside) & which).any(1)

    captured = members(taken)
    joined = members(mine) | (jnp.arange(points) == move)
    after = jnp.where(joined, (1 + 2 * move + me).astype(chains.dtype), jnp.where(captured, EMPTY, chains))
    alone = (captured.sum() == 1) & (theirs | ~inside).all()
    return after, jnp.where(alone, jnp.argmax(captured), NOWHERE), legal


def _double_ko(board: _Board, stone: Array, defender: Array, *, size: int) -> Bool[Array, ""]:
    """Whether both liberties of a chain are mouths of kos, and connecting one leaves at most two liberties.

    The defender cannot win both kos.
    """
    chains = board.chains
    empty, mine = chains == EMPTY, rules.colour_is(chains, defender)
    in_atari = mine & (board.liberties == 1)
    alone = in_atari & ~any_around(mine, size)
    mouth = (_room(in_atari, size) == 1) & (_room(alone, size) == 1) & ~any_around(~mine, size)
    liberties = empty & any_around(chains == chains[stone], size)

    def connected(point: Array) -> Array:
        """The liberties of the chain after a move there."""
        around = jnp.stack(rules.around(chains, size, EMPTY))[:, point]
        joined = mine & (chains[:, None] == around).any(1)
        return (empty & any_around(joined, size)).sum() - 1

    low, high = jnp.argmax(liberties), liberties.shape[0] - 1 - jnp.argmax(liberties[::-1])
    return (mouth | ~liberties).all() & (connected(low) <= 2) & (connected(high) <= 2)


def _root(chains: UInt[Array, "*points"]) -> Int32[Array, "*points"]:
    """A stone of the chain; meaningless on an empty point."""
    return jnp.maximum(chains.astype(jnp.int32) - 1, 0) >> 1


def _liberties(chains: Array, near: rules.Around, size: int) -> Int32[Array, " points"]:
    """At every stone, the number of its chain's liberties plus _SHIFT times the sum of their points."""
    here = jnp.arange(chains.shape[0], dtype=jnp.int32)
    return rules.sums_of_liberties(chains, near, size, [1 + _SHIFT * (here + step) for step in (size, -size, 1, -1)])


def _room(mask: Array, size: int) -> Int32[Array, " points"]:
    return jnp.stack(rules.around(mask, size, False)).sum(0, dtype=jnp.int32)


def _adjacent(one: Array, other: Array, size: int) -> Array:
    """1 where two points are neighbours."""
    rows, columns = abs(one // size - other // size), abs(one % size - other % size)
    return (rows + columns == 1).astype(jnp.int32)
