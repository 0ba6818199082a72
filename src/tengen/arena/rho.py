"""How soon a host ends Hironaka's games against an agent: the rate rho = games / rounds. See docs/hironaka.md."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tengen.arena.players import Player, Rule
from tengen.errors import OptionError
from tengen.games.hironaka import AGENT, HOST, Hironaka, HironakaState, live

NORMAL_95 = 1.959964
"""Standard errors that hold 95 % of a normal distribution on either side."""


@dataclass(frozen=True)
class Rho:
    """What one host did against one agent. A round is a choice of each; unfinished games count with the limit."""

    host: str
    agent: str
    games: int
    rounds: int
    unfinished: int
    rate: float  # games / rounds
    error: float  # its standard error

    def __str__(self) -> str:
        return f"{self.host} against {self.agent}: {self.rate:.4f} +-{self.error * NORMAL_95:.4f}"


def rho(game: Hironaka, host: Player, agent: Player, key: Array, games: int) -> Rho:
    """Play so many games to the end or to the game's limit of moves. Both players' rules must be compiled ones.

    The same key gives the same starts, whoever plays: differences between players then have smaller errors than these.
    """
    if games < 2:
        raise OptionError(f"rho: expected at least 2 games, got {games}")
    if host.on_host or agent.on_host:
        raise OptionError("rho: expected players whose rules run on the device")
    ends = _play(game, host.rule, agent.rule, host.params, agent.params, key, games)
    moves, alive = jax.device_get((ends.moves, jax.vmap(lambda points: live(points).sum())(ends.points)))
    return summarise(host.name, agent.name, -(-moves.astype(np.int64) // 2), int((alive > 1).sum()))


def summarise(host: str, agent: str, rounds: np.ndarray, unfinished: int) -> Rho:
    """The rate and its error from the Int[G] rounds of G games, unfinished ones with the limit.

    rho is 1 / m for the mean m of the rounds; to first order its standard error is that of m divided by m squared.
    """
    mean = float(rounds.mean())
    error = float(rounds.std(ddof=1)) / len(rounds) ** 0.5
    return Rho(host, agent, len(rounds), int(rounds.sum()), unfinished, 1 / mean, error / mean**2)


@partial(jax.jit, static_argnames=("game", "host", "agent", "games"))
def _play(
    game: Hironaka, host: Rule, agent: Rule, host_params: Any, agent_params: Any, key: Array, games: int
) -> HironakaState:
    """The final positions of [G] games."""
    starting, playing = jax.random.split(key)
    start = jax.vmap(game.init)(jax.random.split(starting, games))

    def choose(rule: Rule, params: Any, key: Array, states: HironakaState, player: int) -> HironakaState:
        over = jax.vmap(game.is_over)(states)
        which = ~over & (jax.vmap(game.to_play)(states) == player)
        actions = rule(params, key, states, which).astype(jnp.int32)
        moved = jax.vmap(game.step)(states, actions)
        return jax.tree.map(
            lambda old, new: jnp.where(which.reshape(-1, *[1] * (old.ndim - 1)), new, old), states, moved
        )

    def a_round(carry: tuple[Array, HironakaState]) -> tuple[Array, HironakaState]:
        key, for_host, for_agent = jax.random.split(carry[0], 3)
        states = choose(host, host_params, for_host, carry[1], HOST)
        return key, choose(agent, agent_params, for_agent, states, AGENT)

    def goes_on(carry: tuple[Array, HironakaState]) -> Array:
        return ~jax.vmap(game.is_over)(carry[1]).all()

    return lax.while_loop(goes_on, a_round, (playing, start))[1]
