"""A tree that a person, or another program, can read."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tengen.search.tree import Tree, restored


def as_dict(tree: Tree, game: int = 0, depth: int = 3, least_visits: int = 1) -> dict[str, Any]:
    """The tree of one game of the batch, ready for JSON: the root with its moves in order of visits, and so on down.

    Values are from the side of the player who moves at the node; `move` is what led there. Nodes deeper than `depth` or
    with fewer than `least_visits` visits are left out, and so are the moves behind them.
    """
    one = jax.tree.map(lambda leaf: np.asarray(leaf[game]), tree)
    root = int(one.root)
    return _node(one, tree, root, None, None, depth, least_visits)


def as_text(tree: Tree, game: int = 0, depth: int = 3, least_visits: int = 1) -> str:
    """The same as an indented list, headed by the position and the line that the search expects."""
    position = jax.tree.map(lambda leaf: leaf[game], tree.states(tree.root))
    found = as_dict(tree, game, depth, least_visits)
    line = " ".join(principal_variation(as_dict(tree, game, 1_000, 1)))
    lines = [tree.game.render(position), "", f"expected: {line or '(nothing searched yet)'}", ""]
    return "\n".join([*lines, *_lines(found, "")])


def principal_variation(node: dict[str, Any]) -> list[str]:
    """The moves that were visited most, from the root down."""
    line = []
    while node["children"]:
        node = node["children"][0]
        line.append(node["move"])
    return line


def _node(
    one: Tree, tree: Tree, node: int, move: str | None, prior: float | None, depth: int, least_visits: int
) -> dict[str, Any]:
    sign = 1 - 2 * int(one.player[node])
    visits = int(one.visits[node])
    found: dict[str, Any] = {
        "move": move,
        "visits": visits,
        "q": sign * float(one.total[node]) / visits if visits else None,
        "value": sign * float(one.value[node]),
        "prior": prior,
        "to_play": int(one.player[node]),
        "over": bool(one.over[node]),
        "children": [],
    }
    if depth == 0 or visits == 0 or found["over"]:
        return found
    known = np.flatnonzero(one.child[node] >= 0)
    order = known[np.argsort(-one.visits[one.child[node][known]], kind="stable")]
    inner = jax.tree.map(lambda table: jnp.asarray(table[node]), one.state)
    state = tree.game.join(restored(inner, tree.game), one.kept)
    for action in order:
        child = int(one.child[node, action])
        if one.visits[child] >= least_visits:
            name = tree.game.action_name(state, int(action))
            chance = float(np.exp(np.float32(one.logits[node, action])))
            found["children"].append(_node(one, tree, child, name, chance, depth - 1, least_visits))
    return found


def _lines(node: dict[str, Any], indent: str) -> list[str]:
    q = "    -  " if node["q"] is None else f"{node['q']:+.4f}"
    prior = "      " if node["prior"] is None else f"{node['prior']:6.2%}"
    end = "  over" if node["over"] else ""
    own = f"{indent}{node['move'] or 'root':<6} {node['visits']:>6} visits  q {q}  prior {prior}"
    own += f"  value {node['value']:+.4f}{end}"
    return [own, *(line for child in node["children"] for line in _lines(child, indent + "  "))]
