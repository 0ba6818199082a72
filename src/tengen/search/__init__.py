"""Tree search over a batch of games, on the accelerator.

leaves = search.select(tree)                         # walk every game's tree from its root to a leaf
tree = search.expand(tree, leaves, evaluation)       # add the leaf, back its value up
result = search.run(evaluate, game, roots, key, settings)   # both, in one compiled loop with the network inside
"""

from tengen.search import dump
from tengen.search.begin import advance, begin
from tengen.search.expand import Evaluation, Leaves, expand, select
from tengen.search.result import Result, summarise
from tengen.search.run import finish, run
from tengen.search.settings import Settings
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
    "run",
    "select",
    "summarise",
]
