"""How well networks judge the positions of recorded games: values against results, policies against moves.

    python benchmarks/judgement.py matches/mine-g170/games.sgf runs/go9 nets/g170
    python benchmarks/judgement.py GAMES NET --plies 0 10 20 40

For each range of plies and each network, without search: the mean squared error of the chance to win (from 0 to 1; a
constant has 0.25), and the cross-entropy of each player's moves. Moves of the opening and drawn games are left out. A
match says that a network is weaker than another one; this shows in which part of a game.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from tengen import games
from tengen.data.records.records import Record, load_records
from tengen.errors import TengenError
from tengen.nets import saving
from tengen.run import networks

PLIES = (0, 12, 25, 40, 60)


class Judged(NamedTuple):
    """The positions of all games, one after the other, as one network sees them."""

    ply: np.ndarray  # Int[N]
    player: np.ndarray  # [N]: the name of the player to move
    error: np.ndarray  # Float[N]: of the chance to win
    surprise: np.ndarray  # Float[N]: minus the logarithm of the move's probability


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("games", type=Path, help="a file of records, as `tengen match` writes them")
    parser.add_argument("nets", nargs="+", help="networks or runs")
    parser.add_argument("--plies", type=int, nargs="+", default=PLIES, help="where the ranges begin")
    args = parser.parse_args()
    try:
        records = usable(load_records(args.games))
        found = {name: judge(records, networks.find(name).path) for name in args.nets}
    except TengenError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(table(found, args.plies)))
    return 0


def usable(records: Sequence[Record]) -> list[Record]:
    """The games that somebody won, from the usual start; those with the same options after each other."""
    found = [record for record in records if record.result and record.start is None]
    if not found:
        raise TengenError("no game with a winner that began with the usual position")
    return sorted(found, key=_options)


def judge(records: Sequence[Record], path: Path) -> Judged:
    saved = saving.read(path)
    parts: list[Judged] = []
    for _, group in itertools.groupby(records, _options):
        alike = list(group)
        options = {**saved.options, **alike[0].options}
        if "observation" in saved.options:
            options["observation"] = saved.options["observation"]
        game = games.make(alike[0].game, **options)
        parts += _judged(game, saving.load(path, game), alike)
    return Judged(*map(np.concatenate, zip(*parts, strict=True)))


def _options(record: Record) -> str:
    return json.dumps([record.game, {**record.options, "observation": None}], sort_keys=True)


def _judged(game: Any, net: Any, records: Sequence[Record]) -> Iterator[Judged]:
    actions = np.zeros((len(records), max(len(record.actions) for record in records)), np.int32)
    for row, record in zip(actions, records, strict=True):
        row[: len(record.actions)] = record.actions
    graph, state = nnx.split(net)

    @jax.jit
    def replay(state: Any, actions: jax.Array) -> Any:
        def one(now: Any, action: jax.Array) -> Any:
            seen, legal = jax.vmap(game.observe)(now), jax.vmap(game.legal_actions)(now)
            outputs = nnx.merge(graph, state)(seen.planes, seen.scalars)
            chances, policy = jax.nn.softmax(outputs.value), jnp.where(legal, outputs.policy, -jnp.inf)
            surprise = -jnp.take_along_axis(jax.nn.log_softmax(policy), action[:, None], 1)[:, 0]
            judged = jax.vmap(game.to_play)(now), chances[:, 0] + chances[:, 1] / 2, surprise
            return jax.vmap(game.step)(now, action), judged

        first = jax.vmap(game.init)(jax.random.split(jax.random.key(0), len(actions)))
        return jax.lax.scan(one, first, actions.T)[1]

    found = (x.T for x in jax.device_get(replay(state, actions)))
    for record, player, chance, surprise in zip(records, *found, strict=True):
        assert record.result is not None
        plies = np.arange(record.opening, len(record.actions))
        won = (player[plies] == 0) == (record.result > 0)
        names = np.array(record.players)[player[plies]]
        yield Judged(plies, names, np.square(chance[plies] - won), surprise[plies])


def table(found: Mapping[str, Judged], plies: Sequence[int]) -> Iterator[str]:
    """One line for each range of plies and each network."""
    first = next(iter(found.values()))
    players = sorted(set(first.player))
    titles = "plies", "positions", "network", "error of the chance", *(f"moves of {name}" for name in players)
    yield " | ".join(titles)
    for begin, end in itertools.pairwise([*sorted(plies), sys.maxsize]):
        inside = (first.ply >= begin) & (first.ply < end)
        if inside.any():
            name = f"{begin} on" if end == sys.maxsize else f"{begin} to {end - 1}"
            for network, judged in found.items():
                moves = (judged.surprise[inside & (judged.player == player)] for player in players)
                told = [f"{judged.error[inside].mean():.4f}", *(f"{x.mean():.3f}" if len(x) else "-" for x in moves)]
                yield " | ".join([name, f"{inside.sum():,}", network, *told])


if __name__ == "__main__":
    sys.exit(main())
