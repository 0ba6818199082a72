"""The search against mctx, where the formulas coincide: the same priors, values and noise give the same visits."""

from typing import Any

import jax
import jax.numpy as jnp
import mctx as typed_mctx
import numpy as np
import pytest

from tengen.games.core import Game
from tests.helpers.game_recording import jit, make
from tests.helpers.recorded_search import BATCH, MOVES, Plan, play
from tests.helpers.search_plans import GUMBEL, PUCT
from tests.helpers.search_positions import DOUBLE_MOVE, hashed, random_game, stacked

mctx: Any = typed_mctx  # its dataclasses are opaque to pyright
LOWEST = float(np.finfo(np.float32).min)


def embedding(game: Game, states: Any, evaluator: tuple[float, float]) -> Any:
    """Logits [B, A] as the search rounds them, very low where not legal, and values [B] for the player to move."""
    look = jax.vmap(game.look)(states)
    logits, value, _ = hashed(look.observation, game.num_actions, *evaluator, xp=jnp)
    masked = jnp.where(look.legal, logits, -jnp.inf)
    logits = jax.nn.log_softmax(masked, where=look.legal).astype(jnp.float16).astype(jnp.float32)
    return jnp.where(look.legal, logits, LOWEST), value, look


def recurrent(game: Game, evaluator: tuple[float, float]) -> Any:
    """The rules as mctx's model. It searches on below the end of a game; with discount 0 that changes no value."""

    def step(_params: Any, _key: Any, action: Any, states: Any) -> Any:
        moved = jax.vmap(game.step)(states, action)
        logits, value, look = embedding(game, moved, evaluator)
        before, now = jax.vmap(game.to_play)(states), jax.vmap(game.to_play)(moved)
        result = jnp.take_along_axis(look.returns, before[:, None], 1)[:, 0]
        return mctx.RecurrentFnOutput(
            reward=jnp.where(look.over, result, 0.0),
            discount=jnp.where(look.over, 0.0, jnp.where(before == now, 1.0, -1.0)),
            prior_logits=jnp.where(look.over[:, None], 0.0, logits),
            value=value,
        ), moved

    return step


def plain_values(tree: Any, node: Any) -> Any:
    """mctx's hook for values: means as they are, for a move without visits the node's, far below where not legal."""
    values = jnp.where(tree.children_visits[node] > 0, tree.qvalues(node), tree.node_values[node])
    return jnp.where(tree.children_prior_logits[node] > -1e9, values, -1e9)


def mctx_visits(plan: Plan, states: Any, key: Any, evaluator: tuple[float, float]) -> np.ndarray:
    """[B, A] the visits of the root's moves in mctx's tree."""
    game, settings = plan.game, plan.settings

    def search(states: Any, key: Any) -> Any:
        logits, value, look = embedding(game, states, evaluator)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states)
        given = ((), key, root, recurrent(game, evaluator), settings.simulations, ~look.legal)
        if settings.algorithm == "gumbel":
            return mctx.gumbel_muzero_policy(
                *given, max_num_considered_actions=settings.considered, gumbel_scale=settings.gumbel_scale
            )
        return mctx.muzero_policy(
            *given,
            qtransform=plain_values,
            dirichlet_fraction=0.0,
            pb_c_init=settings.c_init,
            pb_c_base=settings.c_base,
            temperature=0.0,
        )

    return np.asarray(jit(search)(states, key).search_tree.summary().visit_counts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(PUCT, id="puct"),
        pytest.param(GUMBEL, id="gumbel"),
        pytest.param(PUCT._replace(game=DOUBLE_MOVE), id="puct, double moves"),
        pytest.param(GUMBEL._replace(game=DOUBLE_MOVE), id="gumbel, double moves"),
        pytest.param(PUCT._replace(game=make("connect_four")), id="puct, connect four"),
        pytest.param(GUMBEL._replace(game=make("connect_four")), id="gumbel, connect four"),
    ],
)
def test_the_visits_are_mctxs(plan: Plan) -> None:
    evaluator, key = (2.0, 1.0), jax.random.key(1)
    # Early positions: where every legal move of a node has been visited, mctx rescales values by those of illegal ones.
    states = stacked([random_game(plan.game, seed)[seed % 4] for seed in range(BATCH)])
    noise = np.asarray(jax.random.gumbel(jax.random.split(key)[1], (BATCH, plan.game.num_actions)))  # as mctx draws it
    recorded = play(plan, states, noise=np.stack([noise] * MOVES), evaluator=evaluator)
    np.testing.assert_array_equal(recorded.results.visits[0, -1], mctx_visits(plan, states, key, evaluator))
