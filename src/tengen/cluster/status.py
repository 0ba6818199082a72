"""How the nodes of a cluster are doing, as parts of the run's status."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tengen.cluster.actor import ActorStatus
from tengen.cluster.fleet import Fleet
from tengen.run.part_status import NODE, PartStatus
from tengen.words import age, counted, rate


def of_nodes(fleet: Fleet, now: float) -> tuple[PartStatus, ...]:
    """A part for each node that has self-play actors or has no room for any, one for actors to come, and one for all
    nodes that have left: a cluster may have had very many."""
    members, names = list(fleet.members), fleet.names
    known = {node for node in (*fleet.received, *fleet.lost) if node in names}
    found: dict[str, list[ActorStatus]] = {node: [] for node in known & fleet.living}
    for member in members:
        if member.status is not None:
            found.setdefault(member.status.node, []).append(member.status)
    parts = [
        replace(
            _node(names.get(node, node[:8]), actors, fleet.received.get(node, (0, 0)), fleet.published, now),
            restarts=fleet.lost.get(node, 0),
        )
        for node, actors in found.items()
    ]
    idle = {node: words for node, words in fleet.idle.items() if node not in found}
    parts += [PartStatus(NODE, names.get(node, node[:8]), words=words, waiting=False) for node, words in idle.items()]
    if homeless := len(members) - sum(map(len, found.values())):
        words = f"{counted(homeless, 'self-play actor')} to be started"
        parts.append(PartStatus(NODE, "to-come", words=words, waiting=True))
    if gone := known - set(found):
        games, rows = (sum(fleet.received.get(node, (0, 0))[k] for node in gone) for k in (0, 1))
        words = (
            f"{counted(len(gone), 'node')} {'has' if len(gone) == 1 else 'have'} left; {games:,} games, {rows:,} rows"
        )
        restarts = sum(fleet.lost.get(node, 0) for node in gone)
        figures = {"games": games, "rows": rows}
        parts.append(PartStatus(NODE, "gone", words=words, waiting=False, restarts=restarts, figures=figures))
    return tuple(sorted(parts, key=lambda part: part.name))


def _node(
    name: str, actors: list[ActorStatus], received: tuple[int, int], published: Mapping[int, float], now: float
) -> PartStatus:
    speed = sum(actor.evaluations_per_second for actor in actors)
    ages = [now - published[actor.version] for actor in actors if actor.version in published]
    figures: dict[str, Any] = {
        "actors": len(actors),
        "evaluations_per_second": round(speed) if speed else None,
        "games": received[0],
        "rows": received[1],
        "network_age": round(max(ages), 1) if ages else None,
        "waiting": sum(actor.waiting for actor in actors),
    }
    waits = [actor for actor in actors if actor.waiting]
    busy = [actor for actor in actors if not actor.waiting]
    words = [actor.words for actor in (busy or waits)]
    doing = max(words, key=words.count, default="")  # what most of them do, or wait for
    more = [
        rate(speed).replace("/s", " evaluations/s") if speed else "",
        f"{received[0]:,} games, {received[1]:,} rows" if received[0] else "",
        f"network {age(max(ages))} old" if ages else "",
        f"{len(waits)} of {len(actors)} wait" if waits and busy else "",
    ]
    words = ", ".join(filter(None, (f"{doing} ({counted(len(actors), 'actor')})" if actors else "no actor", *more)))
    seconds = min((actor.seconds for actor in (busy or waits)), default=0.0)
    return PartStatus(NODE, name, machine=name, words=words, waiting=not busy, seconds=seconds, figures=figures)
