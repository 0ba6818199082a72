"""The trees of a batch of games, as arrays.

Every game has its own tree, root and budget. A tree is a table of slots; a node is a slot. Statistics are stored at
nodes (a move's visits are those of its child), so an edge is only a child number and a prior: four bytes. Values are
stored from the side of player 0, so that adding them up does not depend on whose turn it is.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float16, Float32, Int, Int8, Int16, Int32

from tengen import schema
from tengen.config.settings.search import SearchSettings
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.jax_setup import device_memory
from tengen.words import in_bytes

NONE = -1
LARGEST = 32767  # slots are numbered in 16 bits,
LARGEST_PLAIN = 2**24  # and in 32 if no GPU program reads them


class Trail(NamedTuple):
    """The nodes that a walk passed, from the root on."""

    length: Int32[Array, "*batch"]  # 0 if the search was over
    nodes: Int16[Array, "*batch slots"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tree:
    """A batch of trees. A node that waits for its evaluation has no visits. Slot numbers are Int16 up to LARGEST."""

    child: Int[Array, "*batch slots actions"]  # the node behind a move, or -1
    logits: Float16[Array, "*batch slots actions"]  # log of the prior; -inf for illegal moves
    state: Any  # [batch, slots, ...]: the positions, without what the whole tree shares; bools as bytes
    visits: Int32[Array, "*batch slots"]
    total: Float32[Array, "*batch slots"]  # sum of the values of all visits, by which moves are chosen
    value: Float32[Array, "*batch slots"]  # of the evaluation, or the result if the game is over
    apart: Float32[Array, "*batch slots parts"]  # sums of (value, score) over all visits; no parts without score_weight
    player: Int8[Array, "*batch slots"]  # who moves
    over: Int8[Array, "*batch slots"]  # 1 if the game is over
    parent: Int[Array, "*batch slots"]
    onward: Int32[Array, "*batch slots"]  # the choice at a node below the root; used by GPU programs only
    moves: Int16[Array, "*batch slots listed"]  # moves, logits, children; used by GPU programs only (see `listed`)
    free: Int[Array, "*batch slots"]  # all slots; those from `used` on are free
    used: Int32[Array, "*batch"]
    root: Int32[Array, "*batch"]
    centre: Float32[Array, "*batch"]  # the score at which points count most
    kept: Any  # [batch, ...]: what the game stores once per tree (see Game.split)
    done: Int32[Array, "*batch"]  # simulations of the current search
    budget: Int32[Array, "*batch"]  # simulations it may use
    noise: Float32[Array, "*batch actions"]  # Dirichlet or Gumbel, for the current search
    base: Int32[Array, "*batch actions"]  # visits that the root's moves had when the search began
    game: Game = field(metadata={"static": True})
    settings: SearchSettings = field(metadata={"static": True})

    def states(self, nodes: Int32[Array, " batch"]) -> Any:
        """The positions at these nodes, [batch, ...], joined with what their trees share."""
        inner = jax.tree.map(lambda table: jax.vmap(lambda one, node: one[node])(table, nodes), self.state)
        return jax.vmap(self.game.join)(restored(inner, self.game), self.kept)


def node_shape(game: Game) -> Any:
    """The shapes and types of one state as a node stores it."""
    return jax.eval_shape(lambda key: game.split(game.init(key))[0], jax.random.key(0))


def stored(nodes: Any) -> Any:
    """States as a tree stores them: with bytes for bools, as GPU programs need them."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.uint8) if leaf.dtype == jnp.bool_ else leaf, nodes)


def restored(nodes: Any, game: Game) -> Any:
    """The states that were `stored`."""
    return jax.tree.map(lambda leaf, like: leaf.astype(like.dtype), nodes, node_shape(game))


