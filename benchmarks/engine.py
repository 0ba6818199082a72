"""An engine that thinks about one game, against the bare network at its best batch.

    python benchmarks/engine.py                        # untrained b6c96 on 9x9 Go
    python benchmarks/engine.py --visits 4000 --leaves 8

The bare network is measured over batches of 1 to 64 positions, then in turn with the engine at the batch that was
best, so that both see the same machine. Positions per second of the engine are those that its network has evaluated.
"""

import argparse
import statistics

import jax

from tengen.bench.engine import BATCHES, bare, make, rounds
from tengen.config.settings.match import EngineSettings
from tengen.engine.engine import precision


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--net", default="b6c96")
    parser.add_argument("--size", type=int, default=9)
    parser.add_argument("--visits", type=int, default=2000)
    parser.add_argument("--leaves", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--largest-batch", type=int, default=64)
    args = parser.parse_args()
    settings = EngineSettings(visits=args.visits, leaves=args.leaves)
    engine = make(args.net, args.size, settings)
    print(f"{jax.default_backend()}, {precision(settings)}, go {args.size}x{args.size} {args.net}")
    rates = {batch: bare(engine, batch, 1.0) for batch in BATCHES if batch <= args.largest_batch}
    print("bare network by batch: " + ", ".join(f"{batch}: {rate:,.0f}/s" for batch, rate in rates.items()))
    best = max(rates, key=rates.__getitem__)
    shares = []
    for found in rounds(engine, args.visits, best, args.rounds):
        shares.append(found.share)
        print(
            f"bare at {best}: {found.before:,.0f} and {found.after:,.0f}/s; {engine.leaves} leaves at once: "
            f"{found.engine:,.0f}/s ({found.visits} visits in {found.seconds:.1f} s), share {found.share:.3f}",
            flush=True,
        )
    print(f"median share {statistics.median(shares):.3f}")


if __name__ == "__main__":
    main()
