"""KataGo's observation against rows that KataGo wrote, and against an oracle where there are no rows."""

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tengen.games import go_katago
from tengen.games.core import Game, Observation
from tengen.games.go import Go
from tests.helpers.game_recording import make, record, start
from tests.helpers.katago_rows import KatagoRow, load_sample, read_folder
from tests.helpers.paths import ROOT
from tests.oracles import go as oracle
from tests.oracles.go_katago import Features

SAMPLE = ROOT / "tests/data/katago_rows.npz"
FOLDER = os.environ.get("TENGEN_KATAGO_DATA")  # of KataGo's self-play: npz and .sgfs files
LONGEST = 40  # moves of the positions that are compared quickly


def go(size: int, ko: str, suicide: bool) -> Go:
    game = make("go", size=size, ko=ko, suicide=suicide, observation="katago", max_moves=1000)
    assert isinstance(game, Go)
    return game


@cache
def _program(game: Go) -> Any:
    """Plays moves in a batch of games, each up to its length, and looks at the positions."""

    @jax.jit
    def play(actions: jax.Array, length: jax.Array, komi: jax.Array) -> Observation:
        def move(states: Any, given: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            return Game.step_and_look(game, states, given[1], given[0] >= length)[0], None

        starts = jax.vmap(lambda _: game.init(jax.random.key(0)))(length)
        states, _ = lax.scan(move, starts, (jnp.arange(actions.shape[1]), actions.T))
        halves = jnp.round(2 * jnp.where(length % 2 == 1, komi, -komi)).astype(jnp.int16)
        seen = jax.vmap(game.observe)(states._replace(komi=halves))
        # KataGo adjusts a whole komi for draws, to one that a state cannot have.
        inputs = jnp.stack(jax.vmap(lambda one: go_katago.komi_inputs(one, game.points))(komi), -1)
        adjusted = (jnp.round(2 * komi) != 2 * komi)[:, None]
        scalars = seen.scalars.at[:, jnp.array([5, 18])].set(
            jnp.where(adjusted, inputs, seen.scalars[:, jnp.array([5, 18])])
        )
        return Observation(seen.planes, scalars)

    return play


def observe(game: Go, moves: Sequence[Sequence[int]], komi: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Bool[N, 22, P] planes and Float32[N, 19] scalars after these moves from the empty board.

    `komi` is that of the player to move.
    """
    longest = max(LONGEST, *map(len, moves))
    actions = np.array([[*one, *[0] * (longest - len(one))] for one in moves], np.int32)
    length = np.array([len(one) for one in moves], np.int32)
    seen = jax.device_get(_program(game)(actions, length, np.asarray(komi, np.float32)))
    planes = seen.planes.reshape(len(moves), game.points, len(go_katago.PLANES))
    return planes.transpose(0, 2, 1), seen.scalars


def differences(planes: np.ndarray, scalars: np.ndarray, row: KatagoRow) -> list[str]:
    wrong = [f"plane {k}" for k in range(22) if (planes[k] != row.planes[k]).any()]
    return wrong + [f"scalar {k}" for k in range(19) if abs(scalars[k] - row.scalars[k]) > 1e-6]


def by_oracle(row: KatagoRow) -> tuple[np.ndarray, np.ndarray]:
    rules = oracle.Go(row.game.size, 0, row.game.ko, row.game.suicide, max_moves=10_000)
    before = max(len(row.actions) - 2, 0)
    for action in row.actions[:before]:
        rules.play(action)
    features = Features(rules)
    for action in row.actions[before:]:
        features.play(action)
    return np.array(features.planes()), np.array(features.scalars(row.komi if rules.to_play == 1 else -row.komi))


def check(rows: list[KatagoRow]) -> Counter[str]:
    """What differs from the rows, and how often."""
    found: Counter[str] = Counter()
    groups = defaultdict(list)
    for row in rows:
        groups[row.game.size, row.game.ko, row.game.suicide].append(row)
    for rules, group in groups.items():
        planes, scalars = observe(go(*rules), [row.actions for row in group], [row.komi for row in group])
        for number, row in enumerate(group):
            found.update(differences(planes[number], scalars[number], row))
    return found


@pytest.fixture(scope="module")
def sample() -> list[KatagoRow]:
    return load_sample(SAMPLE)


@pytest.mark.slow
def test_the_rows_of_simple_ko(sample: list[KatagoRow]) -> None:
    rows = [row for row in sample if row.game.ko == "simple" and len(row.actions) <= LONGEST][1::2]
    for plane in (3, 9, 14, 15, 16, 17, 18, 19):
        assert sum(row.planes[plane].any() for row in rows) > 2
    assert check(rows) == {}


def test_the_oracle_agrees_with_katago(sample: list[KatagoRow]) -> None:
    for row in sample[::17]:
        assert differences(*by_oracle(row), row) == []


def test_what_a_state_stores() -> None:
    """Tree nodes are many: nothing is stored without KataGo's observation, and 48 bytes with it on 9x9."""
    plain, katago = (
        jax.eval_shape(make("go", observation=which).init, jax.random.key(0)) for which in ("tengen", "katago")
    )
    assert plain.ladders is None
    assert (katago.ladders.shape, katago.ladders.dtype) == ((4, 3), jnp.uint32)
    game = make("go", observation="katago")
    assert game.planes_shape == (9, 9, 22)
    assert game.num_scalars == 19


def test_only_the_reading_of_ladders_is_bounded() -> None:
    plain, katago = make("go"), make("go", observation="katago")
    assert plain.exact is plain
    assert katago.exact.options == katago.options
    assert katago.exact is katago.exact


@pytest.mark.slow
def test_all_rows_of_the_sample(sample: list[KatagoRow]) -> None:
    assert check(sample) == {}
    for row in sample:
        assert differences(*by_oracle(row), row) == []


@pytest.mark.slow
@pytest.mark.skipif(FOLDER is None, reason="TENGEN_KATAGO_DATA is not set to a folder of KataGo's self-play")
def test_a_folder_of_rows() -> None:
    """Area games without tax and button, on square boards; other rules are not Tengen's."""
    rows = read_folder(Path(FOLDER or ""))
    fit = [row for row in rows if row is not None and row.game.scoring == "area" and not row.game.setup]
    print(f"{len(fit)} of {len(rows)} rows compared")
    assert fit
    assert check(fit) == {}
    for row in fit:
        assert differences(*by_oracle(row), row) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "ko", "suicide", "games"), [(4, "positional", True, 32), (5, "simple", False, 24), (9, "simple", True, 4)]
)
def test_random_games(size: int, ko: str, suicide: bool, games: int) -> None:
    """At every moment of random games, which have dead stones, pass-alive chains and many ladders."""
    game = make("go", size=size, ko=ko, suicide=suicide, observation="katago")
    liking = np.zeros(game.num_actions, np.float32)
    liking[-1] = -3
    played = record(game, start(game, games), seed=2, liking=liking)
    for g in range(games):
        features = Features(oracle.Go(size, game.options.komi, ko, suicide))
        for t in range(played.length(g)):  # at the end the ko rule has nothing to forbid any more
            planes = played.planes[t, g].reshape(-1, 22).T
            wrong = [k for k, plane in enumerate(features.planes()) if plane != planes[k].tolist()]
            assert wrong == [], (g, t)
            assert np.abs(played.scalars[t, g] - features.scalars()).max() < 1e-6
            features.play(int(played.actions[t, g]))


@pytest.mark.slow
@pytest.mark.usefixtures("emulated_gpu")
def test_the_gpu_program() -> None:
    game = go(5, "positional", True)
    played = record(game, start(game, 16), seed=2, moments=60)
    fused = jax.jit(game.fused_step_and_look)
    for t in range(5, 55, 7):
        now = jax.tree.map(lambda leaf, t=t: leaf[t], played.states)
        stay = np.arange(16) % 5 == 4
        states, look = fused(now, played.actions[t], stay)
        for g in range(16):
            then = t if stay[g] else t + 1
            np.testing.assert_array_equal(states.ladders[g], played.states.ladders[then, g])
            np.testing.assert_array_equal(look.observation.planes[g], played.planes[then, g])
            np.testing.assert_array_equal(look.observation.scalars[g], played.scalars[then, g])
