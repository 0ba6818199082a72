"""Tic-tac-toe against the oracle, in every position there is."""

import numpy as np
import pytest

from tests.helpers.game_recording import ANY, make, record, start
from tests.oracles import tic_tac_toe as oracle

GAME = make("tic_tac_toe")


def test_every_position() -> None:
    """Breadth first, 1,024 positions at a time, each compared with the oracle after the same moves."""
    lines: list[list[int]] = [[]]  # one sequence of moves for each position of this ply
    seen = 0
    while lines:
        found: dict[frozenset[tuple[int, int]], list[int]] = {}
        for at in range(0, len(lines), 1024):
            part = lines[at : at + 1024]
            played = record(GAME, start(GAME, 1024), actions=padded(part, 1024))
            for g, line in enumerate(part):
                game = oracle.TicTacToe()
                for action in line:
                    game.play(action)
                compare(game, played, len(line), g)
                for action in np.flatnonzero(played.legal[len(line), g]).tolist():
                    stones = {**game.board, action: game.to_play}
                    found[frozenset(stones.items())] = [*line, action]
        seen += len(lines)
        lines = list(found.values())
    assert seen == 5478


def padded(lines: list[list[int]], batch: int) -> np.ndarray:
    """Int32[T, B]; what follows a line does not matter."""
    actions = np.full((GAME.max_moves + 2, batch), ANY)
    for g, line in enumerate(lines):
        actions[: len(line), g] = line
    return actions


def compare(game, played, t: int, g: int) -> None:
    assert played.legal[t, g].tolist() == game.legal_actions()
    assert (bool(played.over[t, g]), int(played.to_play[t, g])) == (game.over, game.to_play)
    assert tuple(played.returns[t, g]) == game.returns()
    for plane, player in ((1, game.to_play), (2, 1 - game.to_play)):
        stones = played.planes[t, g, ..., plane].reshape(-1).tolist()
        assert stones == [game.board.get(cell) == player for cell in range(9)]


TEXT = """  a b c
1 x o .
2 . x .
3 . . o
to play: x"""


def test_text_by_hand() -> None:
    state = GAME.from_text(TEXT)
    assert np.asarray(state.stones).tolist() == [0b000010001, 0b100000010]
    assert GAME.render(state) == TEXT
    assert GAME.parse_action(state, "C1") == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1 x o .", "1 x o", "expected a row name and 3 of . x o"),
        ("2 . x .", "2 . X .", "expected a row name and 3 of . x o"),
        ("to play: x", "to play: z", "to play: expected x or o"),
        ("to play: x", "", "'to play' is missing"),
        ("to play: x", "to play: x\nto play: x", "'to play' appears twice"),
        ("to play: x", "to play: o", "2 and 2 stones do not fit whose turn it is"),
        ("3 . . o", "3 o o x", "x cannot be to play with three in a row"),
    ],
)
def test_text_that_is_no_position(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^tic_tac_toe: .*{message}"):
        GAME.from_text(TEXT.replace(old, new))
