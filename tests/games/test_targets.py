"""Declared targets: what may be declared, and how Othello and Hex count."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.errors import OptionError
from tengen.games.targets import OWNERSHIP, SCORE, Target
from tests.helpers.game_recording import make


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"name": "Pieces"}, "expected a name of small letters"),
        ({"name": "policy"}, "something else of this name"),
        ({"per": "square"}, "per: expected point, action or number"),
        ({"loss": "sqared"}, "did you mean squared"),
        ({"sides": "mine"}, "sides: expected opposite, same or each"),
        ({"dtype": "float64"}, "dtype: expected one of"),
        ({"loss": "score", "per": "point"}, "score is for one number per game"),
        ({"loss": "cross_entropy"}, "over points or actions"),
        ({"name": "ownership"}, "per point with the loss ownership"),
    ],
)
def test_what_cannot_be_declared(settings: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        Target(**{"name": "pieces", "per": "number", **settings})


def test_shapes() -> None:
    assert [Target("a", per).shape((3, 4, 5), 7) for per in ("point", "action", "number")] == [(3, 4), (7,), ()]
    assert (OWNERSHIP.outputs, SCORE.outputs) == (1, 2)


OTHELLO = """  a b c d e f g h
1 x x x x x x x x
2 x x x x x x x x
3 x x x x x x x x
4 x x x x x x x x
5 x x x x x x x x
6 x x x x x x x x
7 o o o o o o o o
8 . . . . . . . o
to play: dark"""


def test_othello_by_hand() -> None:
    game = make("othello")
    state = game.from_text(OTHELLO)
    found = game.final_targets(state)
    assert float(found["score"]) == 48 - 9
    assert np.asarray(found["ownership"]).sum(1).tolist() == [8] * 6 + [-8, -1]
    assert game.record_facts(state)["score"] == 39
    turned = game.from_text(
        OTHELLO.replace("x", "?").replace("o o", "x x").replace("o", "x").replace("?", "o").replace("tx", "to")
    )
    assert float(game.final_targets(turned)["score"]) == -39


def test_hex_by_hand() -> None:
    game = make("hex", size=4, swap=True)
    state = game.init(jax.random.key(0))
    for name in ("a1", "b1", "a2"):
        state = game.step(state, jnp.int32(game.parse_action(state, name)))
    assert np.asarray(game.final_targets(state)["ownership"]).tolist() == [
        [1, -1, 0, 0],
        [1, 0, 0, 0],
        [0] * 4,
        [0] * 4,
    ]
