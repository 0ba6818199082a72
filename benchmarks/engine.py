"""An engine that thinks about one game, against the bare network at its best batch.

    python benchmarks/engine.py                        # untrained b6c96 on 9x9 Go
    python benchmarks/engine.py --visits 4000 --leaves 8

The bare network is measured over batches of 1 to 64 positions, then in turn with the engine at the batch that was
best, so that both see the same machine. Positions per second of the engine are those that its network has evaluated.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from tengen import games, nets
from tengen.config.settings.engine import EngineSettings
from tengen.engine import device
from tengen.engine.engine import Engine
from tengen.nets import saving
from tengen.run.networks import find

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def bare(engine: Engine, batch: int, seconds: float) -> float:
    """Positions per second of the network alone, one batch after the other."""
    observation = jax.jit(engine.game.observe)(engine.state)
    many = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), observation)
    evaluate = jax.jit(engine.evaluate)
    jax.block_until_ready(evaluate(engine.params, many))
    begin, count = time.perf_counter(), 0
    while (took := time.perf_counter() - begin) < seconds:
        jax.block_until_ready(evaluate(engine.params, many))
        count += batch
    return count / took


def searched(engine: Engine, visits: int) -> tuple[float, Any]:
    """Positions per second of a search from an empty tree."""
    engine.reset()
    thought = engine.think(visits=visits)
    return thought.evaluations / thought.seconds, thought


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--net", default="b6c96")
    parser.add_argument("--size", type=int, default=9)
    parser.add_argument("--visits", type=int, default=2000)
    parser.add_argument("--leaves", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--largest-batch", type=int, default=64)
    args = parser.parse_args()
    game = games.make("go", size=args.size)
    with tempfile.TemporaryDirectory() as folder:
        spec = nets.spec(args.net, ("ownership", "score"))
        saving.save(nets.build(spec, game, nnx.Rngs(0)), Path(folder) / "net", game)
        settings = EngineSettings(visits=args.visits, leaves=args.leaves)
        engine = Engine(find(Path(folder) / "net"), settings=settings)
    engine.think(visits=200)
    print(f"{jax.default_backend()}, {device.precision(settings)}, go {args.size}x{args.size} {args.net}")
    rates = {batch: bare(engine, batch, 1.0) for batch in BATCHES if batch <= args.largest_batch}
    print("bare network by batch: " + ", ".join(f"{batch}: {rate:,.0f}/s" for batch, rate in rates.items()))
    best = max(rates, key=rates.__getitem__)
    shares = []
    for _ in range(args.rounds):
        first = bare(engine, best, 2.0)
        rate, thought = searched(engine, args.visits)
        second = bare(engine, best, 2.0)
        shares.append(rate / ((first + second) / 2))
        print(
            f"bare at {best}: {first:,.0f} and {second:,.0f}/s; {engine.leaves} leaves at once: {rate:,.0f}/s"
            f" ({thought.visits} visits in {thought.seconds:.1f} s), share {shares[-1]:.3f}",
            flush=True,
        )
    print(f"median share {statistics.median(shares):.3f}")


if __name__ == "__main__":
    main()
