"""KataGo's inputs (version 7) of a position: 22 planes and 19 scalars, for area scoring without tax and button."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int32, Integer, UInt, UInt32

from tengen.games import go_chains as rules
from tengen.games import go_gpu, go_ladders
from tengen.games.batching import joined
from tengen.games.go_chains import EMPTY, Chains, PointMask

PLANES = (
    "on board", "own stone", "opponent's stone", "chain with 1 liberty", "chain with 2 liberties",
    "chain with 3 liberties", "banned by ko", "unused (encore)", "unused", "move 1 ago", "move 2 ago", "move 3 ago",
    "move 4 ago", "move 5 ago", "captured in a ladder", "in a ladder 1 move ago", "in a ladder 2 moves ago",
    "starts a ladder", "own area", "opponent's area", "unused (encore, own)", "unused (encore, opponent's)",
)  # fmt: skip
SCALARS = (
    "pass 1 ago", "pass 2 ago", "pass 3 ago", "pass 4 ago", "pass 5 ago", "own komi / 20", "superko",
    "positional or situational", "suicide of several stones", "territory scoring", "tax", "tax on all groups",
    "encore 1", "encore 2", "a pass ends the game", "asymmetric visits", "their size", "button", "komi parity wave",
)  # fmt: skip
FROM_TENGEN = (0, 1, 2, 3, 4, 5, 6, 7, 8, 14, 18)  # the scalars of KataGo that Tengen's own observation has

PackedLadders = UInt32[Array, "4 words"]
"""A bit for every point: the stones captured in a ladder now, one and two moves ago, and the moves that start one."""


def ladders(
    before: PackedLadders | None, chains: Array, ko: Array, turn: Array, size: int, limits: go_ladders.LadderLimits
) -> PackedLadders:
    """What a state stores about ladders; `before` is that of the state one move ago, or None if there is none."""
    found = go_ladders.read(chains, ko, turn, size, limits)
    captured, attacks = go_gpu.pack(found.captured), go_gpu.pack(found.attacks)
    return after(jnp.stack([captured, captured]) if before is None else before, captured, attacks)


def after(before: Array, captured: UInt32[Array, " words"], attacks: UInt32[Array, " words"]) -> PackedLadders:
    """What a state stores, given that of the state one move ago and the ladders of its own position."""
    return jnp.concatenate([captured[None], before[:2], attacks[None]])


def komi_inputs(komi: Float32[Array, ""], points: int) -> tuple[Float32[Array, ""], Float32[Array, ""]]:
    """KataGo's scalars 5 and 18 for the komi of the player to move."""
    bound = points + 20
    komi = jnp.clip(komi, -bound, bound)
    # Area scores differ by two if no point is neutral: the wave is the distance of komi from the nearest draw.
    odd = points % 2
    above = komi - (jnp.floor((komi - odd) / 2) * 2 + odd)
    return komi / 20, jnp.where(above < 0.5, above, jnp.where(above < 1.5, 1 - above, above - 2))


