"""The GPU program of chess against the plain rules, which are its oracle: equal to the last bit."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import jax_setup
from tengen.games.chess import Chess
from tengen.games.core import Game, Observation, PositionInfo
from tests.games.test_go_gpu import same
from tests.helpers.game_recording import Record, make, record, start


def chess(name: str, **options: Any) -> Chess:
    game = make(name, **options)
    assert isinstance(game, Chess)
    return game


@cache
def _fused(game: Chess) -> Any:
    return jax.jit(game.fused_step_and_look)


def compare(game: Chess, played: Record, times: range, some: int = 16) -> None:
    """Step games from these times; the next moment of their record is what must come out."""
    look = PositionInfo(played.legal, Observation(played.planes, played.scalars), played.over, played.returns)
    for t in times:
        now, then = (jax.tree.map(lambda leaf, t=t: leaf[t, :some], (played.states, look)) for t in (t, t + 1))
        stay = np.arange(some) % 5 == 4
        fused = _fused(game)(now[0], played.actions[t, :some], stay)
        expected = jax.tree.map(lambda old, new: np.asarray(jax.vmap(jnp.where)(stay, old, new)), now, then)
        same(fused, expected)


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.slow
def test_minichess() -> None:
    game = chess("minichess", max_moves=60)
    played = record(game, start(game, 16), seed=1)
    assert played.over.any()
    compare(game, played, range(0, 61, 4))


@pytest.mark.usefixtures("emulated_gpu")
def test_chess() -> None:
    game = chess("chess")
    played = record(game, start(game, 8), seed=1, moments=60)  # as in test_chess.py, so that it is compiled once
    compare(game, played, range(0, 59, 8), some=8)


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.slow
@pytest.mark.parametrize("chess960", [False, True])
def test_long_games(chess960: bool) -> None:
    game = chess("chess", chess960=chess960, max_moves=300)
    compare(game, record(game, start(game, 32), seed=5), range(0, 301, 3), some=32)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "options"), [("chess", {}), ("chess", {"chess960": True}), ("minichess", {})])
def test_compiled_for_a_gpu(name: str, options: dict[str, Any]) -> None:
    """Games recorded on the CPU, whose compiler is done with the plain rules in seconds instead of minutes."""
    game, cpu = chess(name, **options), jax_setup.cpu()
    if cpu is None:
        pytest.skip("JAX_PLATFORMS leaves out the CPU, which plays the games here")
    with jax.default_device(cpu):
        played = record(game, start(game, 64), seed=3)
    assert played.over.any()
    times = range(0, len(played.actions) - 1, 5)
    compare(game, played, times, some=64)
    # Nodes of trees do not know all positions of the game.
    plain = jax.jit(partial(Game.step_and_look, game))
    for t in times:
        states = jax.tree.map(lambda leaf, t=t: leaf[t], played.states)
        given = states._replace(history=states.history[:, :0]), played.actions[t], np.arange(64) % 5 == 4
        with jax.default_device(cpu):
            expected = jax.tree.map(np.asarray, plain(*given))
        same(_fused(game)(*given), expected)
