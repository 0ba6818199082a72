"""The GPU program of Go against the plain rules, which are its oracle: equal to the last bit."""

from functools import cache, partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.games.core import Game, Observation, PositionInfo
from tengen.games.go import Go
from tests.helpers.game_recording import Record, jit, make, record, start

RULES = list(product(("simple", "positional", "situational"), (False, True)))  # (ko, suicide)


def go(size: int, ko: str, suicide: bool) -> Go:
    game = make("go", size=size, ko=ko, suicide=suicide)
    assert isinstance(game, Go)
    return game


@cache
def _fused(game: Go) -> Any:
    return jax.jit(game.fused_step_and_look)


@cache
def _plain(game: Go) -> Any:
    return jit(partial(Game.step_and_look, game))


def same(one: Any, other: Any) -> None:
    leaves, others = (jax.tree_util.tree_leaves_with_path(tree) for tree in (one, other))
    for (path, a), (_, b) in zip(leaves, others, strict=True):
        where = jax.tree_util.keystr(path)
        assert (a.shape, a.dtype) == (b.shape, b.dtype), where
        np.testing.assert_array_equal(a, b, err_msg=where)


@cache
def played(game: Go, batch: int, moments: int | None) -> Record:
    """Random games by the plain rules, with few passes; yet some end early, and are stepped on."""
    liking = np.zeros(game.num_actions, np.float32)
    liking[-1] = -3
    close = np.random.default_rng(0).integers(-6, 7, batch).astype(np.int16)  # so that a point decides
    return record(game, start(game, batch)._replace(komi=close), seed=3, liking=liking, moments=moments)


def compare(game: Go, times: range, batch: int = 64, moments: int | None = None) -> None:
    """Step random games from these times; the next moment of their record is what must come out."""
    plain = played(game, batch, moments)
    score = np.where(plain.over, plain.targets["score"], 0).astype(np.float32)
    look = PositionInfo(plain.legal, Observation(plain.planes, plain.scalars), plain.over, plain.returns, score)
    for t in times:
        now, then = (jax.tree.map(lambda leaf, t=t: leaf[t, :16], (plain.states, look)) for t in (t, t + 1))
        stay = np.arange(len(now[0].turn)) % 5 == 4
        fused = _fused(game)(now[0], plain.actions[t, :16], stay)
        same(fused, jax.tree.map(lambda old, new: np.asarray(jax.vmap(jnp.where)(stay, old, new)), now, then))


def compare_nodes(game: Go, times: range) -> None:
    """The same for nodes of a search tree, which have no list of all positions."""
    plain = played(game, 64, None)
    for t in times:
        states = jax.tree.map(lambda leaf: leaf[t, :16], plain.states)
        nodes = states._replace(history=states.history[:, :0])
        given = nodes, plain.actions[t, :16], np.arange(16) % 5 == 4
        same(_fused(game)(*given), _plain(game)(*given))


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize(
    ("size", "ko", "suicide"),
    [
        (3, "positional", True),
        *(
            pytest.param(*rules, marks=pytest.mark.slow)
            for rules in ((2, "positional", False), (3, "simple", False), (5, "situational", False))
        ),
    ],
)
def test_small_boards(size: int, ko: str, suicide: bool) -> None:
    game = go(size, ko, suicide)
    compare(game, range(2, game.max_moves + 1, 6))  # the last time is the end of the longest games


@pytest.mark.usefixtures("emulated_gpu")
def test_tree_nodes() -> None:
    compare_nodes(go(3, "positional", True), range(0, 40, 4))


@pytest.mark.slow
@pytest.mark.usefixtures("emulated_gpu")
def test_9x9() -> None:
    compare(go(9, "positional", False), range(40, 160, 60), batch=8)


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.slow
@pytest.mark.parametrize(("ko", "suicide"), RULES)
@pytest.mark.parametrize("size", [2, 3, 5, 9])
def test_all_rules(size: int, ko: str, suicide: bool) -> None:
    game = go(size, ko, suicide)
    compare(game, range(0, game.max_moves + 1, size))


@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.slow
@pytest.mark.parametrize(("ko", "suicide"), [("positional", False), ("situational", True), ("simple", False)])
def test_19x19(ko: str, suicide: bool) -> None:
    compare(go(19, ko, suicide), range(100, 500, 80), batch=4, moments=500)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("size", "ko", "suicide"),
    [
        # Each kind of ko with and without suicide.
        (5, "simple", False),
        (5, "positional", True),
        (5, "situational", True),
        (2, "positional", True),
        (9, "positional", False),
        (9, "simple", True),
        (19, "situational", False),
    ],
)
def test_compiled_for_a_gpu(size: int, ko: str, suicide: bool) -> None:
    """Random games step by step, with and without the list of all positions; some games rest at every step."""
    game = go(size, ko, suicide)
    batch, steps = (64, game.max_moves * 5 // 4 + 2) if size < 19 else (16, 400)

    def play(step: Any, carry: Any) -> Any:
        states, look, wrong = carry
        key = jax.random.fold_in(jax.random.key(3), step)
        liking = jnp.where(jnp.arange(game.num_actions) == game.points, -3.0, 0.0)
        actions = jax.random.categorical(key, jnp.where(look.legal, liking, -jnp.inf)).astype(jnp.int32)
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
    wrong = jax.tree.map(lambda _: jnp.int32(0), (nothing, nothing))
    look = jax.jit(jax.vmap(game.look))(states)
    states, look, wrong = jax.jit(lambda carry: jax.lax.fori_loop(0, steps, play, carry))((states, look, wrong))
    assert not any(jax.tree.leaves(wrong)), wrong
    assert look.over.any() or size == 19
