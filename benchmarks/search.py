"""Search against the bare network: evaluations per second in search, as a share of the network's own.

    python benchmarks/search.py              # everything (an NVIDIA GPU), pgx + mctx measured in the same run
    python benchmarks/search.py --small      # a small batch and network, for two CPU cores
    python benchmarks/search.py --chess      # chess instead of Go, next to pgx's

Every line measures the bare network and the search in turn, see `tengen.bench.search`. `depth` is the mean depth of the
nodes of the final trees. Sharp priors (logits times 30 or 300) make trees deep.
"""

import argparse

import jax

from tengen.bench import search
from tengen.bench.search import SearchLine, SearchTimes


def report(found: SearchTimes) -> None:
    line, share = found.line, found.bare.share_of(found.search)[0]
    print(
        f"{line.name}: bare {found.rate(found.bare):,.0f}/s ({found.bare.median / line.evaluations * 1e6:.0f} us), "
        f"search {found.rate(found.search):,.0f}/s ({found.search.median / line.evaluations * 1e6:.0f} us), "
        f"share {share:.3f}, depth {found.depth:.1f}, first call {found.compiling:.1f} s",
        flush=True,
    )
    if found.peer is not None and found.peer_bare is not None:
        print(
            f"  pgx + mctx: bare {found.rate(found.peer_bare):,.0f}/s, search {found.rate(found.peer):,.0f}/s, "
            f"share {found.peer_bare.share_of(found.peer)[0]:.3f}; "
            f"Tengen is {found.peer.share_of(found.search)[0]:.2f} times as fast",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="for a CPU")
    parser.add_argument("--chess", action="store_true", help="chess instead of Go")
    parser.add_argument("--mctx", action="store_true", help="only the lines that pgx + mctx are measured for")
    parser.add_argument("--observation", default="tengen", help="of Go: tengen (the default) or katago")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}")
    peer: tuple[SearchLine, ...] = search.PEER_CHESS if args.chess else search.PEER_SMALL if args.small else search.PEER
    usual = search.CHESS if args.chess else search.SMALL if args.small else search.GPU
    lines = () if args.mctx else usual
    if args.observation != "tengen":
        lines, peer = tuple(line._replace(observation=args.observation) for line in usual if line.size), ()
    for line in lines:
        report(search.measure(line, args.repeats))
    for line in peer:
        report(search.measure(line, args.repeats, peer=True))


if __name__ == "__main__":
    main()
