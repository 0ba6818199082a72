"""Measuring, with a clock that ticks once whenever it is looked at."""

import itertools

import jax
import pytest

from tengen import games
from tengen.loop import estimate as measuring
from tengen.loop.components import Components
from tengen.loop.estimate import measure
from tests.helpers.tiny_runs import tiny


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "guessed"), [(1.0, True), (120.0, False)])
def test_what_was_played_in_how_many_ticks(seconds: float, guessed: bool) -> None:
    config, said, ticks = tiny(), [], itertools.count()
    found = measure(Components(config), config, seconds, said.append, lambda: float(next(ticks)))
    assert said == ["compiling the games", "compiling the learner", "measuring the games", "measuring the learner"]
    assert found.guessed == guessed
    # A call plays one phase and takes one tick; in a phase each game makes one move, each of 4 evaluations at most.
    assert 0.5 * config.selfplay.games <= found.moves_per_second <= config.selfplay.games
    assert found.moves_per_second < found.evaluations_per_second <= 4 * config.selfplay.games
    assert found.samples_per_second == pytest.approx(config.train.batch)
    assert 3 <= found.moves_per_game <= 9
    # Every move is searched in full, so all of them are rows; those of games that have not ended are not there yet.
    assert found.rows_per_game == pytest.approx(found.moves_per_game, rel=0.3)


def test_random_games_tell_how_long_games_are() -> None:
    length = measuring._random_length(games.make("connect_four"), 4, jax.random.key(0))
    assert 15 < length < 25, "about 21 moves are known for random games, and two of them are the opening's"
