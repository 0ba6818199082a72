"""One simulation (`select` finds leaves, `expand` adds them once they are evaluated), and whole searches (`run`)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Float32, Int32

from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game, Observation, RandomKey
from tengen.nets.outputs import Evaluation
from tengen.search import gpu, points
from tengen.search.result import SearchResult, summarise
from tengen.search.roots import begin
from tengen.search.tree import NONE, Trail, Tree, parts, plant, restored, stored
from tengen.search.walk import NewNode, WalkPath, walk

Evaluate = Callable[[Observation], Evaluation]


class Leaves(NamedTuple):
    """The leaves of all trees in one batch, those of one tree together."""

    path: WalkPath  # [trees, walks]
    trail: Trail  # for GPU programs only
    states: Any  # the complete positions, [leaves, ...]
    legal: Bool[Array, "leaves actions"]
    observation: Observation  # what to evaluate
    player: Int32[Array, " leaves"]
    over: Bool[Array, " leaves"]
    result: Float32[Array, " leaves"]  # for player 0 if the game is over
    score: Float32[Array, " leaves"] | None  # the same in points, in games that have them


_LEAST = -60000.0
_Sums = tuple[Array, Array, Array]  # visits, total and apart of one tree


@jax.jit
def select(tree: Tree) -> Leaves:
    """Walks every game's tree from its root to a leaf (or several). The leaves of idle games mean nothing."""
    game, count = tree.game, tree.settings.leaves
    path, above, trail = gpu.by_device(tree, _walk, gpu.walk)(tree)
    kept = tree.kept if count == 1 else jax.tree.map(lambda x: jnp.repeat(x, count, 0), tree.kept)
    before = jax.vmap(game.join)(restored(above, game), kept)
    states, look = game.step_and_look(before, path.action.reshape(-1), ~path.moves.reshape(-1))
    player = jax.vmap(game.to_play)(states)
    return Leaves(path, trail, states, look.legal, look.observation, player, look.over, look.returns[:, 0], look.score)


def _walk(tree: Tree) -> tuple[WalkPath, Any, Trail]:
    """The paths, the stored states [leaves, ...] of the nodes above the leaves, and an empty trail."""
    path = jax.vmap(walk)(tree)
    trees = jnp.repeat(jnp.arange(tree.root.shape[0]), tree.settings.leaves)
    above = jax.tree.map(lambda table: table[trees, path.parent.reshape(-1)], tree.state)
    return path, above, Trail(jnp.zeros_like(tree.root), jnp.zeros(tree.visits.shape, jnp.int16))


@jax.jit
def expand(tree: Tree, leaves: Leaves, evaluation: Evaluation) -> Tree:
    """Adds the leaves and backs their values up to the roots."""
    batch, count = leaves.path.node.shape
    value, apart, centre = _valued(tree, leaves, evaluation)
    masked = jnp.where(leaves.legal, evaluation.logits.astype(jnp.float32), -jnp.inf)
    logits = jax.nn.log_softmax(masked, where=leaves.legal)
    # However small a prior is, half precision must not make its move illegal.
    logits = jnp.where(leaves.legal, jnp.maximum(logits, _LEAST), -jnp.inf).astype(jnp.float16)
    nodes = jax.vmap(tree.game.split)(leaves.states)[0]
    new = NewNode(logits, stored(nodes), value, apart, leaves.player.astype(jnp.int8), leaves.over.astype(jnp.int8))

    def plain(tree: Tree, path: WalkPath, trail: Trail, new: NewNode) -> Tree:
        per_tree = jax.tree.map(lambda x: x.reshape(batch, count, *x.shape[1:]), new)
        return jax.vmap(_expand)(tree, path, per_tree)

    return gpu.by_device(tree, plain, gpu.expand)(replace(tree, centre=centre), leaves.path, leaves.trail, new)


def _valued(
    tree: Tree, leaves: Leaves, evaluation: Evaluation
) -> tuple[Float32[Array, " leaves"], Float32[Array, "leaves parts"], Float32[Array, " trees"]]:
    """For player 0: what the leaves are worth, their values and scores for `Tree.apart`, and `Tree.centre`."""
    sign = 1.0 - 2.0 * leaves.player
    value = jnp.where(leaves.over, leaves.result, sign * evaluation.value.astype(jnp.float32))
    if parts(tree.settings) == 0:
        return value, jnp.zeros((len(value), 0)), tree.centre
    if leaves.score is None or evaluation.score is None:
        return value, jnp.stack([value, jnp.zeros_like(value)], -1), tree.centre
    said, count = evaluation.score.astype(jnp.float32), tree.settings.leaves
    score = jnp.where(leaves.over, leaves.score, sign * said[:, 0])
    spread = jnp.where(leaves.over, 0, said[:, 1])
    # A root that is evaluated now is the only leaf of its tree, and the tree is centred on it.
    roots = leaves.path.active[:, 0] & (leaves.path.node[:, 0] == tree.root)
    centre = jnp.where(roots, points.centre(score[::count], tree.game), tree.centre)
    term = points.term(score, spread, jnp.repeat(centre, count), tree.game)
    return value + tree.settings.score_weight * term, jnp.stack([value, score], -1), centre


