"""Checks for what you bring to Tengen, without pytest.

from tengen.testing import check_game

check_game(Breakthrough, size=6)      # raises an error that lists everything wrong
"""

from tengen.testing.games import check_game

__all__ = ["check_game"]
