"""Which fields rows have, and what does not fit them."""

import json
from typing import Any

import hypothesis.extra.numpy as hnp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen import games
from tengen.data.format.rows import Field, RowFormat, blank, check, pack_planes, unpack_planes, widened
from tengen.errors import OptionError
from tests.helpers import rows as made


def test_fields_of_go() -> None:
    form = RowFormat.of(games.make("go", size=9), ("score", "ownership", "opponent_policy", "moves_left"))
    shapes = {name: (list(field.shape), str(field.dtype)) for name, field in form.fields.items()}
    assert shapes == {
        "planes": ([122], "uint8"),  # 9 * 9 * 12 = 972 bits
        "scalars": ([11], "float32"),
        "policy": ([82], "float16"),
        "policy_weight": ([], "float32"),
        "outcome": ([3], "float32"),
        "search_value": ([], "float32"),
        "to_play": ([], "int8"),
        "ply": ([], "int16"),
        "moves_left": ([], "int16"),
        "weight": ([], "float32"),
        "game": ([2], "uint32"),
        "opponent_policy": ([82], "float16"),
        "opponent_weight": ([], "float32"),
        "ownership": ([9, 9], "int8"),
        "score": ([], "float32"),
    }
    assert form.row_bytes == 122 + 44 + 164 + 4 + 12 + 4 + 1 + 2 + 2 + 4 + 8 + 164 + 4 + 81 + 4


def test_only_wanted_fields() -> None:
    form = RowFormat.of(games.make("connect_four"), ("moves_left",))
    assert not {"opponent_policy", "opponent_weight", "ownership", "score"} & set(form.fields)
    with pytest.raises(OptionError, match="connect_four has no ownership to learn from"):
        RowFormat.of(games.make("connect_four"), ("ownership",))


@pytest.mark.parametrize("name", games.names())
def test_is_hashable_and_goes_through_json(name: str) -> None:
    game = games.make(name)
    heads = [target.name for target in game.extra_targets]
    form = RowFormat.of(game, heads)
    assert RowFormat.from_dict(json.loads(json.dumps(form.to_dict()))) == form
    assert len({form, RowFormat.of(game, heads)}) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"planes_shape": [1, 2]},
        {"planes_shape": [1, 2, -1]},
        {"planes_shape": "123"},
        {"num_scalars": True},
        {"num_actions": 1.5},
        {"num_actions": 2**40},
        {"extras": ["score", "ownership"]},
        {"extras": ["score", "score"]},
        {"extras": ["planes"]},
        {"extras": None},
        {"more": 1},
    ],
)
def test_wrong_descriptions(change: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="row format"):
        RowFormat.from_dict(made.FORM.to_dict() | change)


@pytest.mark.parametrize("data", [None, 3, [], {}, {"planes_shape": [1, 1, 1]}])
def test_no_descriptions(data: object) -> None:
    with pytest.raises(OptionError, match="row format: .*expected"):
        RowFormat.from_dict(data)


def test_holds() -> None:
    assert made.FORM.holds(made.PLAIN)
    assert not made.PLAIN.holds(made.FORM)
    assert not made.FORM.holds(RowFormat((3, 3, 5), 2, 9))


