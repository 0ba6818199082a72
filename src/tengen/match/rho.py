"""How soon a host ends Hironaka's games against an agent: the rate rho = games / rounds. See docs/hironaka.md."""

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.errors import OptionError
from tengen.games.core import freeze
from tengen.games.hironaka import AGENT, HOST, Hironaka, HironakaState, live
from tengen.games.players import Player, Rule
from tengen.match.results import SURE


@dataclass(frozen=True)
class Rho:
    """The games of one host against one agent. A round is a choice of each; unfinished games count with the limit."""

    host: str
    agent: str
    games: int
    rounds: int
    unfinished: int
    rate: float  # games / rounds
    error: float  # its standard error

    def __str__(self) -> str:
        return f"{self.host} against {self.agent}: {self.rate:.4f} +-{self.error * SURE:.4f}"


def rho(game: Hironaka, host: Player, agent: Player, key: Array, games: int) -> Rho:
    """Plays games to the end or to the game's limit of moves. Both players must have compiled rules.

    The same key gives all players the same starts: differences between players then have smaller errors than these.
    """
    if games < 2:
        raise OptionError(f"rho: expected at least 2 games, got {games}")
    if host.on_host or agent.on_host:
        raise OptionError("rho: expected players whose rules run on the device")
    ends = _play(game, host, agent, key, games)
    moves, alive = jax.device_get((ends.moves, jax.vmap(lambda points: live(points).sum())(ends.points)))
    return summarise(host.name, agent.name, -(-moves.astype(np.int64) // 2), int((alive > 1).sum()))


def summarise(host: str, agent: str, rounds: np.ndarray, unfinished: int) -> Rho:
    """The rate and its error from the Int[G] rounds of G games, unfinished ones with the limit.

    rho is 1 / m for the mean m of the rounds; to first order its standard error is that of m divided by m squared.
    """
    mean = float(rounds.mean())
    error = float(rounds.std(ddof=1)) / len(rounds) ** 0.5
    return Rho(
        host, agent, len(rounds), int(rounds.sum()), unfinished, len(rounds) / int(rounds.sum()), error / mean**2
    )


def _play(game: Hironaka, host: Player, agent: Player, key: Array, games: int) -> HironakaState:
    """The final positions of [G] games.

    Each player is a separate program, so that a table of pairs compiles only as many as it has players.
    """
    starting, playing = jax.random.split(key)
    states, running = _start(game, starting, games)
    for number in itertools.count():
        if not running:
            return states
        for_host, for_agent = jax.random.split(jax.random.fold_in(playing, number))
        states, _ = _move(game, host.rule, HOST, host.params, for_host, states)
        states, running = _move(game, agent.rule, AGENT, agent.params, for_agent, states)
    raise AssertionError("no game lasts for ever")


@partial(jax.jit, static_argnames=("game", "games"))
def _start(game: Hironaka, key: Array, games: int) -> tuple[HironakaState, Array]:
    """[G] new games, and whether any is under way."""
    states = jax.vmap(game.init)(jax.random.split(key, games))
    return states, ~jax.vmap(game.is_over)(states).all()


@partial(jax.jit, static_argnames=("game", "rule", "player"))
def _move(
    game: Hironaka, rule: Rule, player: int, params: Any, key: Array, states: HironakaState
) -> tuple[HironakaState, Array]:
    """One move of a player in all games that wait for it, and whether any game is still under way."""
    over = jax.vmap(game.is_over)(states)
    which = ~over & (jax.vmap(game.to_play)(states) == player)
    moved = jax.vmap(game.step)(states, rule(params, key, states, which).astype(jnp.int32))
    states = jax.vmap(freeze)(~which, states, moved)
    return states, ~jax.vmap(game.is_over)(states).all()
