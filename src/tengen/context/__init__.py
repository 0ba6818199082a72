"""Many games inside Tengen, and batches of their positions for your own Python functions (docs/context.md).

context.py   `GameContext`, the public class; settings.py its options
exchange.py  where the thread that plays and the one that answers meet
group.py     games that think and move together, as the host sees them
program.py   the device's part of a group; thinking.py finds moves, with a search or without
batches.py   the batches that callbacks get; replies.py checks their answers; listeners.py says who gets which
questions.py the positions to evaluate, as the host sees them; train_rows.py the rows to learn from, and their buffer
evaluating.py  matches between callbacks, networks and other players
"""

from tengen import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
