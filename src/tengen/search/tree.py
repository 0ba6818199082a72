"""The trees of a batch of games, as arrays.

Every game has its own tree, root and budget. A tree is a table of N slots; a node is a slot. Statistics live at nodes
(a move's visits are its child's), so an edge is only a child number and a prior: four bytes. Values are kept from the
side of player 0, so that nothing depends on whose turn it is when they are added up.
"""

import os
from dataclasses import asdict, dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tengen import schema
from tengen.config.settings.search import SearchSettings
from tengen.errors import OptionError
from tengen.games.core import Game
from tengen.words import in_bytes

NONE = -1
LARGEST = 32767  # slots are numbered in 16 bits,
LARGEST_PLAIN = 2**24  # and in 32 where no GPU program reads them


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tree:
    """B trees of N slots with A actions. A node that waits for its evaluation has no visits."""

    child: Array  # Int16[B, N, A], in trees above LARGEST Int32: the node behind a move, or -1
    logits: Array  # Float16[B, N, A]: log of the prior; -inf for what is not legal
    state: Any  # [B, N, ...]: the positions, without what the whole tree shares; bools as bytes
    visits: Array  # Int32[B, N]
    total: Array  # Float32[B, N]: sum of the values of all visits
    value: Array  # Float32[B, N]: what the evaluation said, or the result where the game is over
    player: Array  # Int8[B, N]: who moves
    over: Array  # Int8[B, N]: 1 where the game is over
    parent: Array  # Int16 or Int32[B, N]
    onward: Array  # Int32[B, N]: what to follow at a node below the root; kept by GPU programs, for them alone
    free: Array  # Int16 or Int32[B, N]: all slots; those from `used` on are free
    used: Array  # Int32[B]
    root: Array  # Int32[B]
    kept: Any  # [B, ...]: what the game keeps once per tree (see Game.split)
    done: Array  # Int32[B]: simulations of the present search
    budget: Array  # Int32[B]: how many it shall have
    noise: Array  # Float32[B, A]: Dirichlet or Gumbel, for the present search
    base: Array  # Int32[B, A]: visits that the root's moves had when it began
    game: Game = field(metadata={"static": True})
    settings: SearchSettings = field(metadata={"static": True})

    def states(self, nodes: Array) -> Any:
        """[B, ...] the positions at the nodes [B], joined with what their trees share."""
        inner = jax.tree.map(lambda table: jax.vmap(lambda one, node: one[node])(table, nodes), self.state)
        return jax.vmap(self.game.join)(restored(inner, self.game), self.kept)


def node_shape(game: Game) -> Any:
    """The shapes and types of one state as a node keeps it."""
    return jax.eval_shape(lambda key: game.split(game.init(key))[0], jax.random.key(0))


def stored(nodes: Any) -> Any:
    """States as a tree keeps them: GPU programs have no bools in memory."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.uint8) if leaf.dtype == jnp.bool_ else leaf, nodes)


def restored(nodes: Any, game: Game) -> Any:
    """The states that were `stored`."""
    return jax.tree.map(lambda leaf, like: leaf.astype(like.dtype), nodes, node_shape(game))


def bytes_needed(game: Game, settings: SearchSettings, games: int, slots: int | None = None) -> int:
    """How much memory the trees of that many games take."""
    slots = default_slots(settings) if slots is None else slots
    example = jax.eval_shape(lambda key: game.split(game.init(key)), jax.random.key(0))
    shared = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(example[1]))
    node = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(example[0]))
    number = _number_type(slots).dtype.itemsize
    per_node = (2 + number) * game.num_actions + node + 4 + 4 + 4 + 1 + 1 + number + 4 + number
    return games * (slots * per_node + 8 * game.num_actions + 16 + shared)


def _number_type(slots: int) -> Any:
    return jnp.int16 if slots <= LARGEST else jnp.int32


def default_slots(settings: SearchSettings) -> int:
    """Room for the root, one search, and what searches before it leave, unless they all agree on the moves.

    A tree that is full goes on: leaves then count for their parents and are not kept.
    """
    return 3 * settings.simulations + 1


def plant(game: Game, settings: SearchSettings, states: Any, slots: int | None = None) -> Tree:
    """Trees [B] whose roots are these positions, not evaluated yet and with nothing to do: see `begin`.

    OptionError if the trees would not fit into the memory of the device.
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

    def root_only(values: Array, dtype: Any) -> Array:
        return jnp.zeros((*table, *values.shape[1:]), dtype).at[:, 0].set(values.astype(dtype))

    return Tree(
        child=jnp.full((*table, actions), NONE, number),
        logits=jnp.full((*table, actions), -jnp.inf, jnp.float16),
        state=jax.tree.map(lambda leaf: root_only(leaf, leaf.dtype), stored(nodes)),
        visits=jnp.zeros(table, jnp.int32),
        total=jnp.zeros(table, jnp.float32),
        value=jnp.zeros(table, jnp.float32),
        player=root_only(jax.vmap(game.to_play)(states), jnp.int8),
        over=root_only(jax.vmap(game.is_over)(states), jnp.int8),
        parent=jnp.full(table, NONE, number),
        onward=jnp.zeros(table, jnp.int32),
        free=jnp.broadcast_to(jnp.arange(slots, dtype=number), table),
        used=jnp.ones(batch, jnp.int32),
        root=jnp.zeros(batch, jnp.int32),
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
    stats = jax.devices()[0].memory_stats() or {}
    limit = stats.get("bytes_limit") or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > limit:
        raise OptionError(
            f"search: the trees of {batch:,} games need {in_bytes(needed)}, the device has {in_bytes(limit)}; "
            "use fewer games or simulations"
        )
