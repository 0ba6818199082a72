"""Fixed players of Hironaka's game: cases of the original programs, and slow versions on random sets."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games
from tengen.games.hironaka import HOSTS, Fixed, dictionary_order
from tengen.games.players import First, Random

CASES = (
    # points, Zeillinger, weak Spivakovsky: computed with the original program
    ([[0, 0, 4], [5, 0, 1], [1, 5, 1], [0, 25, 0]], {0, 2}, {1, 2}),
    ([[2, 0, 0], [0, 3, 0], [0, 0, 5]], {0, 1}, {0, 1, 2}),
    ([[0, 1, 2], [2, 1, 0]], {0, 2}, {0, 1}),
)


def chosen_set(game, name, points):
    state = game.position(jnp.array(points, jnp.float32))
    action = int(HOSTS[name](game, jax.random.key(0), state))
    return set(np.flatnonzero(game.subsets[action]).tolist())


@pytest.mark.parametrize(("points", "zeillinger", "spivakovsky"), CASES)
def test_the_cases_of_the_original(points, zeillinger, spivakovsky):
    game = games.make("hironaka", max_points=max(len(points) for points, *_ in CASES))  # one shape for all
    assert chosen_set(game, "zeillinger", points) == zeillinger
    assert chosen_set(game, "spivakovsky", points) == spivakovsky
    assert chosen_set(game, "all", points) == {0, 1, 2}


def slow_zeillinger(points):
    """The pair with the least (range, extremes), the first of them; its first smallest and first largest place."""
    found = []
    for one, other in combinations(points, 2):
        v = [a - b for a, b in zip(one, other, strict=True)]
        found.append((max(v) - min(v), v.count(max(v)) + v.count(min(v)), v))
    least = min(entry[:2] for entry in found)
    v = next(entry[2] for entry in found if entry[:2] == least)
    return {v.index(min(v)), v.index(max(v))}


def slow_spivakovsky(points):
    supports = [{k for k, x in enumerate(point) if x > 0} for point in points]
    used = sorted(set.union(*supports))
    for size in range(2, len(used) + 1):
        for subset in combinations(used, size):
            if all(support & set(subset) for support in supports):
                return set(subset)
    raise AssertionError("no set hits all supports")


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "most"), [(3, 3), (4, 4)])
def test_random_sets_with_many_ties(dimension, most):
    """Small numbers, so that ties and zeros are frequent, as they are in real games."""
    game = games.make("hironaka", dimension=dimension, max_points=6, max_value=most)
    count = 200
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(3), count))
    which = jnp.ones(count, bool)
    for name, slow in (("zeillinger", slow_zeillinger), ("spivakovsky", slow_spivakovsky)):
        actions = jax.jit(Fixed(game, HOSTS[name]))((), jax.random.key(0), states, which)
        for points, action in zip(np.asarray(states.points), np.asarray(actions), strict=True):
            alive = [[int(x) for x in point] for point in points if point[0] >= 0]
            assert set(np.flatnonzero(game.subsets[action])) == slow(alive), alive


@pytest.mark.slow
def test_a_draw_is_between_all_legal_actions():
    game = games.make("hironaka")
    count = 3000
    start = game.init(jax.random.key(0))
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), start)
    hosts = Random(game)((), jax.random.key(1), states, jnp.ones(count, bool))
    assert np.bincount(np.asarray(hosts), minlength=4) == pytest.approx([count / 4] * 4, rel=0.15)
    chosen = jax.vmap(game.step)(states, jnp.full(count, 1, jnp.int32))  # {0, 2}
    agents = Random(game)((), jax.random.key(2), chosen, jnp.ones(count, bool))
    assert np.bincount(np.asarray(agents), minlength=4) == pytest.approx([count / 2, 0, count / 2, 0], rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("action", range(11))
def test_the_first_and_the_last_coordinate(action):
    game = games.make("hironaka", dimension=4)
    state = game.step(game.init(jax.random.key(0)), jnp.int32(action))
    inside = np.flatnonzero(game.subsets[action])
    one = jax.tree.map(lambda leaf: leaf[None], state)
    for last, expected in ((False, inside[0]), (True, inside[-1])):
        assert First(game, last)((), jax.random.key(0), one, jnp.ones(1, bool)).tolist() == [expected]


def test_the_order_of_a_dictionary_is_not_that_of_bitmasks():
    subsets = games.make("hironaka", dimension=4).subsets
    named = ["".join(str(k) for k in np.flatnonzero(subsets[number])) for number in dictionary_order(subsets)]
    assert named == ["01", "02", "03", "12", "13", "23", "012", "013", "023", "123", "0123"]


def longest(game, state):
    """Rounds until the end against Zeillinger's host, whatever the agent does; plain recursion."""
    if bool(game.is_over(state)):
        return 0
    state = step(game, state, int(choose(game, state)))
    inside = np.flatnonzero(np.asarray(state.chosen))
    return 1 + max(longest(game, step(game, state, int(axis))) for axis in inside)


def step(game, state, action):
    return _step(game)(state, jnp.int32(action))


def choose(game, state):
    return _choice(game)(state)


_compiled: dict = {}


def _step(game):
    return _compiled.setdefault((game, "step"), jax.jit(game.step))


def _choice(game):
    rule = HOSTS["zeillinger"]
    return _compiled.setdefault((game, "choice"), jax.jit(lambda state: rule(game, jax.random.key(0), state)))


@pytest.mark.parametrize(
    ("points", "rounds"),
    [
        pytest.param(
            [[0, 1, 0, 1], [0, 2, 0, 0], [1, 0, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0], [2, 0, 0, 0]],
            6,
            marks=pytest.mark.slow,
        ),
        ([[2, 0, 0], [0, 3, 0], [0, 0, 5]], 13),
        ([[0, 1], [1, 0]], 1),
        pytest.param([[0, 4], [1, 1], [4, 0]], 3, marks=pytest.mark.slow),
    ],
)
def test_the_longest_games_against_zeillinger(points, rounds):
    """As many rounds as the original's search tree is deep: every choice on the way must be the same."""
    game = games.make("hironaka", dimension=len(points[0]), max_points=len(points), max_moves=400)
    assert longest(game, game.position(jnp.array(points, jnp.float32))) == rounds