@given(hnp.arrays(bool, st.tuples(*[st.integers(0, 3)], *[st.integers(0, 5)] * 3)))
def test_packing_round_trip(planes: np.ndarray) -> None:
    packed = pack_planes(planes)
    assert packed.dtype == np.uint8
    assert packed.shape == (len(planes), -(-planes[0].size // 8) if len(planes) else packed.shape[1])
    assert np.array_equal(unpack_planes(packed, planes.shape[1:]), planes)
    # An obvious packing: the first bit is the highest of the first byte.
    for flat, row in zip(planes.reshape(len(planes), -1) if planes.size else [], packed, strict=False):
        assert [bool(row[n // 8] >> (7 - n % 8) & 1) for n in range(len(flat))] == flat.tolist()


@pytest.mark.parametrize("shape", [(1, 1, 0), (3, 3, 5), (9, 9, 12), (2, 2, 2)])
def test_packing_is_the_same_on_the_device(shape: tuple[int, int, int]) -> None:
    planes = np.random.default_rng(1).random((2, 3, *shape)) < 0.5
    packed = jax.jit(pack_planes)(jnp.asarray(planes))
    assert packed.dtype == np.uint8
    assert np.array_equal(packed, pack_planes(planes))
    unpacked = jax.jit(unpack_planes, static_argnums=1)(packed, shape)
    assert unpacked.dtype == bool
    assert np.array_equal(unpacked, planes)


@pytest.mark.parametrize("xp", [np, jnp])
def test_blank_rows_fit(xp: Any) -> None:
    assert check(made.FORM, blank(made.FORM, 5, xp)) == 5
    assert check(made.FORM, blank(made.FORM, 0, xp)) == 0
    assert not blank(made.FORM, 5, xp)["weight"].any()


def test_what_does_not_fit_is_named() -> None:
    good = made.rows(4)
    assert check(made.FORM, good) == 4
    for name in made.FORM.fields:
        without = {key: value for key, value in good.items() if key != name}
        with pytest.raises(OptionError, match=f"{name} is missing"):
            check(made.FORM, without)
        for wrong in (good[name][:, None], good[name].astype(np.float64), np.float32(1)):
            with pytest.raises(ValueError, match=f"rows: {name}: expected"):
                check(made.FORM, good | {name: wrong})
        with pytest.raises(ValueError, match="rows as in the fields before it"):
            check(made.FORM, good | {name: good[name][:3]})
    with pytest.raises(OptionError, match="colour is not a field"):
        check(made.FORM, good | {"colour": good["ply"]})
    with pytest.raises(OptionError, match="opponent_policy is not a field"):
        check(made.PLAIN, good)


def test_check_works_while_tracing() -> None:
    counts = []
    jax.eval_shape(lambda rows: counts.append(check(made.FORM, rows)), made.rows(4))
    assert counts == [4]


def test_a_small_board_in_the_corner_of_a_large_one() -> None:
    small, large = (games.make("go", size=size) for size in (2, 3))
    heads = ("ownership", "opponent_policy", "score")
    forms = RowFormat.of(small, heads), RowFormat.of(large, heads)
    rows = blank(forms[0], 2)
    planes = np.zeros((2, *small.planes_shape), bool)
    planes[..., 0] = True
    planes[1, 1, 0, 5] = True
    rows["planes"] = pack_planes(planes)
    rows["policy"][0] = [0.1, 0.2, 0.3, 0.25, 0.15]
    rows["opponent_policy"][1] = [0, 0, 0, 0, 1]
    rows["ownership"][1] = [[1, -1], [0, 1]]
    rows["score"][:] = 3.5
    wide = {name: np.asarray(values) for name, values in widened(rows, *forms).items()}
    assert check(forms[1], wide) == 2
    found = unpack_planes(wide["planes"], large.planes_shape)
    assert found[0, ..., 0].tolist() == [[True, True, False], [True, True, False], [False] * 3]
    assert np.argwhere(found[1, ..., 1:]).tolist() == [[1, 0, 4]]
    expected = np.asarray([0.1, 0.2, 0, 0.3, 0.25, 0, 0, 0, 0, 0.15], np.float16)
    np.testing.assert_array_equal(wide["policy"][0], expected)
    assert wide["opponent_policy"][1].tolist() == [0] * 9 + [1]
    assert wide["ownership"][1].tolist() == [[1, -1, 0], [0, 1, 0], [0, 0, 0]]
    assert wide["score"].tolist() == [3.5, 3.5]


def test_targets_that_a_game_declares() -> None:
    game = games.make("tests.helpers.every_target:EveryTarget")
    form = RowFormat.of(game, ("stones", "mine", "filled", "lead", "ownership"))
    assert form.extras[:3] == ("ownership", "mine:point:int8", "filled:action:float32")
    assert form.extras[3:] == ("lead:number:float32", "stones:number:int8")
    assert [form.fields[name] for name in ("mine", "filled", "lead", "stones")] == [
        Field((3, 3), np.dtype(np.int8)),
        Field((9,), np.dtype(np.float32)),
        Field((), np.dtype(np.float32)),
        Field((), np.dtype(np.int8)),
    ]
    assert RowFormat.from_dict(json.loads(json.dumps(form.to_dict()))) == form
    with pytest.raises(OptionError, match="has no score to learn from"):
        RowFormat.of(game, ("score",))
    with pytest.raises(OptionError, match="stone: unknown target, did you mean stones"):
        RowFormat.of(game, ("stone",))
    for wrong in (["mine:point:int8", "score"], ["mine:square:int8"], ["mine:point:int8", "mine:number:int8"]):
        with pytest.raises(OptionError, match="extras: expected some of"):
            RowFormat.from_dict({**form.to_dict(), "extras": wrong})
