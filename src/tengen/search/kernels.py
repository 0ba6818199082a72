"""The walk and the backup as GPU programs, one per game: the same results as the plain versions.

Below the root, what to follow at a node depends only on the visits of its moves, which change only when a value passes
through it. So after a backup the choice is worked out again at the nodes that it has touched, and kept
(`Tree.onward`); a walk reads one number per level. The network pushes the trees out of all caches between two walks, so
the number of reads that wait for one another is what counts.

For one leaf per tree; several leaves serve few games, where the plain version is good enough.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from tengen.search import rows
from tengen.search.settings import Settings
from tengen.search.tree import NONE, Tree
from tengen.search.walk import New, Path

# Tree.onward holds the action in its lower half and the child + 1 in its upper half, or OVER.
OVER = -1


def _compiler(lanes: int, interpret: bool) -> plgpu.CompilerParams | None:
    warps = 1 if lanes <= 128 else 4
    return None if interpret else plgpu.CompilerParams(num_warps=warps, num_stages=2)


def _lanes(count: int) -> int:
    return max(16, 1 << (count - 1).bit_length())


def _flat(leaf: Array, axes: int) -> Array:
    """[B, F] or [B, N, F]: all axes after the first `axes` as one."""
    return leaf.reshape(*leaf.shape[:axes], -1)


def _tables(names: tuple[str, ...], refs: Any) -> dict[str, Any]:
    return dict(zip(names, refs, strict=True))


def _read(tables: dict[str, Any], game: Any, node: Any, lane: Any, there: Any) -> tuple[rows.Row, Any]:
    """The row [1, lanes] of a node, and its children."""
    visits, total = tables["visits"], tables["total"]
    children = plgpu.load(tables["child"].at[game, node, lane], mask=there, other=NONE).astype(jnp.int32)
    logits = plgpu.load(tables["logits"].at[game, node, lane], mask=there, other=-jnp.inf)
    sign = 1.0 - 2.0 * tables["player"][game, node].astype(jnp.float32)
    count = visits[game, node].astype(jnp.float32)
    known = children >= 0
    at = jnp.where(known, children, 0)
    row = rows.Row(
        logits=logits.astype(jnp.float32),
        visits=plgpu.load(visits.at[game, at], mask=known, other=0).astype(jnp.float32),
        total=sign * plgpu.load(total.at[game, at], mask=known, other=0.0),
        node_visits=count,
        node_value=sign * total[game, node] / jnp.maximum(count, 1.0),
        first_value=sign * tables["value"][game, node],
    )
    return row, children


_WALKED: tuple[str, ...] = ("child", "logits", "visits", "total", "value", "player", "over", "onward", "free")


def walk(tree: Tree, interpret: bool) -> tuple[Path, Any]:
    """Path [B, 1], and the stored states [B, ...] of the nodes above the leaves."""
    batch, slots, actions = tree.child.shape
    lanes = _lanes(actions)
    leaves, treedef = jax.tree.flatten(tree.state)
    kept = [k for k, leaf in enumerate(leaves) if leaf.size]  # a leaf may be empty
    tables = [_flat(leaves[k], 2) for k in kept]
    scalars = (tree.root, tree.done, tree.budget, tree.used)
    found = pl.pallas_call(
        partial(_walk, tree.settings, slots, actions, lanes, len(tables)),
        grid=(batch,),
        out_shape=[
            *[jax.ShapeDtypeStruct((batch,), jnp.int32)] * len(Path._fields),
            *(jax.ShapeDtypeStruct((batch, table.shape[2]), table.dtype) for table in tables),
        ],
        interpret=interpret,
        compiler_params=_compiler(lanes, interpret),
        name="tree_walk",
    )(*scalars, tree.noise, tree.base, *(getattr(tree, name) for name in _WALKED), *tables)
    parent, action, node, *flags = (x[:, None] for x in found[: len(Path._fields)])
    above = [leaf[:, 0] for leaf in leaves]
    for k, part in zip(kept, found[len(Path._fields) :], strict=True):
        above[k] = part.reshape(above[k].shape)
    return Path(parent, action, node, *(flag > 0 for flag in flags)), jax.tree.unflatten(treedef, above)


def _walk(settings: Settings, slots: int, actions: int, lanes: int, leaves: int, *refs: Any) -> None:
    root_ref, done_ref, budget_ref, used_ref, noise, base = refs[:6]
    tables = _tables(_WALKED, refs[6:15])
    states, found, above = refs[15 : 15 + leaves], refs[15 + leaves : 21 + leaves], refs[21 + leaves :]
    game = pl.program_id(0)
    root, done, budget, used = (ref[game] for ref in (root_ref, done_ref, budget_ref, used_ref))
    lane = lax.broadcasted_iota(jnp.int32, (1, lanes), 1)
    there = lane < actions
    evaluated = tables["visits"][game, root] > 0
    active = (done < budget) & (tables["over"][game, root] == 0)

    row, children = _read(tables, game, root, lane, there)
    root_noise = plgpu.load(noise.at[game, lane], mask=there, other=0.0)
    root_base = plgpu.load(base.at[game, lane], mask=there, other=0).astype(jnp.float32)
    first = jnp.max(rows.choice_at_root(row, root_noise, root_base, budget, done, settings))
    first_child = jnp.max(jnp.where(lane == first, children, NONE))

    def further(carry):
        _, _, reached, ended = carry
        return (reached >= 0) & (ended == 0)

    def step(carry):
        parent, action, reached, _ = carry
        onward = tables["onward"][game, reached]
        ended = onward == OVER
        return (
            jnp.where(ended, parent, reached),
            jnp.where(ended, action, onward & 0xFFFF),
            jnp.where(ended, reached, (onward >> 16) - 1),
            ended.astype(jnp.int32),
        )

    walks = active & evaluated
    start = (root, jnp.where(walks, first, 0), jnp.where(walks, first_child, NONE), jnp.int32(0))
    parent, action, reached, ended = lax.while_loop(further, step, start)
    new = walks & (ended == 0)
    slot = jnp.where(used < slots, tables["free"][game, jnp.minimum(used, slots - 1)].astype(jnp.int32), NONE)
    leaf = jnp.where(ended > 0, reached, NONE)
    node = jnp.where(evaluated, jnp.where(new, slot, leaf), root)
    fresh = active & (new | (tables["visits"][game, root] == 0))
    for ref, value in zip(found, (parent, action, node, fresh, new, active), strict=True):
        ref[game] = value.astype(jnp.int32)
    for source, target in zip(states, above, strict=True):
        lane = lax.broadcasted_iota(jnp.int32, (_lanes(target.shape[1]),), 0)
        inside = lane < target.shape[1]
        fetched = plgpu.load(source.at[game, parent, lane], mask=inside, other=0)
        plgpu.store(target.at[game, lane], fetched, mask=inside)


_GROWN: tuple[str, ...] = ("child", "logits", "visits", "total", "value", "player", "over", "parent", "onward")


def expand(tree: Tree, path: Path, new: New, interpret: bool) -> Tree:
    """`expand` for all games: Path [B, 1], New [B, ...]."""
    batch, slots, actions = tree.child.shape
    lanes = _lanes(actions)
    leaves, treedef = jax.tree.flatten(tree.state)
    kept = [k for k, leaf in enumerate(leaves) if leaf.size]
    shapes = [leaf.shape for leaf in leaves]
    tables = [*(getattr(tree, name) for name in _GROWN), *(_flat(leaves[k], 2) for k in kept)]
    states = [_flat(jax.tree.leaves(new.state)[k], 1) for k in kept]
    where = [x[:, 0].astype(jnp.int32) for x in path]
    inputs = (tree.root, tree.done, tree.used, *where, new.logits, new.value, new.player, new.over, *states)
    counter = jax.ShapeDtypeStruct((batch,), jnp.int32)
    trail = jax.ShapeDtypeStruct((batch, slots), jnp.int16)
    found = pl.pallas_call(
        partial(_expand, actions, lanes, len(states)),
        grid=(batch,),
        out_shape=[*(jax.ShapeDtypeStruct(table.shape, table.dtype) for table in tables), *[counter] * 4, trail],
        input_output_aliases={len(inputs) + k: k for k in range(len(tables))},
        interpret=interpret,
        compiler_params=_compiler(lanes, interpret),
        name="tree_expand",
    )(*inputs, *tables)
    for k, table in zip(kept, found[len(_GROWN) : len(tables)], strict=True):
        leaves[k] = table.reshape(shapes[k])
    used, done, *trail = found[len(tables) :]
    grown = _tables(_GROWN, found[: len(_GROWN)])
    tree = replace(tree, **grown, state=jax.tree.unflatten(treedef, leaves), used=used, done=done)
    return replace(tree, onward=_plan(tree, trail, interpret))


def _expand(actions: int, lanes: int, leaves: int, *refs: Any) -> None:
    root_ref, done_ref, used_ref, *where = refs[:9]
    logits, value, player, over = refs[9:13]
    states = refs[13 : 13 + leaves]
    outputs = refs[13 + leaves + len(_GROWN) + leaves :]  # before them, the same memory as inputs
    tables, all_states = _tables(_GROWN, outputs[: len(_GROWN)]), outputs[len(_GROWN) : len(_GROWN) + leaves]
    used_out, done_out, first_out, length_out, trail = outputs[len(_GROWN) + leaves :]
    game = pl.program_id(0)
    root, done, used = root_ref[game], done_ref[game], used_ref[game]
    parent, action, node, fresh, _, active = (ref[game] for ref in where)
    evaluated = tables["visits"][game, root] > 0
    active = active > 0
    stored = (fresh > 0) & active & (node >= 0)
    grown = stored & (node != root)
    at = jnp.where(node >= 0, node, 0)

    lane = lax.broadcasted_iota(jnp.int32, (1, lanes), 1)
    there = lane < actions
    new_logits = plgpu.load(logits.at[game, lane], mask=there, other=-jnp.inf)
    plgpu.store(tables["logits"].at[game, at, lane], new_logits, mask=stored & there)
    nothing = jnp.full((1, lanes), NONE, tables["child"].dtype)
    plgpu.store(tables["child"].at[game, at, lane], nothing, mask=stored & there)
    for source, target in zip(states, all_states, strict=True):
        word = lax.broadcasted_iota(jnp.int32, (_lanes(source.shape[1]),), 0)
        inside = word < source.shape[1]
        fetched = plgpu.load(source.at[game, word], mask=inside, other=0)
        plgpu.store(target.at[game, at, word], fetched, mask=inside & stored)
    new_value, new_player = value[game], player[game]

    @pl.when(stored)
    def _():
        tables["value"][game, at] = new_value
        tables["player"][game, at] = new_player
        tables["over"][game, at] = over[game]
        tables["parent"][game, at] = jnp.where(node == root, NONE, parent).astype(jnp.int16)

    @pl.when(grown)
    def _():
        tables["child"][game, parent, action] = node.astype(jnp.int16)

    used_out[game] = used + grown.astype(jnp.int32)
    done_out[game] = done + (active & evaluated).astype(jnp.int32)
    gain = jnp.where((node >= 0) & (fresh == 0), tables["value"][game, at], new_value)
    # A leaf for which there was no room counts for its parent. Beyond the end of a game nothing is followed.
    end = jnp.where(node >= 0, node, parent)
    game_ends = (node >= 0) & ((fresh == 0) | (over[game] > 0))

    @pl.when(stored & game_ends)
    def _():
        tables["onward"][game, at] = jnp.int32(OVER)

    def up(carry):
        here, length = carry
        # What was just written for a new leaf may not be readable yet.
        first = stored & (here == at)
        old_visits, old_total = tables["visits"][game, here], tables["total"][game, here]
        above = jnp.where(first, parent, tables["parent"][game, here].astype(jnp.int32))
        tables["visits"][game, here] = jnp.where(first, 0, old_visits) + 1
        tables["total"][game, here] = jnp.where(first, 0.0, old_total) + gain
        trail[game, length] = here.astype(jnp.int16)
        return jnp.where(here == root, NONE, above), length + 1

    start = (jnp.where(active, end, NONE), jnp.int32(0))
    length = lax.while_loop(lambda carry: carry[0] >= 0, up, start)[1]
    # The root, last on the trail, is left to the walk: what it follows depends on noise and the search's progress.
    first_out[game] = game_ends.astype(jnp.int32)
    length_out[game] = length - 1


_PLANNED: tuple[str, ...] = ("child", "logits", "visits", "total", "value", "player")
_TOGETHER = 4  # programs that share the nodes of one trail


def _plan(tree: Tree, trail: list[Array], interpret: bool) -> Array:
    """Tree.onward, worked out again for the nodes on the trails: [B] first, [B] end, and Int16[B, N]."""
    batch, _, actions = tree.child.shape
    lanes = _lanes(actions)
    inputs = (*trail, *(getattr(tree, name) for name in _PLANNED))
    return pl.pallas_call(
        partial(_plan_program, tree.settings, actions, lanes),
        grid=(batch, _TOGETHER),
        out_shape=jax.ShapeDtypeStruct(tree.onward.shape, tree.onward.dtype),
        input_output_aliases={len(inputs): 0},
        interpret=interpret,
        compiler_params=_compiler(lanes, interpret),
        name="tree_plan",
    )(*inputs, tree.onward)


def _plan_program(settings: Settings, actions: int, lanes: int, first: Any, end: Any, trail: Any, *refs: Any) -> None:
    tables, onward = _tables(_PLANNED, refs[:-2]), refs[-1]
    game = pl.program_id(0)
    lane = lax.broadcasted_iota(jnp.int32, (1, lanes), 1)
    there = lane < actions

    def plan(place):
        node = trail[game, place].astype(jnp.int32)
        row, children = _read(tables, game, node, lane, there)
        best = jnp.max(rows.choice_below(row, settings))
        child = jnp.max(jnp.where(lane == best, children, NONE))
        onward[game, node] = best | ((child + 1) << 16)
        return place + _TOGETHER

    lax.while_loop(lambda place: place < end[game], plan, first[game] + pl.program_id(1))
