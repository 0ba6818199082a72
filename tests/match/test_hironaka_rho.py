"""The rate at which Hironaka's games end."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games
from tengen.errors import OptionError
from tengen.match.hironaka import player, rho, summarise
from tengen.match.players import Player
from tests.oracles.hironaka import reduce, shift

GAME: Any = games.make("hironaka", max_moves=80)


def rate(host: str, agent: str, count: int, game: Any = GAME) -> Any:
    players = player(host, "host", game), player(agent, "agent", game)
    return rho(game, *players, jax.random.key(4), count)


@pytest.mark.slow
def test_rates_by_plain_python() -> None:
    """The same games with slow rules: all coordinates against the last, from the starts that the key gives."""
    count, limit = 40, 6
    game: Any = games.make("hironaka", max_moves=2 * limit)
    found = rate("all", "last", count, game)
    starting, _ = jax.random.split(jax.random.key(4))
    starts = jax.vmap(game.init)(jax.random.split(starting, count))
    lengths, unfinished = [], 0
    for points in np.asarray(starts.points):
        alive = [tuple(int(x) for x in point) for point in points if point[0] >= 0]
        rounds = 0
        while len(alive) > 1 and rounds < limit:
            alive = [point for point in reduce(shift(alive, (0, 1, 2), 2)) if point is not None]
            rounds += 1
        lengths.append(rounds)
        unfinished += len(alive) > 1
    assert (found.games, found.rounds, found.unfinished) == (count, sum(lengths), unfinished)
    assert found.rate == pytest.approx(count / sum(lengths))
    assert 0 < unfinished < count  # the limit matters


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "agent", "published"),
    # 5,000 games of the original program for Zeillinger, 512 for others; errors of both are allowed for
    [("zeillinger", "first", 0.160), ("zeillinger", "last", 0.166), ("zeillinger", "random", 0.255)],
)
def test_rates_of_the_original_program(host: str, agent: str, published: float) -> None:
    found = rate(host, agent, 3000)
    assert abs(found.rate - published) < 3.5 * found.error * (1 + 3000 / 5000) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("points", "dimension", "host", "agent", "published"),
    [
        (5, 3, "random", "random", 0.198),
        (5, 3, "random", "first", 0.088),
        (5, 3, "random", "last", 0.094),
        (5, 3, "all", "random", 0.249),
        (20, 3, "zeillinger", "random", 0.191),
        (20, 3, "zeillinger", "first", 0.090),
        (20, 3, "zeillinger", "last", 0.094),
        (10, 4, "zeillinger", "random", 0.133),
        (10, 4, "zeillinger", "first", 0.068),
        (10, 4, "zeillinger", "last", 0.068),
    ],
)
def test_rates_at_other_settings(points: int, dimension: int, host: str, agent: str, published: float) -> None:
    """The original played 512 games, so its errors are most of what is allowed."""
    game: Any = games.make("hironaka", max_points=points, dimension=dimension, max_moves=80)
    found = rate(host, agent, 5000, game)
    assert abs(found.rate - published) < 3.5 * found.error * (1 + 5000 / 512) ** 0.5


def test_the_error_is_that_of_many_repetitions() -> None:
    rng = np.random.default_rng(0)
    many = [summarise("h", "a", 1 + rng.geometric(0.2, 400), 0) for _ in range(1500)]
    spread = np.std([each.rate for each in many])
    assert np.mean([each.error for each in many]) == pytest.approx(spread, rel=0.06)
    assert many[0].rate == many[0].games / many[0].rounds


def test_what_cannot_be_measured() -> None:
    with pytest.raises(OptionError, match="at least 2 games, got 1"):
        rate("all", "first", 1)
    slow = Player("slow", lambda params, key, states, which: np.zeros(2, np.int32), on_host=True)
    with pytest.raises(OptionError, match="run on the device"):
        rho(GAME, slow, player("first", "agent", GAME), jax.random.key(0), 2)
    assert jnp.isfinite(rate("all", "first", 2).error)
