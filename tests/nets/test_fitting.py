"""How actions lie on boards."""

import jax
import numpy as np
import pytest

from tengen import games, nets
from tengen.games import chess_lc0
from tengen.games.core import Game
from tengen.nets.fitting import Layout, layout


@Game.register
class Stub:
    """As much of a game as the rule looks at."""

    def __init__(self, name: str, planes_shape: tuple[int, int, int], num_actions: int) -> None:
        self.name, self.planes_shape, self.num_actions = name, planes_shape, num_actions


@pytest.mark.parametrize(
    ("name", "shape", "actions", "expected"),
    [
        ("tic_tac_toe", (3, 3, 3), 9, Layout("points", 1, 0)),
        ("go", (9, 9, 12), 82, Layout("points", 1, 1)),
        ("hex with swap", (7, 7, 3), 50, Layout("points", 1, 1)),
        ("connect_four", (6, 7, 3), 7, Layout("columns")),
        ("seventy-three ways per square", (8, 8, 20), 4672, Layout("points", 73, 0)),
        ("chess", (8, 8, 110), 1858, Layout("points", 73, 0, "chess")),
        ("minichess", (5, 5, 110), 455, Layout("points", 49, 0, "minichess")),
        ("pgx:chess", (8, 8, 118), 4672, Layout("points", 73, 0, "pgx:chess")),
        ("lines", (6, 6, 3), 84, Layout("dense")),
        ("few", (6, 6, 3), 5, Layout("dense")),
    ],
)
def test_the_rule(name: str, shape: tuple[int, int, int], actions: int, expected: Layout) -> None:
    game: Game = Stub(name, shape, actions)  # pyright: ignore[reportAssignmentType]
    assert layout(game) == expected


@pytest.mark.parametrize(("name", "ways"), [("chess", 73), ("minichess", 49)])
def test_chess_actions_lie_where_their_names_say(name: str, ways: int) -> None:
    """A name such as e2e4 begins with the square that is left; the first row of the planes is the first rank."""
    size = 8 if name == "chess" else 5
    order = Layout("points", ways, 0, name).order(size, size)
    assert order is not None
    names = chess_lc0.move_names(size)
    assert len(set(order)) == len(order) == len(names)
    for action, move in enumerate(names):
        assert order[action] // ways == (int(move[1]) - 1) * size + "abcdefgh".index(move[0])
        assert order[action] < size * size * ways


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pgx:chess", "pgx:gardner_chess"])
def test_chess_moves_leave_squares_with_own_men(name: str) -> None:
    pytest.importorskip("pgx")
    game = games.make(name)
    state = jax.jit(game.init)(jax.random.key(0))
    legal = np.flatnonzero(jax.jit(game.legal_actions)(state))
    planes = np.asarray(jax.jit(game.observe)(state).planes)
    height, width, _ = planes.shape
    where = layout(game).order(height, width)
    assert where is not None
    assert sorted(where) == list(range(game.num_actions))
    own = planes[:, :, 1:7].any(-1)  # the first six pictures are the mover's men
    assert own.sum() == 2 * width
    points = where[legal] // layout(game).per_point
    assert own.reshape(-1)[points].all()
    assert len(np.unique(points)) > width  # all pawns and the knights


def test_heads_that_games_can_teach() -> None:
    assert nets.possible_heads(games.make("go", size=5)) == nets.HEADS
    assert nets.possible_heads(games.make("tic_tac_toe")) == ("opponent_policy", "moves_left")
    assert nets.possible_heads(games.make("hex")) == ("ownership", "opponent_policy", "moves_left")
    assert nets.possible_heads(games.make("othello")) == nets.HEADS
