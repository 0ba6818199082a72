"""Tree search over a batch of games, on the accelerator.

    leaves = search.select(tree)                         # walk every game's tree from its root to a leaf
    tree = search.expand(tree, leaves, evaluation)       # add the leaf, back its value up
    result = search.run(evaluate, game, roots, key, settings)   # both, in one compiled loop with the network inside

`Settings` does not import JAX; everything else does.
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
