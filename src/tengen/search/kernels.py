"""The walk and the backup as GPU programs, one per game: the same results as the plain versions.

A program keeps one node's moves on its lanes and follows the tree through memory, without waiting for other games.
For one leaf per tree; several leaves serve few games, where the plain version is good enough.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from tengen.search import rows
from tengen.search.schedule import wanted_visits
from tengen.search.settings import Settings
from tengen.search.tree import NONE, Tree
from tengen.search.walk import Path

# The columns of the table of a program's scalars.
ROOT, DONE, BUDGET, USED = range(4)
PARENT, ACTION, NODE, FRESH, ACTIVE = range(5)


def _compiler(lanes: int, interpret: bool) -> plgpu.CompilerParams | None:
    warps = 1 if lanes <= 128 else 4
    return None if interpret else plgpu.CompilerParams(num_warps=warps, num_stages=2)


def _lanes(actions: int) -> int:
    return max(16, 1 << (actions - 1).bit_length())


def walk(tree: Tree, interpret: bool) -> Path:
    """`walk.walk` for all games; Path [B, 1]."""
    batch, slots, actions = tree.child.shape
    scalars = jnp.stack([tree.root, tree.done, tree.budget, tree.used], -1).astype(jnp.int32)
    inputs = (scalars, tree.child, tree.logits, tree.visits, tree.total, tree.value, tree.player, tree.over, tree.free)
    lanes = _lanes(actions)
    found = pl.pallas_call(
        partial(_walk, tree.settings, slots, actions, lanes),
        grid=(batch,),
        out_shape=jax.ShapeDtypeStruct((batch, 5), jnp.int32),
        interpret=interpret,
        compiler_params=_compiler(lanes, interpret),
        name="tree_walk",
    )(*inputs, tree.noise, tree.base)
    columns = [found[:, column, None] for column in range(5)]
    return Path(columns[PARENT], columns[ACTION], columns[NODE], columns[FRESH] > 0, columns[ACTIVE] > 0)


def _walk(
    settings: Settings, slots: int, actions: int, lanes: int,
    scalars, child, logits, visits, total, value, player, over, free, noise, base, found,
):  # fmt: skip
    game = pl.program_id(0)
    lane = lax.broadcasted_iota(jnp.int32, (lanes,), 0)
    there = lane < actions
    root, done, budget, used = (scalars[game, column] for column in (ROOT, DONE, BUDGET, USED))
    root_noise = plgpu.load(noise.at[game, lane], mask=there, other=0.0)
    root_base = plgpu.load(base.at[game, lane], mask=there, other=0).astype(jnp.float32)
    evaluated = visits[game, root] > 0
    active = (done < budget) & (over[game, root] == 0)

    def row_at(node, children):
        known = children >= 0
        at = jnp.where(known, children, 0)
        sign = 1.0 - 2.0 * player[game, node].astype(jnp.float32)
        count = visits[game, node].astype(jnp.float32)
        prior = plgpu.load(logits.at[game, node, lane], mask=there, other=-jnp.inf).astype(jnp.float32)
        return rows.Row(
            logits=jnp.where(there, prior, -jnp.inf),
            visits=plgpu.load(visits.at[game, at], mask=known, other=0).astype(jnp.float32),
            total=sign * plgpu.load(total.at[game, at], mask=known, other=0.0),
            node_visits=count,
            node_value=sign * total[game, node] / jnp.maximum(count, 1.0),
            first_value=sign * value[game, node],
        )

    def choose(node, children):
        row, is_root = row_at(node, children), node == root
        if settings.algorithm == "puct":
            return rows.puct_choice(row, root_noise, is_root, settings)
        considered = jnp.minimum(jnp.sum(jnp.where(row.legal, 1, 0)), settings.considered)
        wanted = wanted_visits(considered, settings.considered, budget, done)
        return rows.gumbel_choice(row, root_noise, root_base, wanted.astype(jnp.float32), is_root, settings)

    def step(carry):
        node, *_ = carry
        children = plgpu.load(child.at[game, node, lane], mask=there, other=NONE).astype(jnp.int32)
        known = children >= 0
        ends = plgpu.load(over.at[game, jnp.where(known, children, 0)], mask=known, other=0).astype(jnp.int32)
        action = choose(node, children)
        # Picked from the lanes: going to memory again would double the time of a level.
        chosen = lane == action
        reached = jnp.sum(jnp.where(chosen, children, 0))
        ended = jnp.sum(jnp.where(chosen, ends, 0)) > 0
        further = (reached >= 0) & ~ended
        return jnp.where(further, reached, node), action, jnp.where(ended, reached, NONE), further

    start = (root, jnp.int32(0), jnp.int32(NONE), active & evaluated)
    parent, action, leaf, _ = lax.while_loop(lambda carry: carry[3], step, start)
    new = active & evaluated & (leaf == NONE)
    slot = jnp.where(used < slots, free[game, jnp.minimum(used, slots - 1)].astype(jnp.int32), NONE)
    node = jnp.where(evaluated, jnp.where(new, slot, leaf), root)
    found[game, PARENT] = parent
    found[game, ACTION] = action
    found[game, NODE] = node
    found[game, FRESH] = (active & (new | ~evaluated)).astype(jnp.int32)
    found[game, ACTIVE] = active.astype(jnp.int32)


def expand(tree: Tree, path: Path, new: tuple[Array, Array, Array, Array, Array], interpret: bool) -> Tree:
    """`expand` for all games: `new` is logits [B, A], state [B, W], value, player and over [B] of the leaves."""
    batch, _, actions = tree.child.shape
    logits, state, value, player, over = new
    words = state.shape[1]
    lanes = _lanes(max(actions, words))
    scalars = jnp.stack([tree.root, tree.done, tree.budget, tree.used], -1).astype(jnp.int32)
    where = jnp.concatenate([x.astype(jnp.int32) for x in path], -1)
    leaf = jnp.stack([player.astype(jnp.int32), over.astype(jnp.int32)], -1)
    tables = (
        tree.child,
        tree.logits,
        tree.state,
        tree.visits,
        tree.total,
        tree.value,
        tree.player,
        tree.over,
        tree.parent,
    )
    inputs = (scalars, where, logits, state, value, leaf)
    counters = jax.ShapeDtypeStruct((batch, 2), jnp.int32)
    *tables, counters = pl.pallas_call(
        partial(_expand, actions, words, lanes),
        grid=(batch,),
        out_shape=[*(jax.ShapeDtypeStruct(table.shape, table.dtype) for table in tables), counters],
        input_output_aliases={len(inputs) + k: k for k in range(len(tables))},
        interpret=interpret,
        compiler_params=_compiler(lanes, interpret),
        name="tree_expand",
    )(*inputs, *tables)
    names = ("child", "logits", "state", "visits", "total", "value", "player", "over", "parent")
    return replace(tree, **dict(zip(names, tables, strict=True)), used=counters[:, 0], done=counters[:, 1])


def _expand(actions: int, words: int, lanes: int, scalars, where, logits, state, value, leaf, *refs):
    tables, counters = refs[9:18], refs[18]  # refs[:9] are the same memory as inputs
    child, all_logits, all_states, visits, total, values, players, overs, parents = tables
    game = pl.program_id(0)
    lane = lax.broadcasted_iota(jnp.int32, (lanes,), 0)
    root, done, used = scalars[game, ROOT], scalars[game, DONE], scalars[game, USED]
    parent, action, node = where[game, PARENT], where[game, ACTION], where[game, NODE]
    fresh, active = where[game, FRESH] > 0, where[game, ACTIVE] > 0
    evaluated = visits[game, root] > 0
    stored = fresh & active & (node >= 0)
    grown = stored & (node != root)
    at = jnp.where(node >= 0, node, 0)

    on_actions, on_words = stored & (lane < actions), stored & (lane < words)
    fetched = plgpu.load(logits.at[game, lane], mask=lane < actions, other=0.0)
    plgpu.store(all_logits.at[game, at, lane], fetched.astype(all_logits.dtype), mask=on_actions)
    plgpu.store(child.at[game, at, lane], jnp.full((lanes,), NONE, child.dtype), mask=on_actions)
    packed = plgpu.load(state.at[game, lane], mask=lane < words, other=jnp.uint32(0))
    plgpu.store(all_states.at[game, at, lane], packed, mask=on_words)

    new_value = value[game]

    @pl.when(stored)
    def _():
        visits[game, at] = 0
        total[game, at] = 0.0
        values[game, at] = new_value
        players[game, at] = leaf[game, 0].astype(players.dtype)
        overs[game, at] = leaf[game, 1].astype(overs.dtype)
        parents[game, at] = jnp.where(node == root, NONE, parent).astype(parents.dtype)

    @pl.when(grown)
    def _():
        child[game, parent, action] = node.astype(child.dtype)

    counters[game, 0] = used + grown.astype(jnp.int32)
    counters[game, 1] = done + (active & evaluated).astype(jnp.int32)

    end = jnp.where(node >= 0, node, parent)
    gain = jnp.where((node >= 0) & ~stored, values[game, at], new_value)

    def up(here):
        old_visits, old_total = visits[game, here], total[game, here]
        # What was just written for a new leaf may not be readable yet.
        first = stored & (here == at)
        visits[game, here] = jnp.where(first, 0, old_visits) + 1
        total[game, here] = jnp.where(first, 0.0, old_total) + gain
        above = jnp.where(first, jnp.where(node == root, NONE, parent), parents[game, here].astype(jnp.int32))
        return jnp.where(here == root, NONE, above)

    lax.while_loop(lambda here: here >= 0, up, jnp.where(active, end, NONE))
