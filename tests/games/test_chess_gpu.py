"""The GPU program of chess against the plain rules, which are its oracle: equal to the last bit."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
    """Random games step by step, with and without the list of all positions; some games rest at every step."""
    game, batch, steps = chess(name, **options), 64, 600

    def play(step: Any, carry: Any) -> Any:
        states, look, wrong = carry
        key = jax.random.fold_in(jax.random.key(3), step)
        actions = jax.random.categorical(key, jnp.where(look.legal, 0.0, -jnp.inf)).astype(jnp.int32)
        stay = (jnp.arange(batch) + step) % 5 == 4
        nodes = states._replace(history=states.history[:, :0])
        after = Game.step_and_look(game, states, actions, stay)
        pairs = (
            (after, game.fused_step_and_look(states, actions, stay)),
            (Game.step_and_look(game, nodes, actions, stay), game.fused_step_and_look(nodes, actions, stay)),
        )
        differ = jax.tree.map(lambda a, b: (a != b).sum(), *zip(*pairs, strict=True))
        return *after, jax.tree.map(jnp.add, wrong, differ)

    states = jax.tree.map(jnp.asarray, start(game, batch))
    nothing = jax.eval_shape(lambda s: Game.step_and_look(game, s, jnp.zeros(batch, jnp.int32)), states)
    nodes = jax.eval_shape(lambda s: s._replace(history=s.history[:, :0]), nothing[0])
    wrong = jax.tree.map(lambda _: jnp.int32(0), (nothing, (nodes, nothing[1])))
    look = jax.jit(jax.vmap(game.look))(states)
    states, look, wrong = jax.jit(lambda carry: jax.lax.fori_loop(0, steps, play, carry))((states, look, wrong))
    assert not any(jax.tree.leaves(wrong)), wrong
    assert look.over.any()
