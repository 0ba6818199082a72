"""Checks for what you bring to Tengen.

    testing.check_game(Breakthrough, size=6)      # raises an error that lists everything wrong

They do not need pytest.
"""

from tengen.testing.games import check_game

__all__ = ["check_game"]
