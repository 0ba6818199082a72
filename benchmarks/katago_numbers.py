"""A network in Tengen next to the same network in KataGo: the largest differences of policy and value.

    python benchmarks/katago_numbers.py NET 'katago gtp -model NET.bin.gz -config gtp.cfg' GAMES.sgf --positions 1000

NET is a network of Tengen, exported to the file that KataGo loads, or imported from it. Positions are drawn from the
games on boards of its size; those with a ban by ko or superko come first. KataGo is asked by `kata-raw-nn 0 0`.
"""

import argparse
import random
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx

from tengen.data.records.records import load_records
from tengen.games.core import Game, PositionInfo
from tengen.match.engines.engine import GtpClient, GtpEngine, Terms
from tengen.match.engines.process import Process
from tengen.nets import saving


class Seen(NamedTuple):
    """A position: the moves before it, and what a network sees."""

    actions: list[int]
    names: list[str]
    look: PositionInfo


def positions(game: Game, paths: list[Path], count: int) -> list[Seen]:
    """So many positions of the games, in the order of the games; a game ends before a move that the rules forbid."""
    step, look = jax.jit(game.step), jax.jit(game.look)
    start, found = jax.jit(game.init)(jax.random.key(0)), []
    records = [record for path in paths for record in load_records(path)]
    for record in records:
        if record.options["size"] != game.options.size or record.start is not None:
            continue
        state, played, names = start, [], []
        for action in [*record.actions, None]:
            here = jax.device_get(look(state))
            if here.over:
                break
            found.append(Seen(list(played), list(names), here))
            if action is None or not here.legal[action]:
                break
            names.append(game.action_name(state, action))
            played.append(int(action))
            state = step(state, np.int32(action))
    order = random.Random(0).sample(range(len(found)), len(found))
    order.sort(key=lambda place: not banned(found[place]))
    return [found[place] for place in sorted(order[:count])]


def banned(seen: Seen) -> bool:
    """Whether ko or superko forbids a move."""
    return bool(seen.look.observation.planes[..., 6].any())


def answers(words: list[str], points: int) -> tuple[np.ndarray, float]:
    """Chances of all moves, NaN for those that are illegal, and White's chance to win, in what KataGo says."""
    first = words.index("policy") + 1
    number = {name: float(words[words.index(name) + 1]) for name in ("policyPass", "whiteWin", "noResult")}
    policy = np.array([*map(float, words[first : first + points]), number["policyPass"]])
    return policy, number["whiteWin"] + number["noResult"] / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", type=Path, help="a network's folder or file")
    parser.add_argument("katago", help="the command that starts KataGo, with its network")
    parser.add_argument("files", nargs="+", type=Path, help="SGF files")
    parser.add_argument("--positions", type=int, default=1000)
    args = parser.parse_args()
    game = saving.read(args.net).make_game().exact
    graph, parameters = nnx.split(saving.load(args.net, game, dtype="float32"))
    evaluate: Any = jax.jit(lambda given, planes, scalars: nnx.merge(graph, given)(planes[None], scalars[None]))
    found = positions(game, args.files, args.positions)
    process = Process(shlex.split(args.katago))
    engine, client = GtpEngine(process, game, Terms(patience=600)), GtpClient(process)
    worst, before = {"policy": 0.0, "value": 0.0}, None
    for seen in found:
        if before is None or seen.names[: len(before)] != before:
            engine.begin()
            before = []
        for ply in range(len(before), len(seen.names)):
            engine.tell(ply % 2, seen.names[ply])
        before = seen.names
        theirs, white = answers(client.ask("kata-raw-nn 0 0", 600).split(), game.num_actions - 1)
        legal, observation = seen.look.legal, seen.look.observation
        if (np.isnan(theirs) == legal).any():
            raise SystemExit(f"legal moves differ after {' '.join(seen.names)}")
        said = jax.device_get(evaluate(parameters, observation.planes, observation.scalars))
        logits = np.where(legal, said.policy[0].astype(np.float64), -np.inf)
        ours = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        win, draw, loss = jax.nn.softmax(said.value[0])
        chance = (win if len(seen.names) % 2 else loss) + draw / 2
        off = {"policy": abs(ours - np.nan_to_num(theirs)).max(), "value": abs(float(chance) - white)}
        worst = {name: max(value, off[name]) for name, value in worst.items()}
    process.close("quit")
    lengths = [len(seen.names) for seen in found]
    passed = sum(game.num_actions - 1 in seen.actions for seen in found)
    print(f"{len(found):,} positions after {min(lengths)} to {max(lengths)} moves, {sum(map(banned, found))}", end=" ")
    print(f"with a ban, {passed} after a pass: largest difference {worst['policy']:.7f} in the policy,", end=" ")
    print(f"{worst['value']:.7f} in the value")


if __name__ == "__main__":
    main()
