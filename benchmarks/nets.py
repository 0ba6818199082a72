"""The bare network: positions per second on the present device, and how much arithmetic that is.

    python benchmarks/nets.py b6c96 --size 9 --batch 4096
    python benchmarks/nets.py b10c128 --size 19 --batch 512
    python benchmarks/nets.py b10c128 --game chess --batch 1024

Many looks run inside one compiled loop, as in a search; each depends on the one before, so that none can be left out
or moved out of the loop. Prints the median over the repeats. Networks are folded, as self-play uses them.
"""

import argparse
import sys
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from tengen import games, nets
from tengen.bench.timing import median_seconds
from tengen.errors import TengenError


def main() -> int:
    args = _arguments()
    try:
        options = {} if args.size is None else {"size": args.size}
        game = games.make(args.game, **options)
        spec = nets.spec(args.name, args.heads)
        net = nets.build(spec, game, nnx.Rngs(0), dtype=args.dtype, full_board=not args.masked)
    except TengenError as error:
        print(error, file=sys.stderr)
        return 2
    operations = nets.operations(spec, game)
    height, width, _ = game.planes_shape
    print(
        f"{args.name} on {game.name} {height}x{width}, {jax.devices()[0].device_kind}, {args.dtype}: "
        f"{nets.parameter_count(net):,} parameters, {operations / 1e6:,.1f} million operations per position",
        flush=True,
    )
    chosen = net if args.unfolded else nets.fold(net, kernels=not args.xla)
    for batch in args.batch:
        seconds = measure(chosen, game, batch, args.steps, args.repeats)
        print(
            f"  batch {batch}: {seconds * 1e6:,.1f} us, {batch / seconds:,.0f} positions/s, "
            f"{operations * batch / seconds / 1e12:,.2f} TFLOP/s",
            flush=True,
        )
    return 0


def measure(net: nets.Network, game: games.Game, batch: int, steps: int, repeats: int) -> float:
    """Seconds for one look at a batch of random positions."""
    graph, state = nnx.split(net)
    key = jax.random.key(0)
    planes = jax.random.bernoulli(key, 0.3, (batch, *game.planes_shape)).at[..., :1].set(True)
    scalars = jax.random.uniform(key, (batch, game.num_scalars))

    @jax.jit
    def loop(state: Any, planes: Array) -> Any:
        def look(_: Any, carry: tuple[Array, nets.Outputs]) -> tuple[Array, nets.Outputs]:
            planes, outputs = carry
            # Never true, but the compiler cannot know: the next look must wait for this one.
            odd = outputs.value[:, :1, None, None] + outputs.policy[:, :1, None, None] > 1e30
            planes = planes ^ odd
            return planes, nnx.merge(graph, state)(planes, scalars + odd[:, 0, 0])

        outputs = jax.eval_shape(nnx.merge(graph, state), planes, scalars)
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), outputs)
        return jax.lax.fori_loop(0, steps, look, (planes, nothing))

    return median_seconds(loop, state, planes, repeats=repeats) / steps


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Positions per second of a bare network.")
    parser.add_argument("name", nargs="?", default="b6c96", help="a network that `tengen nets` knows (b6c96)")
    parser.add_argument("--game", default="go", help="whose positions (go)")
    parser.add_argument("--size", type=int, default=None, help="size of the board, for games that have one")
    parser.add_argument("--batch", type=int, nargs="+", default=[4096], help="positions at once (4096)")
    parser.add_argument("--dtype", default="bfloat16", help="bfloat16 or float32")
    parser.add_argument("--heads", nargs="*", default=[], help="extra heads")
    parser.add_argument("--unfolded", action="store_true", help="with norms, as while training")
    parser.add_argument("--masked", action="store_true", help="as if boards of several sizes shared the batch")
    parser.add_argument("--xla", action="store_true", help="without GPU programs of our own")
    parser.add_argument("--steps", type=int, default=20, help="looks in one compiled loop (20)")
    parser.add_argument("--repeats", type=int, default=5, help="runs of the loop; the median counts (5)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
