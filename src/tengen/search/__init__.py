"""Tree search over a batch of games, on the accelerator.

leaves = search.select(tree)                         # walk every game's tree from its root to a leaf
tree = search.expand(tree, leaves, evaluation)       # add the leaf, back its value up
result = search.run(evaluate, game, roots, key, settings)   # both, in one compiled loop with the network inside

`Settings` need no JAX, which is imported when anything else is asked for.
"""

from typing import TYPE_CHECKING

from tengen import late
from tengen.search.settings import Settings

if TYPE_CHECKING:
    from tengen.search import dump
    from tengen.search.leaves import Evaluation, Leaves, expand, select
    from tengen.search.pruning import prune
    from tengen.search.result import Result, summarise
    from tengen.search.roots import advance, begin, restart
    from tengen.search.searching import finish, run, simulate, unfinished
    from tengen.search.tree import Tree, bytes_needed, plant

__all__ = [
    "Evaluation",
    "Leaves",
    "Result",
    "Settings",
    "Tree",
    "advance",
    "begin",
    "bytes_needed",
    "dump",
    "expand",
    "finish",
    "plant",
    "prune",
    "restart",
    "run",
    "select",
    "simulate",
    "summarise",
    "unfinished",
]

_LATE = {
    "roots": ("advance", "begin", "restart"),
    "leaves": ("Evaluation", "Leaves", "expand", "select"),
    "pruning": ("prune",),
    "result": ("Result", "summarise"),
    "searching": ("finish", "run", "simulate", "unfinished"),
    "tree": ("Tree", "bytes_needed", "plant"),
}

__getattr__ = late.names(__name__, _LATE, modules=("dump",))
