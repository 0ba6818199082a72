"""Evaluations per second through `GameContext` with a callback that does next to nothing, next to a plain loop.

    python benchmarks/context.py --game connect_four --games 512 --batch 256 --simulations 32
    python benchmarks/context.py --callback-ms 5          # as if a network took so long on a device of its own

The plain loop is the same games in one group, without a thread: positions out, callback, answers in. What a batch
costs besides the callback is the overhead.
"""

import argparse
import itertools
import time
from typing import Any

import jax
import numpy as np

from tengen import games
from tengen.config.settings.search import SearchSettings
from tengen.context import GameContext, batches
from tengen.context.batches import Batch
from tengen.context.group import Group
from tengen.context.program import ContextPlan, program
from tengen.context.settings import ContextSettings
from tengen.context.thinking import RawPolicy, TreeSearch


class Callback:
    """Uniform policies and draws, after a pause."""

    def __init__(self, milliseconds: float) -> None:
        self.pause = milliseconds / 1000

    def __call__(self, batch: Batch) -> dict[str, np.ndarray]:
        if self.pause:
            time.sleep(self.pause)
        return {"policy": np.zeros(batch["legal"].shape, np.float32), "value": np.zeros(len(batch["mask"]), np.float32)}


def in_context(game: Any, args: argparse.Namespace, settings: SearchSettings | None, functions: int) -> str:
    """One or two functions for the colours."""
    callbacks = [Callback(args.callback_ms) for _ in range(functions)]
    context = GameContext(game, args.games, args.batch, settings, temperature=1.0)
    context.on("actor_black", callbacks[0])
    context.on("actor_white", callbacks[-1])
    with context:
        for _ in range(50):
            context.run()
        before, began = context.stats(), time.perf_counter()
        while time.perf_counter() < began + args.seconds:
            context.run()
        seconds, now = time.perf_counter() - began, context.stats()
    count, evaluations = now.batches - before.batches, now.evaluations - before.evaluations
    return line(seconds, count, evaluations, args, now.games_finished)


def plainly(game: Any, args: argparse.Namespace, settings: SearchSettings | None) -> str:
    """One group, no thread."""
    thinking = RawPolicy(game) if settings is None else TreeSearch(game, settings, True)
    numbers = itertools.count()
    options = ContextSettings(num_games=args.batch, batch_size=args.batch, temperature=1.0)
    group = Group(program(ContextPlan(thinking, args.batch, 0, None)), lambda: next(numbers), options)
    group.start(jax.random.key(0), args.batch)
    batch, callback = batches.for_actor("actor_black", game, args.batch), Callback(args.callback_ms)
    count = evaluations = 0
    began = time.perf_counter()
    for turn in itertools.count():
        if turn == 50:
            began, count, evaluations = time.perf_counter(), 0, 0
        rows = group.wanted
        if len(rows):
            group.show(rows, batch, 0)
            batches.pad(batch, len(rows))
            reply = callback(batch)
            group.hear(rows, reply, 0)
            count, evaluations = count + 1, evaluations + len(rows)
        group.turn()
        if turn > 50 and time.perf_counter() > began + args.seconds:
            break
    return line(time.perf_counter() - began, count, evaluations, args, 0)


def line(seconds: float, count: int, evaluations: int, args: argparse.Namespace, finished: int) -> str:
    """What was measured."""
    more = 1e6 * seconds / count - 1000 * args.callback_ms
    fill = evaluations / count / args.batch
    over = f", {finished} games" if finished else ""
    return (
        f"{evaluations / seconds:>9,.0f} evaluations/s, {count / seconds:>7,.1f} batches/s, {fill:.0%} full, "
        f"{more:>6,.0f} us a batch besides the callback{over}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--size", type=int, help="of the board, for games that have one")
    parser.add_argument("--games", type=int, default=512)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--simulations", type=int, default=32, help="0: the policy alone")
    parser.add_argument("--callback-ms", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    args = parser.parse_args()
    game = games.make(args.game, **({} if args.size is None else {"size": args.size}))
    settings = SearchSettings(simulations=args.simulations) if args.simulations > 1 else None
    print(f"{args.game}, {args.games} games, batches of {args.batch}, {args.simulations} simulations, callback "
          f"{args.callback_ms:g} ms, on {jax.devices()[0].device_kind}")  # fmt: skip
    print("plain loop, one group     ", plainly(game, args, settings), flush=True)
    print("context, one function     ", in_context(game, args, settings, 1), flush=True)
    print("context, one for each side", in_context(game, args, settings, 2), flush=True)


if __name__ == "__main__":
    main()
