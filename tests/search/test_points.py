"""What points are worth next to winning."""

import jax.numpy as jnp
import numpy as np
import pytest

from tengen.config.settings.search import SearchSettings
from tengen.games.core import Game
from tengen.search import points
from tengen.search.tree import bytes_needed
from tests.helpers.game_recording import make

GO = make("go", size=9)


def term(mean: float, spread: float, middle: float) -> float:
    return float(points.term(jnp.float32(mean), jnp.float32(spread), jnp.float32(middle), GO))


def test_the_term_is_the_mean_of_a_curve_over_the_scores_that_may_come() -> None:
    drawn = np.random.default_rng(0).normal(size=100_000)
    for mean, spread in ((0.0, 5.0), (3.0, 0.0), (2.0, 4.0), (-5.0, 9.0), (30.0, 3.0)):
        expected = (2 / np.pi * np.arctan((mean + spread * drawn - 1.0) / 4.5)).mean()
        assert term(mean, spread, 1.0) == pytest.approx(expected, abs=0.03)


def test_points_are_worth_most_near_the_centre() -> None:
    gains = [term(score + 1, 2.0, 6.0) - term(score, 2.0, 6.0) for score in (-30, -5, 5.5, 20, 60)]
    assert min(gains) > 0
    assert gains[2] == max(gains)


@pytest.mark.parametrize(("expected", "centre"), [(0, 0), (8, 6), (-8, -6), (60, 55.5), (-60, -55.5)])
def test_the_centre_is_a_little_closer_to_zero_than_the_expected_score(expected: float, centre: float) -> None:
    assert float(points.centre(jnp.float32(expected), GO)) == centre


def test_points_take_memory_only_where_they_count() -> None:
    def needed(game: Game, weight: float) -> int:
        return bytes_needed(game, SearchSettings(score_weight=weight), 1, slots=100)

    assert needed(GO, 0.4) - needed(GO, 0.0) == 100 * 8