def _expand(tree: Tree, path: WalkPath, new: NewNode) -> Tree:
    """One tree: writes the fresh leaves, then adds every walk's value to the nodes above its end."""
    slots = tree.visits.shape[0]
    stored = path.fresh & path.active & (path.node >= 0)
    at = jnp.where(stored, path.node, slots)  # writes beyond the table are dropped
    below = jnp.where(stored & (path.node != tree.root), path.parent, slots)

    def put(table: Array, values: Array) -> Array:
        return table.at[at].set(values.astype(table.dtype), mode="drop")

    tree = replace(
        tree,
        child=put(tree.child, jnp.full(new.logits.shape, NONE))
        .at[below, path.action]
        .set(path.node.astype(tree.child.dtype), mode="drop"),
        logits=put(tree.logits, new.logits),
        state=jax.tree.map(put, tree.state, new.state),
        value=put(tree.value, new.value),
        player=put(tree.player, new.player),
        over=put(tree.over, new.over),
        visits=put(tree.visits, jnp.zeros(len(at))),
        total=put(tree.total, jnp.zeros(len(at))),
        parent=put(tree.parent, jnp.where(path.node == tree.root, NONE, path.parent)),
        used=tree.used + (stored & (path.node != tree.root)).sum(),
        done=tree.done + (path.active & (tree.visits[tree.root] > 0)).sum(),
    )
    # A leaf for which there was no room counts for its parent; a walk that ended on a known node takes its value.
    end = jnp.where(path.node >= 0, path.node, path.parent)
    value = jnp.where(path.node >= 0, tree.value[end], new.value)
    # Visits of a known node that a walk can end on all had the same value and score.
    placed = put(tree.apart, new.apart)
    known = placed[end] / jnp.maximum(tree.visits[end], 1)[:, None]
    apart = jnp.where((path.node >= 0)[:, None], known, new.apart)

    def back_up(carry: _Sums, walk: tuple[Array, Array, Array, Array]) -> tuple[_Sums, None]:
        end, value, apart, active = walk

        def up(state: tuple[Array, _Sums]) -> tuple[Array, _Sums]:
            node, (visits, total, parts) = state
            above = jnp.where(node == tree.root, NONE, tree.parent[node].astype(jnp.int32))
            return above, (visits.at[node].add(1), total.at[node].add(value), parts.at[node].add(apart))

        return lax.while_loop(lambda state: state[0] >= 0, up, (jnp.where(active, end, NONE), carry))[1], None

    sums = tree.visits, tree.total, put(placed, jnp.zeros_like(new.apart))
    (visits, total, apart), _ = lax.scan(back_up, sums, (end, value, apart, path.active))
    return replace(tree, visits=visits, total=total, apart=apart)


def run(
    evaluate: Evaluate,
    game: Game,
    roots: Any,
    key: RandomKey,
    settings: SearchSettings,
    budget: Int32[Array, " batch"] | None = None,
    temperature: Float[Array, "*#batch"] | float = 0.0,
    slots: int | None = None,
) -> SearchResult:
    """Searches the positions `roots` [batch, ...], in one compiled loop with `evaluate` inside.

    `budget` gives each game its own number of simulations; `slots` is then the size of a tree, by default enough for
    `settings.simulations`. Further calls with the same `evaluate` (the same object) do not compile again. Inside a
    function that is being compiled the search becomes part of that function.
    """
    given = (roots, key, budget, temperature)
    tracing = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(given))
    return (_run if tracing else _compiled)(evaluate, game, settings, slots, *given)


def run_from_host(
    evaluate: Evaluate,
    game: Game,
    roots: Any,
    key: RandomKey,
    settings: SearchSettings,
    budget: Int32[Array, " batch"] | None = None,
    temperature: Float[Array, "*#batch"] | float = 0.0,
    slots: int | None = None,
) -> SearchResult:
    """`run` with any Python function as `evaluate`, which is called between two compiled calls of each simulation."""
    begun, choose = jax.random.split(key)
    tree = _begun(game, settings, slots or settings.simulations + 1, roots, begun, budget)
    while bool(unfinished(tree).any()):
        leaves = select(tree)
        tree = _expand_in_place(tree, leaves, evaluate(leaves.observation))
    return _summarise(tree, choose, temperature)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _begun(game: Game, settings: SearchSettings, slots: int, roots: Any, key: RandomKey, budget: Array | None) -> Tree:
    tree = plant(game, settings, roots, slots=slots)
    batch = tree.root.shape[0]
    same = jnp.full(batch, settings.simulations, jnp.int32)
    return begin(tree, key, same if budget is None else budget, jnp.ones(batch, bool))


def _run(
    evaluate: Evaluate, game: Game, settings: SearchSettings, slots: int | None,
    roots: Any, key: RandomKey, budget: Array | None, temperature: Array | float,
) -> SearchResult:  # fmt: skip
    search, choose = jax.random.split(key)
    tree = _begun(game, settings, slots or settings.simulations + 1, roots, search, budget)
    if budget is None and settings.leaves == 1:  # all games end together, so the host need not decide when
        tree = lax.fori_loop(0, settings.simulations + 1, lambda _, tree: simulate(evaluate, tree), tree)
    else:
        tree = finish(evaluate, tree)
    return summarise(tree, choose, temperature)


_compiled = jax.jit(_run, static_argnums=(0, 1, 2, 3))
_expand_in_place = jax.jit(expand, donate_argnums=0)
_summarise = jax.jit(summarise)


def unfinished(tree: Tree) -> Bool[Array, " batch"]:
    """The games that have not spent their budget."""
    return (tree.done < tree.budget) & (tree.over[jnp.arange(tree.root.shape[0]), tree.root] == 0)


def finish(evaluate: Evaluate, tree: Tree) -> Tree:
    """Simulates until every game has spent its budget. Compile it: `jax.jit(partial(search.finish, evaluate))`."""
    return lax.while_loop(lambda tree: unfinished(tree).any(), partial(simulate, evaluate), tree)


def simulate(evaluate: Evaluate, tree: Tree) -> Tree:
    """One simulation in every game (or several leaves, see `SearchSettings.leaves`)."""
    leaves = select(tree)
    return expand(tree, leaves, evaluate(leaves.observation))
