"""The walk, the backup and new roots as GPU programs (`tree.cu`): the same results as the plain versions.

Choices below the root are computed after a backup and stored in `Tree.onward` (docs/architecture.md says why). The
programs add one leaf per tree; several leaves are for few games, for which the plain version is fast enough.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Int32

from tengen import gpu
from tengen.config.settings.search import SearchSettings
from tengen.gpu.program import defines
from tengen.search.tree import Trail, Tree, parts
from tengen.search.walk import NewNode, WalkPath

MOST_ACTIONS = 2**16  # `Tree.onward` stores an action in 16 bits
_THREADS = 128  # in a block
_PLANNING = 2**19  # threads that share the nodes of all trails, at least 4 teams for each trail
_PLAN_BLOCKS = 10  # on one multiprocessor: with few registers, more nodes are read at a time

_READ: tuple[str, ...] = ("child", "logits", "visits", "total", "value", "player", "moves")
_WALKED: tuple[str, ...] = (*_READ, "over", "onward", "free")
_GROWN: tuple[str, ...] = (*_READ, "over", "parent", "onward", "apart")
_NUMBERS = {1: "u8", 2: "u16", 4: "u32"}  # types by their bytes


def by_device(tree: Tree, plain: Callable[..., Any], program: Callable[..., Any]) -> Callable[..., Any]:
    """The version that `SearchSettings.kernels` selects: `auto` is the GPU program on NVIDIA GPUs with one leaf."""
    wish = tree.settings.kernels
    if wish == "plain" or tree.settings.leaves > 1 or tree.child.shape[2] > MOST_ACTIONS:
        return plain
    if wish == "gpu":
        return program
    return lambda *args: lax.platform_dependent(*args, cuda=program, default=plain)


def _tables(tree: Tree, names: tuple[str, ...]) -> dict[str, Array]:
    """Those that are not empty: there may be no lists of moves, and no points."""
    return {name: table for name in names if (table := getattr(tree, name)).size}


def _program(tree: Tree, entry: str, **more: object) -> gpu.Program:
    batch, slots, actions = tree.child.shape
    team = _team(tree)
    numbers = {
        field.name.upper(): getattr(tree.settings, field.name)
        for field in fields(SearchSettings)
        if isinstance(getattr(tree.settings, field.name), int | float)
    }
    return gpu.Program(
        "search/tree.cu",
        entry,
        threads=_THREADS,
        defines=defines(
            BATCH=batch,
            SLOTS=slots,
            ACTIONS=actions,
            LISTED=tree.moves.shape[2] // 3,
            TEAM=team,
            TEAMS=_THREADS // team,
            GUMBEL=tree.settings.algorithm == "gumbel",
            HALVINGS=max(1, math.ceil(math.log2(max(tree.settings.considered, 2)))),
            PLANNERS=_planners(tree),
            PLAN_BLOCKS=_PLAN_BLOCKS if tree.moves.shape[2] else 1,
            **numbers,
            **{entry.upper(): 1},
            **more,
        ),
    )


def _team(tree: Tree) -> int:
    """Threads per node."""
    return 32 if tree.moves.shape[2] or tree.child.shape[2] <= 128 else _THREADS


def _planners(tree: Tree) -> int:
    """Teams that share the nodes of one trail."""
    return min(max(4, _PLANNING // (tree.child.shape[0] * _team(tree))), 32)


def _blocks(tree: Tree, per_tree: int = 1) -> int:
    return -(-tree.child.shape[0] * per_tree // (_THREADS // _team(tree)))


def _flat(leaf: Array, axes: int) -> Array:
    return leaf.reshape(*leaf.shape[:axes], -1)


def _parameters(kind: str, letter: str, count: int) -> str:
    return "".join(f", {kind} {letter}{k}" for k in range(count))


def _copies(sizes: list[int], source: str, target: str) -> str:
    """Statements that copy a position of the arrays `s0`, ... to one of the arrays `a0`, ..."""
    loads = (f"Held<{size}> h{k}; h{k}.load(s{k} + ({source}) * {size}, thread);" for k, size in enumerate(sizes))
    stores = (f"h{k}.store(a{k} + ({target}) * {size}, thread);" for k, size in enumerate(sizes))
    return " ".join((*loads, *stores))


def _stored_leaves(tree: Tree) -> tuple[list[Array], Any, list[int], list[Array], list[int]]:
    """The arrays of the positions and their structure; of those that are not empty: numbers, tables, bytes."""
    leaves, structure = jax.tree.flatten(tree.state)
    kept = [k for k, leaf in enumerate(leaves) if leaf.size]
    tables = [_flat(leaves[k], 2) for k in kept]
    return leaves, structure, kept, tables, [table.shape[2] * table.dtype.itemsize for table in tables]


def walk(tree: Tree) -> tuple[WalkPath, Any, Trail]:
    """The paths, the stored states [batch, ...] of the nodes above the leaves, and the nodes on the way."""
    batch = tree.child.shape[0]
    leaves, structure, kept, tables, sizes = _stored_leaves(tree)
    program = _program(
        tree,
        "tree_walk",
        STATES_IN=_parameters("const u8*", "s", len(kept)),
        STATES_OUT=_parameters("u8*", "a", len(kept)),
        COPY_STATES=_copies(sizes, "nodes + parent", "(long long)game"),
    )
    found = gpu.call(
        program,
        [
            *(tree.root, tree.done, tree.budget, tree.used, tree.noise, tree.base),
            *_tables(tree, _WALKED).values(),
            *tables,
        ],
        [
            *[jax.ShapeDtypeStruct((batch,), jnp.int32)] * (len(WalkPath._fields) + 1),
            jax.ShapeDtypeStruct(tree.visits.shape, jnp.int16),
            *(jax.ShapeDtypeStruct((batch, table.shape[2]), table.dtype) for table in tables),
        ],
        blocks=_blocks(tree),
    )
    end = len(WalkPath._fields)
    parent, action, node, *flags = (x[:, None] for x in found[:end])
    length, trail, *copies = found[end:]
    above = [leaf[:, 0] for leaf in leaves]
    for k, copy in zip(kept, copies, strict=True):
        above[k] = copy.reshape(above[k].shape)
    path = WalkPath(parent, action, node, *(flag > 0 for flag in flags))
    return path, jax.tree.unflatten(structure, above), Trail(length, trail)


def expand(tree: Tree, path: WalkPath, trail: Trail, new: NewNode) -> Tree:
    """`expand` for all games."""
    batch = tree.child.shape[0]
    leaves, structure, kept, positions, sizes = _stored_leaves(tree)
    scored = parts(tree.settings) > 0
    program = _program(
        tree,
        "tree_expand",
        APART_NEW=", const Apart* new_aparts" if scored else "",
        APART_TABLE=", const void*" if scored else "",
        APART=", Apart* apart" if scored else "",
        SCORED=scored,
        STATES_IN=_parameters("const u8*", "s", len(kept)),
        TABLES_IN=_parameters("const void*", "t", len(kept)),
        STATES_OUT=_parameters("u8*", "a", len(kept)),
        STORE_STATES=_copies(sizes, "(long long)game", "nodes + node"),
    )
    states = jax.tree.leaves(new.state)
    inputs = [
        *(tree.root, tree.done, tree.used),
        *(x[:, 0].astype(jnp.int32) for x in path),
        *trail,
        *(new.logits, new.value, new.player, new.over),
        *([new.apart] if scored else []),
        *(_flat(states[k], 1) for k in kept),
    ]
    grown = _tables(tree, _GROWN)
    tables = [*grown.values(), *positions]
    found = gpu.call(
        program,
        [*inputs, *tables],
        [
            *(jax.ShapeDtypeStruct(table.shape, table.dtype) for table in tables),
            *[jax.ShapeDtypeStruct((batch,), jnp.int32)] * 3,
        ],
        blocks=_blocks(tree),
        aliases={len(inputs) + k: k for k in range(len(tables))},
    )
    for k, table in zip(kept, found[len(grown) : len(tables)], strict=True):
        leaves[k] = table.reshape(leaves[k].shape)
    used, done, leaf = found[len(tables) :]
    tree = replace(
        tree, **dict(zip(grown, found, strict=False)), state=jax.tree.unflatten(structure, leaves), used=used, done=done
    )
    return replace(tree, onward=_plan(tree, trail, leaf))


def _plan(tree: Tree, trail: Trail, leaf: Array) -> Array:
    """`Tree.onward`, computed again for the nodes on the trails and the new leaves (-1: none) [batch]."""
    inputs = [*trail, leaf, *_tables(tree, _READ).values(), tree.onward]
    shape = jax.ShapeDtypeStruct(tree.onward.shape, tree.onward.dtype)
    program = _program(tree, "tree_plan")
    (onward,) = gpu.call(program, inputs, [shape], blocks=_blocks(tree, _planners(tree)), aliases={len(inputs) - 1: 0})
    return onward


def put_rows(
    tree: Tree,
    numbers: Sequence[float | None],
    nodes: Int32[Array, " batch"],
    tables: Sequence[Array],
    rows: Sequence[Array],
) -> list[Array]:
    """The tables [batch, slots, ...] of a tree with other rows at one node of each game, in one launch.

    A table with a number is filled with it; the others get the rows [batch, ...], in this order. A node that is none
    of the slots: nothing changes.
    """
    loads, stores, given = "", "", 0
    for k, (table, number) in enumerate(zip(tables, numbers, strict=True)):
        count, size = math.prod(table.shape[2:]), table.dtype.itemsize
        if number is None:
            loads += f"Held<{count * size}> h{k}; h{k}.load(v{given} + (long long)game * {count * size}, thread); "
            stores += f"h{k}.store(a{k} + node * {count * size}, thread); "
            given += 1
        else:
            bits = np.asarray(number).astype(table.dtype).reshape(1).view(f"u{size}")[0]
            at = f"(({_NUMBERS[size]}*)a{k})[node * {count} + k]"
            stores += f"for (int k = thread; k < {count}; k += TEAM) {at} = {bits}u; "
    program = _program(
        tree,
        "tree_root",
        VALUES_IN=_parameters("const u8*", "v", given),
        TABLES_IN=", const void*" * len(tables),
        TABLES_OUT=_parameters("u8*", "a", len(tables)),
        PUT_ROWS=loads + stores,
    )
    return gpu.call(
        program,
        [nodes, *rows, *tables],
        [jax.ShapeDtypeStruct(table.shape, table.dtype) for table in tables],
        blocks=_blocks(tree),
        aliases={1 + len(rows) + k: k for k in range(len(tables))},
    )
