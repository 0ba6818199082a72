"""Hironaka's polyhedra game: the host (player 0) names coordinates, the agent (player 1) picks one of them.

See docs/games/hironaka.md for the rules. Hosts with fixed rules are at the end: functions from a game, a key and
ONE position to an action; `Fixed` makes them rules for a batch. In a finished game the action means nothing.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int16, Int32

from tengen.games.core import Game, Observation, RandomKey, Symmetry, identity
from tengen.schema import setting

HOST, AGENT = 0, 1
PLAYERS = ("host", "agent")
REMOVED = -1.0  # every coordinate of a removed point
Points = Float32[Array, "points axes"]


@dataclass(frozen=True)
class HironakaOptions:
    dimension: int = setting(3, "coordinates of a point", low=2, high=10)
    max_points: int = setting(5, "points at the start, before dominated ones are removed", low=2, high=256)
    max_value: int = setting(20, "largest coordinate at the start", low=1, high=1_000_000)
    max_moves: int = setting(40, "choices, the host's and the agent's counted, until the game ends", low=1, high=10000)
    reposition: bool = setting(False, "subtract the smallest value of each coordinate after every shift")
    rescale: bool = setting(True, "divide what the players see by the largest coordinate")


class HironakaState(NamedTuple):
    points: Float32[Array, "*batch points axes"]  # whole numbers, never rescaled; removed points are -1, in their slots
    chosen: Bool[Array, "*batch axes"]  # the host's subset while the agent decides, otherwise empty
    moves: Int16[Array, "*batch"]  # choices made


class Hironaka(Game[HironakaState]):
    """Hironaka's polyhedra game, the host against the agent.

    Host action i is the i-th subset in the order of its bitmask; agent action i is coordinate i.
    """

    name = "hironaka"
    version = 1
    players = PLAYERS
    Options: ClassVar[type] = HironakaOptions

    def __init__(self, options: HironakaOptions) -> None:
        self.options = options
        self.subsets = host_subsets(options.dimension)
        self.num_actions = max(len(self.subsets), options.dimension)
        self.max_moves = options.max_moves
        self.planes_shape = (1, 1, 0)
        self.num_scalars = (options.max_points + 1) * options.dimension + 1

    def init(self, key: RandomKey) -> HironakaState:
        """Random points that are not already reduced to one."""
        shape = (self.options.max_points, self.options.dimension)

        def draw(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            key, now = jax.random.split(carry[0])
            drawn = jax.random.randint(now, shape, 0, self.options.max_value + 1)
            return key, reduce(drawn.astype(jnp.float32))

        def ended(carry: tuple[Array, Array]) -> Array:
            return live(carry[1]).sum() <= 1

        _, points = lax.while_loop(ended, draw, draw((key, jnp.zeros(shape))))
        return self.position(points)

    def position(self, points: Points) -> HironakaState:
        """A game that starts from these points, with the host to choose."""
        points = self._normalised(jnp.asarray(points, jnp.float32))
        return HironakaState(points, jnp.zeros(self.options.dimension, bool), jnp.int16(0))

    def _normalised(self, points: Points) -> Points:
        """The points after each shift.

        They are rescaled only in the observation: division rounds, and in one of twenty games points that were equal in
        some coordinate would no longer be.
        """
        points = reduce(reposition(points) if self.options.reposition else points)
        # Scaling by a power of two is exact, and keeps long games from overflowing.
        return jnp.where((points.max() > 2.0**100) & live(points)[:, None], points * 2.0**-60, points)

    def _play(self, state: HironakaState, action: Int32[Array, ""]) -> HironakaState:
        agent = self.to_play(state) == AGENT
        subset = jnp.asarray(self.subsets)[jnp.minimum(action, len(self.subsets) - 1)]
        shifted = self._normalised(shift(state.points, state.chosen, action))
        points = jnp.where(agent, shifted, state.points)
        return HironakaState(points, ~agent & subset, state.moves + jnp.int16(1))

    def legal_actions(self, state: HironakaState) -> Bool[Array, " actions"]:
        host = np.arange(self.num_actions) < len(self.subsets)
        agent = jnp.zeros(self.num_actions, bool).at[: self.options.dimension].set(state.chosen)
        return jnp.where(self.to_play(state) == HOST, host, agent) & ~self.is_over(state)

    def observe(self, state: HironakaState) -> Observation:
        """No planes. Scalars: the points in sorted order, the host's subset, the share of the move limit used."""
        used = state.moves.astype(jnp.float32)[None] / self.max_moves
        seen = rescale(state.points) if self.options.rescale else state.points
        scalars = jnp.concatenate([in_order(seen).reshape(-1), state.chosen, used])
        return Observation(jnp.zeros(self.planes_shape, bool), scalars.astype(jnp.float32))

    def to_play(self, state: HironakaState) -> Int32[Array, ""]:
        return state.chosen.any().astype(jnp.int32)

    def is_over(self, state: HironakaState) -> Bool[Array, ""]:
        return (live(state.points).sum() <= 1) | (state.moves >= self.max_moves)

    def returns(self, state: HironakaState) -> Float32[Array, "2"]:
        """The host gets +1 for a game that ends at once and -1 for one that lasts until the move limit."""
        # Rounded only once, so that the two results cancel however a compiler arranges the operations.
        host = (self.max_moves - 2 * state.moves.astype(jnp.float32)) / self.max_moves
        host = jnp.where(self.is_over(state), host, 0)
        return jnp.stack([host, 0 - host])

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Permutations of the coordinates: all of them up to dimension 4, beyond that the rotations."""
        dimension = self.options.dimension
        if dimension <= 4:
            orders = itertools.permutations(range(dimension))
        else:
            orders = ([(k + turn) % dimension for k in range(dimension)] for turn in range(dimension))
        return tuple(self._permutation(np.array(order)) for order in orders)

    def _permutation(self, to: np.ndarray) -> Symmetry:
        """The symmetry that moves coordinate k to `to[k]`."""
        if (to == np.arange(len(to))).all():
            return identity(self.num_actions)
        dimension, back = self.options.dimension, np.argsort(to)
        actions = np.tile(np.arange(self.num_actions, dtype=np.int32), (2, 1))
        weights = 1 << np.arange(dimension)
        masks = list(self.subsets @ weights)
        actions[HOST, : len(masks)] = [masks.index(mask) for mask in self.subsets[:, back] @ weights]
        actions[AGENT, :dimension] = to

        def scalars(x: Array) -> Array:
            points, chosen = x[: -dimension - 1].reshape(-1, dimension), x[-dimension - 1 : -1]
            return jnp.concatenate([in_order(points[:, back]).reshape(-1), chosen[back], x[-1:]])

        return Symmetry(f"coordinates to {','.join(map(str, to))}", lambda x: x, scalars, actions)

    def render(self, state: HironakaState) -> str:
        rows = []
        for point, alive in zip(np.asarray(state.points), np.asarray(live(state.points)), strict=True):
            rows.append("  " + " ".join(f"{x:.9g}" for x in point) if alive else "  -")
        chosen = _set_name(np.asarray(state.chosen)) if state.chosen.any() else "none"
        return "\n".join(["points:", *rows, f"chosen: {chosen}", f"moves: {int(state.moves)}"])

    def from_text(self, text: str) -> HironakaState:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        count, dimension = self.options.max_points, self.options.dimension
        if len(lines) != count + 3 or lines[0] != "points:":
            raise ValueError(f"hironaka: expected 'points:', {count} points, 'chosen: ...' and 'moves: ...'")
        rows = [[REMOVED] * dimension if line == "-" else _numbers(line, dimension) for line in lines[1 : count + 1]]
        subsets = {_set_name(subset): subset for subset in self.subsets} | {"none": np.zeros(dimension, bool)}
        chosen = lines[count + 1].removeprefix("chosen:").strip()
        moves = lines[count + 2].removeprefix("moves:").strip()
        if chosen not in subsets:
            raise ValueError(f"hironaka: chosen: expected a set like {_set_name(self.subsets[0])}, or none")
        if not moves.isdecimal() or int(moves) > self.max_moves or int(moves) % 2 != (chosen != "none"):
            turns = "an odd" if chosen != "none" else "an even"
            raise ValueError(f"hironaka: moves: expected {turns} number up to {self.max_moves}, got {moves!r}")
        return HironakaState(jnp.array(rows, jnp.float32), jnp.array(subsets[chosen]), jnp.int16(int(moves)))

    def _action_name(self, state: HironakaState, action: int) -> str:
        return str(action) if self.to_play(state) == AGENT else _set_name(self.subsets[action])

    def _known_action(self, state: HironakaState, action: int) -> bool:
        return action < (self.options.dimension if self.to_play(state) == AGENT else len(self.subsets))


def host_subsets(dimension: int) -> Bool[np.ndarray, "subsets axes"]:
    """The subsets with at least two elements, in the order of their bitmasks."""
    bits = (np.arange(2**dimension)[:, None] >> np.arange(dimension)) & 1 == 1
    return bits[bits.sum(1) >= 2]


def live(points: Points) -> Bool[Array, " points"]:
    """The points that have not been removed."""
    return points[:, 0] >= 0


def shift(points: Points, subset: Bool[Array, " axes"], axis: Int32[Array, ""]) -> Points:
    """Coordinate `axis` becomes the sum over `subset`, in every live point."""
    # Added in sorted order, because rounding depends on the order and must not depend on how coordinates are named.
    total = sum(_ascending([jnp.where(subset[k], points[:, k], 0) for k in range(points.shape[1])]))
    here = jnp.arange(points.shape[1]) == axis
    return jnp.where(live(points)[:, None] & here, jnp.asarray(total)[:, None], points)


def _ascending(columns: list[Array]) -> list[Array]:
    """The columns sorted point by point: with so few numbers, exchanging neighbours is faster than a sort."""
    columns = list(columns)
    for end in range(len(columns) - 1, 0, -1):
        for k in range(end):
            low, high = jnp.minimum(columns[k], columns[k + 1]), jnp.maximum(columns[k], columns[k + 1])
            columns[k], columns[k + 1] = low, high
    return columns


def reduce(points: Points) -> Points:
    """Removes every point that another live one dominates; of equal points the first stays."""
    index = np.arange(points.shape[0])
    below, above = live(points)[None, :], jnp.asarray(True)  # [p, q]: q <= p, q >= p
    for k in range(points.shape[1]):  # one coordinate after the other: compilers handle short axes badly
        below &= points[None, :, k] <= points[:, None, k]
        above &= points[None, :, k] >= points[:, None, k]
    dominated = (below & ~(above & (index[None, :] >= index[:, None]))).any(1)
    return jnp.where((live(points) & ~dominated)[:, None], points, REMOVED)


def reposition(points: Points) -> Points:
    """Subtracts from each coordinate its smallest value among the live points."""
    alive = live(points)[:, None]
    smallest = jnp.where(alive, points, jnp.inf).min(0)
    return jnp.where(alive, points - smallest, REMOVED)


def rescale(points: Points) -> Points:
    """Divides by the largest coordinate, if that is not zero."""
    largest = points.max()
    scaled = points / jnp.where(largest > 1e-8, largest, 1)
    return jnp.where(live(points)[:, None], scaled, REMOVED)


def in_order(points: Points) -> Points:
    """The points in descending order, compared by their last coordinate first; removed ones come last."""
    count, dimension = points.shape
    mine, other = points[:, None, :], points[None, :, :]
    larger = jnp.zeros((count, count), bool)
    equal = ~larger
    for k in reversed(range(dimension)):
        larger |= equal & (other[..., k] > mine[..., k])
        equal &= other[..., k] == mine[..., k]
    index = jnp.arange(count)
    place = (larger | (equal & (index[None, :] < index[:, None]))).sum(1)
    return jnp.where((place[None, :] == index[:, None])[:, :, None], points[None], 0).sum(1)


def _set_name(subset: np.ndarray) -> str:
    return "{" + ",".join(str(k) for k in np.flatnonzero(subset)) + "}"


def _numbers(line: str, count: int) -> list[float]:
    try:
        numbers = [float(word) for word in line.split()]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(0 <= x <= float(np.finfo(np.float32).max) for x in numbers):
        raise ValueError(f"hironaka: expected {count} numbers of at least 0, got {line!r}")
    return numbers


Choice = Callable[[Hironaka, Array, HironakaState], Array]
"""(game, key, one position) -> Int32[]: an action."""


def all_coordinates(game: Hironaka, key: Array, state: HironakaState) -> Array:
    """The host that always names all coordinates."""
    return jnp.int32(len(game.subsets) - 1)


def zeillinger(game: Hironaka, key: Array, state: HironakaState) -> Array:
    """The host of Zeillinger's proof: where the difference of two points is smallest and where it is largest.

    Of all pairs of points it takes that whose difference has the smallest range, and of these the one whose smallest
    and largest coordinates are fewest; then the first pair in the order of the slots, and the first coordinates.
    """
    points = state.points
    alive = live(points)
    difference = points[:, None, :] - points[None, :, :]  # [M, M, D]
    low, high = difference.min(2), difference.max(2)
    extreme = (difference == low[..., None]).sum(2) + (difference == high[..., None]).sum(2)
    # A pair with the same difference everywhere would be a point and one that it dominates.
    pair = alive[:, None] & alive[None, :] & (low < high)
    ranges = jnp.where(pair, high - low, jnp.inf)
    least = pair & (ranges == ranges.min())
    chosen = jnp.argmin(jnp.where(least, extreme, difference.shape[2] * 2 + 1).reshape(-1))
    vector = difference.reshape(-1, difference.shape[2])[chosen]
    bits = (1 << jnp.argmin(vector)) | (1 << jnp.argmax(vector))
    return _number_of(game, bits)


def weak_spivakovsky(game: Hironaka, key: Array, state: HironakaState) -> Array:
    """The host that names the smallest set of at least two coordinates in which no point is zero throughout.

    Only coordinates that are above zero somewhere are used; of several such sets the first in the dictionary's order.
    """
    order = dictionary_order(game.subsets)
    sets = jnp.asarray(game.subsets[order])  # Bool[S, D]
    support = state.points > 0
    hits = (sets[:, None, :] & support[None, :, :]).any(2) | ~live(state.points)[None, :]  # [S, M]
    useful = ~(sets & ~support.any(0)).any(1)
    return jnp.asarray(order, jnp.int32)[jnp.argmax(hits.all(1) & useful)]


HOSTS: dict[str, Choice] = {"all": all_coordinates, "zeillinger": zeillinger, "spivakovsky": weak_spivakovsky}


@dataclass(frozen=True)
class Fixed:
    """A choice as the rule of a player: (params, key, states [B, ...], which Bool[B]) -> Int32[B]."""

    game: Hironaka
    choose: Choice

    def __call__(self, params: Any, key: Array, states: HironakaState, which: Array) -> Array:
        keys = jax.random.split(key, len(which))
        return jax.vmap(lambda key, state: self.choose(self.game, key, state))(keys, states)


def dictionary_order(subsets: np.ndarray) -> np.ndarray:
    """Int[S]: the numbers of the subsets Bool[S, D], smaller ones first, then as in a dictionary."""
    elements = [tuple(np.flatnonzero(subset)) for subset in subsets]
    return np.array(sorted(range(len(elements)), key=lambda number: (len(elements[number]), elements[number])))


def _number_of(game: Hironaka, bits: Array) -> Array:
    """The host's action for a subset as a bitmask."""
    dimension = game.options.dimension
    numbers = np.zeros(2**dimension, np.int32)
    numbers[game.subsets @ (1 << np.arange(dimension))] = np.arange(len(game.subsets))
    return jnp.asarray(numbers)[bits]
