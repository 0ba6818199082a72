"""Hosts and agents of Hironaka's game: how soon they end it, tables of that, and which networks of a run are best.

A pair that was trained against itself alone can agree on a private game in which both look strong. So networks are
judged by players that were not trained with them: the fixed ones, and networks from other times of the run.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen.config.settings.search import SearchSettings
from tengen.errors import OptionError, TengenError
from tengen.games.core import freeze
from tengen.games.hironaka import AGENT, HOST, Hironaka, HironakaState, live
from tengen.games.players import Player, Rule
from tengen.match import player_spec, players
from tengen.match.results import SURE
from tengen.run import networks

HironakaRole = Literal["host", "agent"]
ROLES: tuple[HironakaRole, ...] = get_args(HironakaRole)
"""In the order of the players' numbers."""
NAMES: dict[HironakaRole, tuple[str, ...]] = {
    "host": ("random", "all", "zeillinger", "spivakovsky"),
    "agent": ("random", "first", "last"),
}
"""The fixed players that others are measured against."""
REFERENCES: dict[HironakaRole, str] = {"host": "zeillinger", "agent": "first"}
"""The fixed player that networks in each role are compared with."""


@dataclass(frozen=True)
class Rho:
    """The games of one host against one agent. A round is one choice by each; unfinished games count as the longest."""

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

    The same key gives all players the same starts, so differences between players have smaller errors.
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
    """The final positions of [G] games; each player is a separate program, so that a table compiles few of them."""
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
    states = jax.vmap(game.init)(jax.random.split(key, games))
    return states, ~jax.vmap(game.is_over)(states).all()


@partial(jax.jit, static_argnames=("game", "rule", "player"))
def _move(
    game: Hironaka, rule: Rule, player: int, params: Any, key: Array, states: HironakaState
) -> tuple[HironakaState, Array]:
    over = jax.vmap(game.is_over)(states)
    which = ~over & (jax.vmap(game.to_play)(states) == player)
    moved = jax.vmap(game.step)(states, rule(params, key, states, which).astype(jnp.int32))
    states = jax.vmap(freeze)(~which, states, moved)
    return states, ~jax.vmap(game.is_over)(states).all()


def player(text: str, role: HironakaRole, game: Hironaka, simulations: int = 0) -> Player:
    """The fixed player of that name, or the network at that path (of a run: the newest), with or without search."""
    spec = player_spec.parse_role(text, role, game)
    return network(spec.found, game, simulations) if spec.found else spec.player(game)


def network(found: networks.FoundNetwork, game: Hironaka, simulations: int = 0) -> Player:
    """A network on disk as a player in either role: its best move, or with simulations the best of a search."""
    if simulations == 0:
        return players.saved(found.name, found.path, game)
    settings = players.strongest(SearchSettings(), simulations)
    return players.saved(f"{found.name}:{simulations}", found.path, game, settings)


def table(
    game: Hironaka, hosts: Sequence[Player], agents: Sequence[Player], games: int, seed: int = 0
) -> Iterator[Rho]:
    """Every host against every agent, each pair as soon as it is measured; all from the same starts."""
    key = jax.random.key(seed)
    for host in hosts:
        for agent in agents:
            yield rho(game, host, agent, key, games)


@dataclass(frozen=True)
class RoleStanding:
    """One network in one role: its rate against each opponent as a multiple of the reference's rate."""

    player: Player
    path: Path
    role: HironakaRole
    against: dict[str, float]

    @property
    def name(self) -> str:
        return self.player.name

    @property
    def worst(self) -> float:
        """The lowest multiple of a host, or the highest of an agent: agents want games to last."""
        return min(self.against.values()) if self.role == "host" else max(self.against.values())


@dataclass(frozen=True)
class RoleSelection:
    """All networks of a run in one role, the best first: by the opponent against whom each does worst."""

    role: HironakaRole
    reference: str
    standings: tuple[RoleStanding, ...]

    @property
    def best(self) -> RoleStanding:
        return self.standings[0]

    def listed(self) -> list[dict[str, Any]]:
        return [
            {"name": each.name, "path": str(each.path), "worst": each.worst, "against": each.against}
            for each in self.standings
        ]


def select(
    run: Path, role: HironakaRole, game: Hironaka, games: int, *, simulations: int = 0, earlier: int = 3, seed: int = 0
) -> RoleSelection:
    """Every network of a run in a role, against the fixed opponents and `earlier` networks spread over the run.

    The newest network is always one of those, if there are any. TengenError if the run has no network for the role.
    """
    all_of_it = networks.usable(run, role)
    if not all_of_it:
        raise TengenError(f"{run}: no networks to choose from for the {role}, expected a run that has saved some")
    candidates = [network(found, game, simulations) for found in all_of_it]
    other: HironakaRole = "agent" if role == "host" else "host"
    fixed = [player(name, other, game) for name in NAMES[other]]
    rivals = networks.usable(run, other)
    opponents = [*fixed, *(network(rivals[n], game, simulations) for n in spread(len(rivals), earlier))]
    key = jax.random.key(seed)

    def rate(candidate: Player, opponent: Player) -> float:
        pair = (candidate, opponent) if role == "host" else (opponent, candidate)
        return rho(game, *pair, key, games).rate

    reference = player(REFERENCES[role], role, game)
    usual = {opponent.name: rate(reference, opponent) for opponent in opponents}
    standings = [
        RoleStanding(
            candidate,
            found.path,
            role,
            {opponent.name: rate(candidate, opponent) / usual[opponent.name] for opponent in opponents},
        )
        for found, candidate in zip(all_of_it, candidates, strict=True)
    ]
    ordered = sorted(standings, key=lambda standing: standing.worst, reverse=role == "host")
    return RoleSelection(role, reference.name, tuple(ordered))


def spread(count: int, wanted: int) -> list[int]:
    """At most `wanted` of the numbers below `count`, evenly spread, the last one always."""
    chosen = min(count, wanted)
    return sorted({count - 1 - number * count // chosen for number in range(chosen)})