def bytes_needed(game: Game, settings: SearchSettings, games: int, slots: int | None = None) -> int:
    """Memory of the trees of `games` games."""
    slots = default_slots(settings) if slots is None else slots
    example = jax.eval_shape(lambda key: game.split(game.init(key)), jax.random.key(0))
    shared = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(example[1]))
    node = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(example[0]))
    number = _number_type(slots).dtype.itemsize
    per_node = (2 + number) * game.num_actions + 2 * listed(game) + node + 4 + 4 + 4 + 1 + 1 + number + 4 + number
    per_node += 4 * parts(settings)
    return games * (slots * per_node + 8 * game.num_actions + 20 + shared)


def listed(game: Game) -> int:
    """The size of a node's lists of legal moves, their logits and children; 0 where tables of all moves will do."""
    most = game.most_legal_moves
    return 0 if most is None or 2 * most > game.num_actions else 3 * most


def parts(settings: SearchSettings) -> int:
    """The length of the last axis of `Tree.apart`."""
    return 2 if settings.score_weight > 0 else 0


def _number_type(slots: int) -> Any:
    return jnp.int16 if slots <= LARGEST else jnp.int32


def default_slots(settings: SearchSettings) -> int:
    """Room for the root, one search, and what earlier searches leave unless they all agree on the moves.

    A full tree can still be searched: the values of new leaves are then backed up but the leaves are not stored.
    """
    return 3 * settings.simulations + 1


def plant(game: Game, settings: SearchSettings, states: Any, slots: int | None = None) -> Tree:
    """Trees whose roots are the positions `states` [batch, ...], not evaluated yet and without a budget: see `begin`.

    Raises OptionError if the trees would not fit into the memory of the device.
    """
    schema.from_options(SearchSettings, asdict(settings), "search")
    slots = default_slots(settings) if slots is None else slots
    plain = settings.kernels == "plain" or settings.leaves > 1
    largest = LARGEST_PLAIN if plain else LARGEST
    if not 0 < slots <= largest:
        raise OptionError(f"search: {slots} nodes per tree, expected 1 to {largest}; use fewer simulations")
    batch, actions = jax.tree.leaves(states)[0].shape[0], game.num_actions
    check_memory(bytes_needed(game, settings, batch, slots), batch)
    nodes, kept = jax.vmap(game.split)(states)
    table, number = (batch, slots), _number_type(slots)

    def root_only(values: Any, dtype: Any) -> Array:
        return jnp.zeros((*table, *values.shape[1:]), dtype).at[:, 0].set(values.astype(dtype))

    return Tree(
        child=jnp.full((*table, actions), NONE, number),
        logits=jnp.full((*table, actions), -jnp.inf, jnp.float16),
        state=jax.tree.map(lambda leaf: root_only(leaf, leaf.dtype), stored(nodes)),
        visits=jnp.zeros(table, jnp.int32),
        total=jnp.zeros(table, jnp.float32),
        value=jnp.zeros(table, jnp.float32),
        apart=jnp.zeros((*table, parts(settings)), jnp.float32),
        player=root_only(jax.vmap(game.to_play)(states), jnp.int8),
        over=root_only(jax.vmap(game.is_over)(states), jnp.int8),
        parent=jnp.full(table, NONE, number),
        onward=jnp.zeros(table, jnp.int32),
        moves=jnp.full((*table, listed(game)), NONE, jnp.int16),
        free=jnp.broadcast_to(jnp.arange(slots, dtype=number), table),
        used=jnp.ones(batch, jnp.int32),
        root=jnp.zeros(batch, jnp.int32),
        centre=jnp.zeros(batch, jnp.float32),
        kept=kept,
        done=jnp.zeros(batch, jnp.int32),
        budget=jnp.zeros(batch, jnp.int32),
        noise=jnp.zeros((batch, actions), jnp.float32),
        base=jnp.zeros((batch, actions), jnp.int32),
        game=game,
        settings=settings,
    )


def check_memory(needed: int, batch: int) -> None:
    """OptionError if the device has too little memory for the trees of `batch` games."""
    limit = device_memory()
    if limit is not None and needed > limit:
        raise OptionError(
            f"search: the trees of {batch:,} games need {in_bytes(needed)}, the device has {in_bytes(limit)}; "
            "use fewer games or simulations"
        )
