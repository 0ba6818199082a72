"""A search tree as JSON data or text."""

from typing import Any

import jax
import numpy as np

from tengen.search.tree import Tree, node_shape, parts


def as_dict(tree: Tree, game: int = 0, depth: int = 3, least_visits: int = 1) -> dict[str, Any]:
    """The tree of one game of the batch as JSON data: the root with its moves in order of visits, recursively.

    The `q` and `value` of a move are from the side of the player who made it, those of the root from the side of the
    player to move; `line` is the expected continuation. Nodes deeper than `depth` or with fewer than `least_visits`
    visits are left out. If points count (`score_weight`), `q` and `value` include them, and `won` and `score` are the
    means of the two.
    """
    return _Reader(tree, game).node(int(tree.root[game]), None, None, depth, least_visits)


def as_text(tree: Tree, game: int = 0, depth: int = 3, least_visits: int = 1) -> str:
    """The same as an indented list below the position and the expected continuation."""
    position = jax.tree.map(lambda leaf: leaf[game], tree.states(tree.root))
    found = as_dict(tree, game, depth, least_visits)
    line = " ".join(found["line"])
    lines = [tree.game.render(position), "", f"expected: {line or '(nothing searched yet)'}", ""]
    return "\n".join([*lines, *_lines(found, "")])


class _Reader:
    def __init__(self, tree: Tree, game: int) -> None:
        self.game = tree.game
        self.one: Tree = jax.tree.map(lambda leaf: np.asarray(leaf[game]), tree)
        self.shape = node_shape(tree.game)
        self.names: dict[tuple[int, int], str] = {}  # a tree has thousands, and lines use them again

    def node(
        self, node: int, move: str | None, mover: int | None, depth: int, least_visits: int, prior: float | None = None
    ) -> dict[str, Any]:
        one = self.one
        visits, player = int(one.visits[node]), int(one.player[node])
        sign = 1 - 2 * (player if mover is None else mover)
        found: dict[str, Any] = {
            "move": move,
            "visits": visits,
            "q": sign * float(one.total[node]) / visits if visits else None,
            "value": sign * float(one.value[node]),
            "prior": prior,
            "to_play": player,
            "over": bool(one.over[node]),
            "line": self.line(node),
            "children": [],
        }
        if parts(one.settings):
            found["won"], found["score"] = (sign * one.apart[node] / max(visits, 1)).tolist()
        if depth == 0:
            return found
        for action, child in self.children(node):
            if one.visits[child] >= least_visits:
                name = self.name(node, action)
                chance = float(np.exp(np.float32(one.logits[node, action])))
                found["children"].append(self.node(child, name, player, depth - 1, least_visits, chance))
        return found

    def children(self, node: int) -> list[tuple[int, int]]:
        """(action, node) of the moves that have been searched, the most visited first."""
        one = self.one
        if one.visits[node] == 0 or one.over[node]:
            return []
        known = np.flatnonzero(one.child[node] >= 0)
        order = known[np.argsort(-one.visits[one.child[node][known]], kind="stable")]
        return [(int(action), int(one.child[node, action])) for action in order]

    def line(self, node: int) -> list[str]:
        """The most visited moves from a node on."""
        names = []
        while children := self.children(node):
            action, child = children[0]
            names.append(self.name(node, action))
            node = child
        return names

    def name(self, node: int, action: int) -> str:
        if (node, action) not in self.names:
            # All of a node's moves at once, since computing its state takes the time.
            state = self.state(node)
            for each in np.flatnonzero(self.one.child[node] >= 0):
                self.names[node, int(each)] = self.game.action_name(state, int(each))
        return self.names[node, action]

    def state(self, node: int) -> Any:
        inner = jax.tree.map(lambda table, like: np.asarray(table[node], like.dtype), self.one.state, self.shape)
        return self.game.join(inner, self.one.kept)


def _lines(node: dict[str, Any], indent: str) -> list[str]:
    q = "    -  " if node["q"] is None else f"{node['q']:+.4f}"
    prior = "      " if node["prior"] is None else f"{node['prior']:6.2%}"
    end = "  over" if node["over"] else ""
    own = f"{indent}{node['move'] or 'root':<6} {node['visits']:>6} visits  q {q}  prior {prior}"
    own += f"  value {node['value']:+.4f}{end}"
    return [own, *(line for child in node["children"] for line in _lines(child, indent + "  "))]
