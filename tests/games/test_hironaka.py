"""Hironaka's game: the cases that the original code computed, and games in exact fractions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.games.hironaka import Hironaka, HironakaState, host_subsets, in_order, reduce, reposition, rescale, shift
from tests.helpers.game_recording import Record, alone, jit, make, new, record, start
from tests.oracles import hironaka as oracle
from tests.oracles.hironaka import Points

P = None  # a removed point
AXES = [(2, 0, 0), (0, 3, 0), (0, 0, 5)]


def points_of(rows: list) -> np.ndarray:
    """Float32[M, D]."""
    dimension = max(len(row) for row in rows if row is not None)
    return np.array([[-1.0] * dimension if row is None else row for row in rows], np.float32)


def subset_of(axes: tuple[int, ...], dimension: int) -> np.ndarray:
    return np.isin(np.arange(dimension), axes)


# --- The cases of the fact sheet (shared/facts/hironaka.md, 3.6) ----------------------------------------------


def test_case_1_shift() -> None:
    rows = "7 5 3 8, 8 1 8 18, 8 3 17 8, 11 11 1 19, 11 12 18 6, 16 11 5 6"
    moved = "7 5 11 8, 8 1 26 18, 8 3 25 8, 11 11 20 19, 11 12 24 6, 16 11 11 6"
    before, after = (np.array([row.split() for row in text.split(", ")], np.float32) for text in (rows, moved))
    np.testing.assert_array_equal(jit(shift)(before, subset_of((2, 3), 4), 2), after)


@pytest.mark.parametrize(
    ("rows", "removed"),
    [
        ([(7, 5, 3, 8), (8, 9, 8, 18), (8, 3, 17, 8), (11, 11, 1, 19), (11, 12, 18, 6), (16, 11, 5, 6)], {1}),
        ([(0, 4), (1, 1), (4, 0), (2, 2), (1, 1)], {3, 4}),
        ([(0, 4), (2, 3), (4, 0)], set()),  # domination, not the convex hull
        ([(0, 2), (1, 1), (2, 0)], set()),
        ([P, (0, 0), (0, 0), P, (0, 1)], {0, 2, 3, 4}),
        ([(3, 3)], set()),
        ([P, P], {0, 1}),
    ],
)
def test_cases_2_to_4_reduce(rows: list, removed: set[int]) -> None:
    if all(row is None for row in rows):
        rows = [(-1.0, -1.0)] * len(rows)
    expected = [(-1,) * len(points_of(rows)[0]) if slot in removed else row for slot, row in enumerate(rows)]
    np.testing.assert_array_equal(jit(reduce)(points_of(rows)), points_of(expected))


@pytest.mark.parametrize(
    ("rows", "axes", "axis", "options", "expected", "over"),
    [
        (AXES, (0, 1, 2), 0, {}, [(2, 0, 0), P, P], True),
        (AXES, (0, 1, 2), 0, {"reposition": True}, [(0, 0, 0), P, P], True),
        (AXES, (0, 1), 1, {}, [(2, 2, 0), (0, 3, 0), (0, 0, 5)], False),
        ([(0, 4), (1, 1), (4, 0)], (0, 1), 1, {}, [(0, 4), (1, 2), P], False),
        (
            [(0, 4), (1, 1), (4, 0)],
            (0, 1),
            1,
            {"reposition": True, "rescale": True},
            [(0, 1), (0.5, 0), P],
            False,
        ),
        (
            [(4, 0, 1), (0, 2, 3), (1, 1, 1), (5, 5, 5)],
            (1, 2),
            2,
            {},
            [(4, 0, 1), (0, 2, 5), (1, 1, 2), P],
            False,
        ),
        ([(0, 1), (1, 0)], (0, 1), 0, {}, [P, (1, 0)], True),
    ],
)
def test_cases_5_to_8_a_move_of_each(
    rows: list, axes: tuple[int, ...], axis: int, options: dict[str, bool], expected: list, over: bool
) -> None:
    """The functions one after the other, as the game applies them; the games below test the game itself."""
    moved = jit(shift)(points_of(rows), subset_of(axes, len(rows[0])), axis)
    if options.get("reposition"):
        moved = jit(reposition)(moved)
    moved = jit(reduce)(moved)
    if options.get("rescale"):
        moved = jit(rescale)(moved)
    np.testing.assert_array_equal(moved, points_of(expected))
    assert ((np.asarray(moved)[:, 0] >= 0).sum() <= 1) == over


def test_case_9_reposition_and_rescale() -> None:
    moved = points_of([(0, 2, 1, 1), P, (3, 0, 0, 0), (0, 10, 5, 0)])
    np.testing.assert_array_equal(jit(reposition)(points_of([(1, 5, 3, 4), P, (4, 3, 2, 3), (1, 13, 7, 3)])), moved)
    scaled = points_of([(0, 0.2, 0.1, 0.1), P, (0.3, 0, 0, 0), (0, 1, 0.5, 0)])
    np.testing.assert_allclose(jit(rescale)(moved), scaled, rtol=1e-6)
    zeros = points_of([(0, 0, 0), P])
    np.testing.assert_array_equal(jit(rescale)(zeros), zeros)


def test_case_10_an_axis_outside_the_subset_is_masked() -> None:
    game = hironaka(dimension=3, max_points=3, rescale=False)
    state, look, *_ = alone(game)(game.position(jnp.asarray(points_of(AXES))), 0)  # the host names {0, 1}
    assert look.legal.tolist() == [True, True, False, False]
    with pytest.raises(ValueError, match="hironaka: 2: that move is not legal here"):
        game.parse_action(state, "2")
    ended = game.position(jnp.asarray(points_of([(2, 3, 5), P, P])))
    after, look, *_ = alone(game)(ended, 1)
    jax.tree.map(np.testing.assert_array_equal, after, ended)
    assert bool(look.over)
    assert not look.legal.any()
    assert look.returns.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(1, 5), (3, 2), P, (2, 5)], [(2, 5), (1, 5), (3, 2), P]),
        ([P, (0, 0), (0, 0)], [(0, 0), (0, 0), P]),
        ([(1, 2, 3), (2, 1, 3), (0, 0, 4), (3, 2, 3)], [(0, 0, 4), (3, 2, 3), (1, 2, 3), (2, 1, 3)]),
    ],
)
def test_case_13_the_network_sees_the_points_in_order(rows: list, expected: list) -> None:
    np.testing.assert_array_equal(jit(in_order)(points_of(rows)), points_of(expected))


def test_hosts_actions_are_ordered_by_bitmask() -> None:
    assert [tuple(np.flatnonzero(row)) for row in host_subsets(3)] == [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    for dimension in range(2, 8):
        found = [tuple(np.flatnonzero(row).tolist()) for row in host_subsets(dimension)]
        assert found == oracle.host_subsets(dimension)


# --- Games against exact fractions --------------------------------------------------------------------------


def hironaka(**options: object) -> Hironaka:
    game = make("hironaka", **options)
    assert isinstance(game, Hironaka)
    return game


def oracle_of(game: Hironaka, played: Record, g: int) -> oracle.Hironaka:
    """The same start in fractions; a float is one exactly."""
    rows = [None if row[0] < 0 else tuple(row) for row in played.states.points[0, g].tolist()]
    return oracle.Hironaka(rows, game.options.max_moves, game.options.reposition, rescale=False)


def observed(game: oracle.Hironaka, rescaled: bool) -> list[float]:
    """What the network sees: the points in order, the subset, the share of the limit."""
    points = oracle.rescale(game.points) if rescaled else game.points
    live = sorted((point for point in points if point is not None), key=lambda p: p[::-1], reverse=True)
    rows = [float(value) for point in live for value in point]
    rows += [-1.0] * (game.dimension * (len(game.points) - len(live)))
    return [*rows, *(float(axis in game.chosen) for axis in range(game.dimension)), game.moves / game.max_moves]


def agree(other: oracle.Hironaka, played: Record, t: int, g: int, rescaled: bool) -> None:
    assert played.legal[t, g].tolist() == other.legal_actions()
    assert (bool(played.over[t, g]), int(played.to_play[t, g])) == (other.over, other.to_play)
    np.testing.assert_allclose(played.returns[t, g], other.returns(), atol=1e-6)
    slots = [point is not None for point in other.points]
    assert (played.states.points[t, g, :, 0] >= 0).tolist() == slots
    for slot, point in enumerate(other.points):
        if point is not None:
            found = played.states.points[t, g, slot]
            assert found.tolist() == [float(x) for x in point]
    np.testing.assert_allclose(played.scalars[t, g], observed(other, rescaled), rtol=1e-6)


EXACT = [
    {"dimension": 2, "reposition": True, "rescale": False},
    {"dimension": 3, "reposition": False, "rescale": False},
    {"dimension": 4, "max_points": 8, "reposition": True, "rescale": False, "max_moves": 31},
    {"dimension": 3},  # rescaled, as by default
    {"dimension": 3, "reposition": True, "max_points": 8},
]


@pytest.mark.parametrize(
    "options", [pytest.param(rules, marks=pytest.mark.slow if number % 2 else ()) for number, rules in enumerate(EXACT)]
)
def test_games_are_exact(options: dict) -> None:
    game = hironaka(**options)
    moves = 0
    for seed in range(1 if game.options.dimension == 4 else 2):
        played = record(game, start(game, seed=seed), seed)
        for g in range(64):
            other = oracle_of(game, played, g)
            for t in range(played.length(g) + 1):
                largest = max((x for point in other.points if point for x in point), default=0)
                if largest > 2**24:  # float32 holds no larger whole numbers
                    break
                agree(other, played, t, g, game.options.rescale)
                if not other.over:
                    other.play(int(played.actions[t, g]))
                    moves += 1
    assert moves > 300


# --- The start and the end ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"dimension": 3, "rescale": False}, {"dimension": 2, "max_points": 2, "max_value": 1, "rescale": False}]
)
def test_a_new_game_is_reduced_within_range_and_not_over(options: dict) -> None:
    game = hironaka(**options)
    points = np.asarray(start(game, 512).points)
    live = points[:, :, 0] >= 0
    assert (live.sum(1) >= 2).all()
    values = points[live]
    assert (values == np.round(values)).all()
    assert (values.min(), values.max()) == (0, game.options.max_value)
    assert (points[~live] == -1).all()
    for rows in points[:64]:
        exact: Points = [None if row[0] < 0 else tuple(row.tolist()) for row in rows]
        assert oracle.reduce(exact) == exact


def test_new_games_differ_and_rescaled_ones_are_seen_to_reach_one() -> None:
    game = hironaka(dimension=3)
    states = start(game, 64)
    assert len({rows.tobytes() for rows in np.asarray(states.points)}) == 64
    seen = np.asarray(jax.jit(jax.vmap(game.observe))(states).scalars)[:, :15]
    assert (seen.max(1) == 1).all()


def test_numbers_do_not_run_out_in_a_long_game() -> None:
    """The host names all coordinates, the agent picks the first and the second in turn: numbers double for ever."""
    game = hironaka(dimension=3, rescale=False, max_moves=2000)

    def play(n: jax.Array, states: HironakaState) -> HironakaState:
        action = jnp.where(n % 2 == 0, 3, (n // 2) % 2)
        return jax.vmap(game.step, (0, None))(states, action)

    many = jax.jit(lambda states: jax.lax.fori_loop(0, 60, play, states))(start(game, 64))
    assert np.asarray(many.points).max() > 2**24, "no game became large enough to tell"
    for _ in range(10):
        many = jax.jit(lambda states: jax.lax.fori_loop(0, 100, play, states))(many)
        assert np.isfinite(np.asarray(many.points)).all()


def test_the_return_is_linear_in_the_length() -> None:
    game = hironaka(dimension=2, reposition=True, rescale=False)
    played = record(game, start(game), seed=1)
    lengths = np.array([played.length(g) for g in range(64)])
    expected = 1 - 2 * lengths / game.max_moves
    np.testing.assert_allclose(played.returns[-1, :, 0], expected, atol=1e-6)
    assert len(set(lengths.tolist())) > 3


def test_the_move_limit_costs_the_host_everything() -> None:
    game = hironaka(dimension=2, max_moves=3)  # ends after the host's second choice at the latest
    played = record(game, start(game), seed=1)
    late = played.over[3] & ~played.over[2]
    assert late.any()
    assert (played.returns[3, late] == [-1, 1]).all()


# --- Names and text -----------------------------------------------------------------------------------------


def test_names_of_choices() -> None:
    game = hironaka(dimension=3)
    state = new(game)
    assert [game.action_name(state, action) for action in range(4)] == ["{0,1}", "{0,2}", "{1,2}", "{0,1,2}"]
    assert game.parse_action(state, " {0,2} ") == 1
    agent = state._replace(chosen=subset_of((0, 2), 3))
    assert [game.action_name(agent, action) for action in range(3)] == ["0", "1", "2"]
    assert game.parse_action(agent, "2") == 2
    for unknown in ("{0,1}", "3", "x"):
        with pytest.raises(ValueError, match="hironaka: no move is called"):
            game.parse_action(agent, unknown)


TEXT = """points:
  0 4
  -
  2.5 1
