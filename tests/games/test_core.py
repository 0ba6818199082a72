"""What all games inherit: freezing, symmetries of boards, names of actions, and the plain batch step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.games.core import Game, board_symmetry, freeze, identity, square_symmetries
from tests.helpers.game_recording import make, new, start

# What a picture that no symmetry leaves alone looks like after each of them, row by row.
PICTURE = jnp.array([[0, 1], [2, 3]])
TURNED = {
    "identity": [[0, 1], [2, 3]],
    "rotate 90": [[1, 3], [0, 2]],
    "rotate 180": [[3, 2], [1, 0]],
    "rotate 270": [[2, 0], [3, 1]],
    "mirror left-right": [[1, 0], [3, 2]],
    "mirror top-bottom": [[2, 3], [0, 1]],
    "transpose": [[0, 2], [1, 3]],
    "anti-transpose": [[3, 1], [2, 0]],
}


def test_the_eight_symmetries_of_a_square_by_hand() -> None:
    symmetries = square_symmetries(2, 5)
    assert [symmetry.name for symmetry in symmetries] == list(TURNED)
    for symmetry in symmetries:
        assert np.asarray(symmetry.board(PICTURE)).tolist() == TURNED[symmetry.name]
        # Action p stands on the point that shows p; afterwards it must be where that number went. The last is a pass.
        where = [int(jnp.argwhere(symmetry.board(PICTURE).reshape(-1) == p)[0, 0]) for p in range(4)]
        assert symmetry.actions.tolist() == [[*where, 4]] * 2


def test_boards_turn_with_all_that_lies_on_them() -> None:
    for symmetry in square_symmetries(3, 9):
        planes = jax.random.bernoulli(jax.random.key(0), shape=(3, 3, 4))
        for plane in range(4):
            np.testing.assert_array_equal(symmetry.board(planes)[..., plane], symmetry.board(planes[..., plane]))


def test_actions_of_a_mirrored_board() -> None:
    mirror = board_symmetry("mirror", lambda x: x[:, ::-1], (1, 3), 4)
    assert mirror.actions.tolist() == [[2, 1, 0, 3]] * 2
    np.testing.assert_array_equal(mirror.inverse, mirror.actions)


def test_identity() -> None:
    same = identity(3)
    assert same.name == "identity"
    assert same.actions.tolist() == [[0, 1, 2]] * 2
    assert same.inverse.tolist() == [[0, 1, 2]] * 2


def test_freeze() -> None:
    old, new_ = {"a": jnp.zeros(2), "b": jnp.int32(1)}, {"a": jnp.ones(2), "b": jnp.int32(2)}
    assert jax.tree.map(np.ndarray.tolist, jax.tree.map(np.asarray, freeze(jnp.bool_(True), old, new_))) == {
        "a": [0, 0],
        "b": 1,
    }
    assert int(freeze(jnp.bool_(False), old, new_)["b"]) == 2


def test_the_plain_batch_step_may_leave_games_alone() -> None:
    game = make("tic_tac_toe")
    states = start(game)
    actions = jnp.arange(64, dtype=jnp.int32) % 9
    moved, look = jax.jit(game.step_and_look)(states, actions)
    assert (look.legal.sum(1) == 8).all()
    stay = jnp.arange(64) < 10
    some, look = jax.jit(game.step_and_look)(states, actions, stay)
    assert (look.legal.sum(1) == jnp.where(stay, 9, 8)).all()
    np.testing.assert_array_equal(some.stones[10:], moved.stones[10:])
    np.testing.assert_array_equal(some.stones[:10], states.stones[:10])


def test_what_a_game_need_not_have() -> None:
    game = make("tic_tac_toe")
    state = new(game)
    assert game.final_targets(state) == {}
    assert game.extra_targets == ()
    node, kept = game.split(state)
    assert node is state
    assert game.join(node, kept) is state
    (only,) = Game.symmetries.func(game)
    assert only.name == "identity"
    with pytest.raises(ValueError, match="tic_tac_toe: positions cannot be read from text"):
        Game.from_text(game, "anything")


def test_refusals_say_why() -> None:
    game = make("tic_tac_toe")
    state = game.step(new(game), jnp.int32(4))
    with pytest.raises(ValueError, match=r"^tic_tac_toe: B2: that move is not legal here$"):
        game.parse_action(state, " B2 ")
    with pytest.raises(ValueError, match=r"^tic_tac_toe: no move is called 'd4'; names look like 'a1'$"):
        game.parse_action(state, "d4")
    won = game.from_text("  a b c\n1 x x x\n2 o o .\n3 . . .\nto play: o")
    with pytest.raises(ValueError, match=r"^tic_tac_toe: c3: the game is over$"):
        game.parse_action(won, "c3")
