"""Many games inside Tengen, and batches of their positions for your own Python functions (docs/context.md).

context.py     `GameContext`, the public class; settings.py its options
listeners.py   which function gets which batches, and what they hold
exchange.py    connects the thread that plays with the one that answers
group.py       games that think and move together, and their positions to evaluate
program.py     the device's part of a group; thinking.py finds moves, with a search or without
batches.py     the batches that callbacks get, and rows to learn from; replies.py checks their answers
evaluating.py  matches between callbacks, networks and other players
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