chosen: {0,1}
moves: 7"""


def test_text_by_hand() -> None:
    game = hironaka(dimension=2, max_points=3)
    state = game.from_text(TEXT)
    assert isinstance(state, HironakaState)
    assert np.asarray(state.points).tolist() == [[0, 4], [-1, -1], [2.5, 1]]
    assert (int(game.to_play(state)), int(state.moves)) == (1, 7)
    assert game.render(state) == TEXT


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  0 4", "  0 4 1", "expected 2 numbers"),
        ("  0 4", "  0 -4", "expected 2 numbers"),
        ("  0 4", "  0 nan", "expected 2 numbers"),
        ("  0 4", "  0 inf", "expected 2 numbers"),
        ("  0 4", "  0 1e39", "expected 2 numbers"),  # more than float32 holds
        ("  0 4", "  a b", "expected 2 numbers"),
        ("  -\n", "", "expected 'points:', 3 points"),
        ("{0,1}", "{0}", "chosen: expected a set like {0,1}"),
        ("{0,1}", "{0,2}", "chosen: expected a set like {0,1}"),
        ("moves: 7", "moves: 41", "moves: expected an odd number up to 40"),
        ("moves: 7", "moves: -1", "moves: expected an odd number up to 40"),
        ("moves: 7", "moves: 8", "moves: expected an odd number up to 40"),
        ("{0,1}", "none", "moves: expected an even number up to 40"),
        ("points:", "point:", "expected 'points:'"),
    ],
)
def test_text_that_is_no_position(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^hironaka: .*{message}"):
        hironaka(dimension=2, max_points=3).from_text(TEXT.replace(old, new))
