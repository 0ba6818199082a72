"""Hosts and agents of Hironaka's game by name, tables of their rates, and which networks of a run are best.

A pair that was trained against itself alone can agree on a private game in which both look strong. So networks are
judged by players that were not trained with them: the fixed ones, and networks from other times of the run.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from tengen.errors import OptionError, TengenError
from tengen.games.hironaka import Hironaka
from tengen.match import hironaka_players as arena
from tengen.match.hironaka_players import Role, names
from tengen.match.players import Player
from tengen.match.rho import Rho, rho
from tengen.run import networks
from tengen.schema import quote

__all__ = [
    "REFERENCES",
    "Role",
    "RoleSelection",
    "RoleStanding",
    "names",
    "network",
    "player",
    "select",
    "spread",
    "table",
]

REFERENCES: dict[Role, str] = {"host": "zeillinger", "agent": "first"}
"""The fixed player that networks in each role are compared with."""


def player(text: str, role: Role, game: Hironaka, simulations: int = 0) -> Player:
    """The fixed player of that name, or the network at that path (of a run: the newest), with or without search.

    TengenError says what is neither.
    """
    if text in names(role):
        return arena.fixed(text, role, game)
    if not os.path.exists(text):
        known = ", ".join(names(role))
        raise OptionError(f"{quote(text)}: no {role} has that name, expected one of {known}, or a network or a run")
    return network(networks.find(text, role), game, simulations)


def network(found: networks.FoundNetwork, game: Hironaka, simulations: int = 0) -> Player:
    """A network on disk as a player in either role; 0 simulations: without search."""
    return arena.network(found.path, found.name, game, simulations)


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
    """One network in one role: what it achieved against each opponent as a multiple of the reference's rate there."""

    player: Player
    path: Path
    role: Role
    against: dict[str, float]

    @property
    def name(self) -> str:
        return self.player.name

    @property
    def worst(self) -> float:
        """Of a host the lowest multiple, of an agent the highest: agents want games to last."""
        return min(self.against.values()) if self.role == "host" else max(self.against.values())


@dataclass(frozen=True)
class RoleSelection:
    """All networks of a run in one role, the best first: by the opponent against whom each does worst."""

    role: Role
    reference: str
    standings: tuple[RoleStanding, ...]

    @property
    def best(self) -> RoleStanding:
        return self.standings[0]

    def listed(self) -> list[dict[str, Any]]:
        """As JSON data."""
        return [
            {"name": each.name, "path": str(each.path), "worst": each.worst, "against": each.against}
            for each in self.standings
        ]


def select(
    run: Path, role: Role, game: Hironaka, games: int, *, simulations: int = 0, earlier: int = 3, seed: int = 0
) -> RoleSelection:
    """Every network of a run in a role, against the fixed opponents and `earlier` networks spread over the run.

    The newest network is always one of those, if there are any. TengenError if the run has no network for the role.
    """
    all_of_it = networks.usable(run, role)
    if not all_of_it:
        raise TengenError(f"{run}: no networks to choose from for the {role}, expected a run that has saved some")
    candidates = [network(found, game, simulations) for found in all_of_it]
    other: Role = "agent" if role == "host" else "host"
    fixed = [player(name, other, game) for name in names(other)]
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
