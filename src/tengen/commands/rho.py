"""`tengen rho`: the rate at which hosts end Hironaka's games against agents."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tengen.commands.arguments import Arg, Namespace, whole
from tengen.errors import TengenError

_MOST = 1_000_000

HELP = "Hironaka's game: the rate at which hosts end games against agents"
ABOUT = """Measures how fast hosts end Hironaka's game against agents, for every pair of them. Without players all
fixed ones are measured."""
EXAMPLE = "tengen rho zeillinger random --agents first --games 1000"
ARGUMENTS = (
    Arg("HOST*", "random, all, zeillinger, spivakovsky, a network or a run (all fixed)", dest="hosts"),
    Arg("--agents AGENT+", "random, first, last, a network or a run (all fixed)"),
    Arg("--games N", "games per pair (%(default)s)", whole(2, _MOST), 5000),
    Arg("--dimension N", "coordinates (%(default)s)", whole(2, _MOST), 3),
    Arg("--points N", "points (%(default)s)", whole(2, _MOST), 5),
    Arg("--max-value N", "largest coordinate at first (%(default)s)", whole(1, _MOST), 20),
    Arg("--moves N", "rounds at most (%(default)s)", whole(1, _MOST), 40),
    Arg("--reposition", "subtract the smallest values after every shift"),
    Arg("--simulations N", "of networks, 0: without search (%(default)s)", whole(0, _MOST), 0),
    Arg("--seed N", "of the starts (%(default)s)", whole(0, _MOST), 0),
    Arg("--select", "HOST is a run: which of its networks are the best host and the best agent"),
    Arg("--json", "for programs"),
)


def run(args: Namespace) -> None:
    from tengen import games
    from tengen.jax_setup import keep_compiled

    keep_compiled()
    options = {"dimension": args.dimension, "max_points": args.points, "max_value": args.max_value}
    game: Any = games.make("hironaka", **options, max_moves=2 * args.moves, reposition=args.reposition)
    (_select if args.select else _table)(args, game)


def _table(args: Namespace, game: Any) -> None:
    from tengen.match import hironaka

    hosts = [hironaka.player(text, "host", game, args.simulations) for text in args.hosts or hironaka.NAMES["host"]]
    agents = [hironaka.player(text, "agent", game, args.simulations) for text in args.agents or hironaka.NAMES["agent"]]
    pairs = hironaka.table(game, hosts, agents, args.games, args.seed)
    if args.json:
        print(json.dumps([asdict(pair) for pair in pairs], indent=1))
    else:
        _print_table(args, pairs, [host.name for host in hosts], [agent.name for agent in agents])


def _print_table(args: Namespace, pairs: Iterator[Any], hosts: Sequence[str], agents: Sequence[str]) -> None:
    from tengen.match.results import SURE

    left = max(12, *(len(host) for host in hosts)) + 2
    widths = [max(16, len(agent)) + 2 for agent in agents]
    print(f"games / rounds, {args.games:,} games a pair, at most {args.moves} rounds; 95 % errors")
    print(f"{'host':<{left}}" + "".join(f"{agent:>{width}}" for agent, width in zip(agents, widths, strict=True)))
    for host in hosts:
        print(f"{host:<{left}}", end="", flush=True)
        for width in widths:
            pair = next(pairs)
            print(f"{f'{pair.rate:.4f} +-{SURE * pair.error:.4f}':>{width}}", end="", flush=True)
        print()


def _select(args: Namespace, game: Any) -> None:
    """Chooses, then measures the chosen ones again from other starts: the best of many was also lucky."""
    from tengen.match import hironaka
    from tengen.run import networks

    if len(args.hosts) != 1 or args.agents:
        raise TengenError("rho: --select needs one run, and no --agents: tengen rho RUN --select")
    base = Path(args.hosts[0])
    # Where one role learned by itself there is no network to choose for the other one.
    usable: list[hironaka.HironakaRole] = [role for role in hironaka.ROLES if networks.usable(base, role)]
    found = []
    for role in usable or hironaka.ROLES:
        chosen = hironaka.select(base, role, game, args.games, simulations=args.simulations, seed=args.seed)
        found.append(chosen)
        if not args.json:
            _show(chosen)
    best = {chosen.role: [chosen.best.player] for chosen in found}
    hosts = [*best.get("host", ()), hironaka.player("zeillinger", "host", game)]
    agents = [*(hironaka.player(name, "agent", game) for name in hironaka.NAMES["agent"]), *best.get("agent", ())]
    pairs = hironaka.table(game, hosts, agents, args.games, args.seed + 1)
    if args.json:
        listed = {chosen.role: {"reference": chosen.reference, "networks": chosen.listed()} for chosen in found}
        print(json.dumps(listed | {"best": [asdict(pair) for pair in pairs]}, indent=1))
    else:
        _print_table(args, pairs, [host.name for host in hosts], [agent.name for agent in agents])


def _show(chosen: Any) -> None:
    wanted = "higher" if chosen.role == "host" else "lower"
    print(f"{chosen.role}s, rates as multiples of {chosen.reference}'s, {wanted} is better; the best first")
    left = max(len(standing.name) for standing in chosen.standings) + 2
    names = list(chosen.best.against)
    print(f"{'':<{left}}{'worst':>8}" + "".join(f"{name:>{max(len(name), 8) + 2}}" for name in names))
    for standing in chosen.standings:
        cells = "".join(f"{standing.against[name]:>{max(len(name), 8) + 2}.3f}" for name in names)
        print(f"{standing.name:<{left}}{standing.worst:>8.3f}{cells}")
    print(f"best {chosen.role}: {chosen.best.path}\n")
