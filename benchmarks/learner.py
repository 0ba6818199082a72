"""The learner: samples per second on the present devices, and how much of their arithmetic that is.

    python benchmarks/learner.py b6c96 --size 9 --batch 1024 2048
    python benchmarks/learner.py b10c128 --size 19 --batch 1024 --peak 790

All steps of a measurement run in one compiled loop, see `tengen.bench.learner`. Prints the median over the repeats.
`--peak` is what the device can do, in TFLOP/s.
"""

import argparse
import sys
import time
from dataclasses import replace

import jax
from flax import nnx

from tengen import games, nets, train
from tengen.bench.learner import learning
from tengen.bench.timing import median_seconds
from tengen.errors import TengenError


def main() -> int:
    args = _arguments()
    try:
        game = games.make(args.game, **({} if args.size is None else {"size": args.size}))
        heads = nets.possible_heads(game) if args.heads is None else tuple(args.heads)
        net = nets.build(nets.spec(args.name, heads), game, nnx.Rngs(0), dtype=args.dtype, full_board=not args.masked)
        operations = 3 * nets.operations(net, game)
        devices = jax.local_devices()
        print(
            f"{args.name} on {game.name} {game.planes_shape[0]}x{game.planes_shape[1]}, {len(devices)} x "
            f"{devices[0].device_kind}, {args.dtype}, {args.optimizer}, heads: {', '.join(heads) or 'none'}; "
            f"{operations / 1e6:,.1f} million operations per sample",
            flush=True,
        )
        for batch in args.batch:
            compiling, seconds = measure(net, game, batch, args)
            achieved = operations * batch / seconds / 1e12
            share = f", {achieved / (args.peak * len(devices)):.1%} of peak" if args.peak else ""
            print(
                f"  batch {batch}: {seconds * 1e6:,.0f} us, {batch / seconds:,.0f} samples/s, "
                f"{achieved:,.1f} TFLOP/s{share} (first call {compiling:.1f} s)",
                flush=True,
            )
    except TengenError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def measure(net: nets.Network, game: games.Game, batch: int, args: argparse.Namespace) -> tuple[float, float]:
    """Seconds of the first call, and of one step."""
    settings = train.TrainSettings(batch=batch, symmetries=not args.no_symmetries)
    settings = replace(settings, optimizer=replace(settings.optimizer, kind=args.optimizer))
    steps = learning(net, game, settings, args.rows, args.steps)
    begin = time.perf_counter()
    jax.block_until_ready(steps())
    compiling = time.perf_counter() - begin
    return compiling, median_seconds(steps, repeats=args.repeats) / args.steps


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Samples per second of the learner.")
    parser.add_argument("name", nargs="?", default="b6c96", help="a network that `tengen nets` knows (b6c96)")
    parser.add_argument("--game", default="go", help="whose rows (go)")
    parser.add_argument("--size", type=int, default=None, help="size of the board, for games that have one")
    parser.add_argument("--batch", type=int, nargs="+", default=[1024, 2048], help="rows in a step (1024 2048)")
    parser.add_argument("--rows", type=int, default=100_000, help="rows in the ring (100000)")
    parser.add_argument("--dtype", default="bfloat16", help="bfloat16 or float32")
    parser.add_argument("--heads", nargs="*", default=None, help="extra heads (all that the game can teach)")
    parser.add_argument("--optimizer", default="adamw", help="sgd, adamw or muon (adamw)")
    parser.add_argument("--masked", action="store_true", help="as if boards of several sizes shared the batch")
    parser.add_argument("--no-symmetries", action="store_true", help="show rows as they are")
    parser.add_argument("--peak", type=float, default=None, help="TFLOP/s that one device can do (H200, bf16: 790)")
    parser.add_argument("--steps", type=int, default=100, help="steps in one compiled loop (100)")
    parser.add_argument("--repeats", type=int, default=5, help="runs of the loop; the median counts (5)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
