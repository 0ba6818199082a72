"""Tic-tac-toe that declares a target of every kind, as a user's game may."""

import jax
import jax.numpy as jnp
from jax import Array

from tengen.games.targets import OWNERSHIP, Target
from tengen.games.tic_tac_toe import TicTacToe, TicTacToeState


def squared_log(output: Array, target: Array) -> Array:
    """A loss of one's own: one number per row."""
    return jnp.square(jnp.log1p(jax.nn.softplus(output)) - jnp.log1p(target))


class EveryTarget(TicTacToe):
    """Tic-tac-toe with a target of each kind."""

    extra_targets = (
        OWNERSHIP,
        Target("mine", "point", loss="binary", sides="each", dtype="int8"),
        Target("filled", "action", loss="squared", sides="same"),
        Target("lead", "number", loss="score", weight=0.1),
        Target("stones", "number", loss=squared_log, sides="same", dtype="int8"),
    )

    def final_targets(self, state: TicTacToeState) -> dict[str, Array]:
        x, o = (((state.stones[p].astype(jnp.uint32) >> jnp.arange(9, dtype=jnp.uint32)) & 1) for p in (0, 1))
        x, o = x.astype(jnp.int8), o.astype(jnp.int8)
        return {
            "ownership": (x - o).reshape(3, 3),
            "mine": jnp.stack([x, o]).reshape(2, 3, 3),
            "filled": (x + o).astype(jnp.float32),
            "stones": (x + o).sum(),
            "lead": (x.sum() - o.sum()).astype(jnp.float32),
        }
