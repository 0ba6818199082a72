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
from tengen.games.core import Observation
from tengen.games.go import Go
from tests.helpers.game_recording import make
from tests.helpers.katago_rows import KatagoRow, load_sample, read_folder
from tests.helpers.paths import ROOT
from tests.oracles import go as oracle
from tests.oracles.go_katago import Features

SAMPLE = ROOT / "tests/data/katago_rows.npz"
FOLDER = os.environ.get("TENGEN_KATAGO_DATA")  # of KataGo's self-play: npz and .sgfs files
LONGEST = 64  # moves of the positions that are compared quickly


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
            return game.step_and_look(states, given[1], given[0] >= length)[0], None

        starts = jax.vmap(lambda _: game.init(jax.random.key(0)))(length)
        states, _ = lax.scan(move, starts, (jnp.arange(actions.shape[1]), actions.T))
        halves = jnp.round(2 * jnp.where(length % 2 == 1, komi, -komi)).astype(jnp.int16)
        seen = jax.vmap(game.observe)(states._replace(komi=halves))
        # KataGo adjusts a whole komi for draws, to one that a state cannot have.
        inputs = jnp.stack(jax.vmap(lambda one: go_katago.komi_inputs(one, game.points))(komi), -1)
        adjusted = (jnp.round(2 * komi) != 2 * komi)[:, None]
        scalars = seen.scalars.at[:, jnp.array([5, 18])].set(jnp.where(adjusted, inputs, seen.scalars[:, jnp.array([5, 18])]))
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


def test_the_rows_of_simple_ko(sample: list[KatagoRow]) -> None:
    rows = [row for row in sample if row.game.ko == "simple" and len(row.actions) <= LONGEST][::2]
    assert len(rows) > 12
    assert any(row.planes[14].any() for row in rows) and any(row.planes[17].any() for row in rows)
    assert check(rows) == {}


def test_the_oracle_agrees_with_katago(sample: list[KatagoRow]) -> None:
    for row in sample[::17]:
        assert differences(*by_oracle(row), row) == []


@pytest.mark.slow
def test_all_rows_of_the_sample(sample: list[KatagoRow]) -> None:
    assert check(sample) == {}
    for row in sample:
        assert differences(*by_oracle(row), row) == []