def no_ladders(points: int) -> PackedLadders:
    """What the state of an empty board stores."""
    return jnp.zeros((4, -(-points // 32)), jnp.uint32)


def marks(
    plain: Integer[Array, " points"],
    packed: PackedLadders,
    area: UInt32[Array, "2 words"],
    turn: Array,
    last: Array,
) -> Int32[Array, " points"]:
    """All planes as bits of a number, given those of Tengen's own observation (further bits are ignored) and areas."""
    now, one, two, attacks = packed
    one = jnp.where(last[0] >= 0, one, now)
    two = jnp.where(last[1] >= 0, two, one)
    mine, theirs = jnp.where(turn == 0, area, area[::-1])
    own = plain.astype(jnp.int32)
    found = (own & 0b1111111) | ((own >> 7 & 0b11111) << 9)
    for plane, bits in enumerate([now, one, two, attacks, mine, theirs], start=14):
        found |= go_gpu.unpack(bits, len(plain)).astype(jnp.int32) << plane
    return found


def scalars(plain: Float32[Array, " 11"]) -> Float32[Array, " 19"]:
    """All scalars, given those of Tengen's own observation; the rest belongs to rules that Tengen does not have."""
    places: list[Any] = [jnp.float32(0)] * len(SCALARS)
    for number, value in zip(FROM_TENGEN, plain, strict=True):
        places[number] = value
    return jnp.stack(places)


# Areas


def areas(chains: UInt[Array, " points"], size: int, suicide: bool) -> Bool[Array, "2 points"]:
    """The points that Black and White own as the board stands.

    Stones, and empty regions that touch one colour only (Tromp-Taylor); but a stone that is dead inside pass-alive
    territory belongs to the owner of that territory.
    """
    return _finding(size, suicide)(chains[None])[0]


@cache
def _finding(size: int, suicide: bool) -> Callable[[Array], Array]:
    plain = jax.vmap(partial(_areas, size=size, suicide=suicide))
    program = partial(go_gpu.areas, size=size, suicide=suicide)
    return joined(lambda chains: lax.platform_dependent(chains, cuda=program, default=plain))


def seen_on_gpu(
    chains: Array, ko: Array, turn: Array, size: int, suicide: bool, limits: go_ladders.LadderLimits
) -> UInt32[Array, "batch 4 words"]:
    """Ladders and areas of a batch of boards, by one GPU program if ladders are bounded. See `go_gpu.katago`."""
    if limits != go_ladders.full_limits(size):
        return go_gpu.katago(chains, ko, turn, size, suicide, *limits)
    captured, attacks = jax.vmap(partial(go_ladders.read, size=size, limits=limits))(chains, ko, turn)
    return go_gpu.pack(jnp.concatenate([captured[:, None], attacks[:, None], _finding(size, suicide)(chains)], 1))


def _areas(chains: UInt[Array, " points"], size: int, suicide: bool) -> Bool[Array, "2 points"]:
    both = jnp.stack([rules.colour_is(chains, 0), rules.colour_is(chains, 1)])
    each = jax.vmap(lambda own: _territory(jnp.where(own, chains, EMPTY), chains == EMPTY, size, suicide))
    safe, plain = each(both)
    held = plain | both
    white = safe[1] | (held[1] & ~safe[0])
    return jnp.stack([(safe[0] | held[0]) & ~white, white])


def _territory(chains: Chains, empty: PointMask, size: int, suicide: bool) -> tuple[PointMask, PointMask]:
    """Pass-alive chains of one colour with what they surround, and empty regions that only this colour touches.

    This is Benson's algorithm; `chains` has only the stones of the colour.

    A region is a maximal set of connected points without them. It is vital for a chain if each of its points (if
    suicide is illegal, each empty one) touches the chain. Chains live if they keep two vital regions that only
    living chains border.
    """
    points = chains.shape[0]
    own = chains != EMPTY
    outside = ~own
    near = rules.around(chains, size, EMPTY)
    region = _regions(outside, size)
    here = jnp.arange(points, dtype=jnp.int32)
    touching = rules.any_around(own, size)
    # A vital region touches the chain with its first empty point, which has at most four neighbours.
    first = jnp.full(points + 1, points).at[region].min(jnp.where(outside & empty, here, points))[region]
    choices = rules.Around(*(jnp.append(beside, jnp.zeros(1, beside.dtype))[first] for beside in near))

    def misses(choice: Array) -> Array:
        """The points that keep a region from being vital for the chosen chain."""
        return (empty | suicide) & ~(jnp.stack(near) == choice).any(0)

    counted = jnp.stack([*map(misses, choices), ~empty, touching, ~touching], -1).astype(jnp.int32)
    totals = jnp.zeros((points + 1, counted.shape[1]), jnp.int32).at[region].add(counted)[region]
    missed, stones, border, inner = totals[:, :4].T, totals[:, 4], totals[:, 5], totals[:, 6]
    distinct = jnp.stack(rules.first_of_its_chain(choices))
    chosen = jnp.stack(choices).astype(jnp.int32)
    vital = distinct & (chosen != EMPTY) & (missed == 0) & (here == first)
    # [4, P]: at the first empty point of a region, the root of a chain that it is vital for
    for_chain = jnp.where(vital, (chosen - 1) >> 1, points)
    root = jnp.where(own, (chains.astype(jnp.int32) - 1) >> 1, points)

    def survive(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        alive = carry[0]
        doubtful = rules.any_around(own & ~alive, size)
        shared = jnp.zeros(points + 1, bool).at[jnp.where(doubtful, region, points)].set(True)[region]
        eyes = jnp.zeros(points + 1, jnp.int32).at[jnp.where(shared, points, for_chain)].add(1)
        left = alive & (eyes[root] >= 2)
        return left, shared, (left != alive).any()

    alive, shared, _ = lax.while_loop(lambda carry: carry[2], survive, (own, own, own.any()))
    pure = outside & (stones == 0) & (border > 0)
    surrounded = outside & ~shared & (border > 0)
    return alive | (surrounded & (pure | (inner <= 1))), pure


def _regions(outside: Bool[Array, " points"], size: int) -> Int32[Array, " points"]:
    """The smallest point of the region at every point outside; the number of points elsewhere."""
    points = outside.shape[0]
    start = jnp.where(outside, jnp.arange(points, dtype=jnp.int32), points)

    def join(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        label = carry[0]
        lowest = jnp.where(outside, jnp.stack([label, *rules.around(label, size, points)]).min(0), points)
        jumped = jnp.append(lowest, points)[lowest]
        return jumped, (jumped != label).any()

    return lax.while_loop(lambda carry: carry[1], join, (start, jnp.bool_(True)))[0]
