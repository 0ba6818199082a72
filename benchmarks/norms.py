"""The passes of batch normalisation in training on a GPU: time and bandwidth of each, for several shapes of blocks.

    python benchmarks/norms.py --batch 1024 4096

Every line is one `norms_gpu.PassShape` (bytes per read, threads, rows read at once, blocks, blocks per multiprocessor)
for all passes; the numbers are us per call, and TB/s counting each array once. The norm follows an addition, and the
sum has another use, as at the beginning of a residual block.
"""

import argparse
from typing import Any

import jax
import jax.numpy as jnp

from tengen.bench.timing import kernel_times
from tengen.nets import norms_gpu
from tengen.nets.norms import EPSILON
from tengen.nets.norms_gpu import NormPlan, PassShape

# Arrays that each pass reads or writes.
ARRAYS = {"norm_moments": 3, "norm_apply": 2, "norm_sums": 2, "norm_gradient": 4}
SMALL = ("norm_finish", "norm_slopes")
TRIED = [
    *(PassShape(16, threads, repeats, 132 * together, together) for threads, together in ((512, 1), (512, 2), (256, 3))
      for repeats in (1, 2, 4)),
    *(PassShape(8, threads, repeats, 132 * together, together) for threads, together in ((768, 2), (512, 3), (256, 5))
      for repeats in (1, 2, 4)),
    *(PassShape(8, 256, repeats, 10**6, 5) for repeats in (1, 2, 4)),
    *(PassShape(16, 256, repeats, 10**6, 3) for repeats in (1, 2, 4)),
    PassShape(16, 128, 1, 10**6, 6),
    PassShape(4, 768, 4, 264, 2),
    PassShape(4, 256, 4, 132 * 8, 8),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, nargs="+", default=[1024, 4096], help="boards of 9x9 (1024 4096)")
    parser.add_argument("--channels", type=int, default=96, help="channels (96)")
    parser.add_argument("--activation", default="relu", help="relu, mish or silu (relu)")
    args = parser.parse_args()
    for batch in args.batch:
        shape = (batch, 9, 9, args.channels)
        print(f"batch {batch}, {args.channels} channels; us and TB/s", flush=True)
        for tried in [None, *TRIED]:
            found = measure(shape, tried, args.activation)
            bytes_ = 2 * batch * 81 * args.channels
            words = [
                f"{name.removeprefix('norm_')} {found[name]:6.1f} {ARRAYS[name] * bytes_ / found[name] / 1e6:4.2f}"
                for name in ARRAYS
            ]
            words += [f"{name.removeprefix('norm_')} {found[name]:5.1f}" for name in SMALL]
            print(f"  {'as it is' if tried is None else str(tuple(tried)):26} {'  '.join(words)}", flush=True)


def measure(shape: tuple[int, ...], tried: PassShape | None, activation: Any) -> dict[str, float]:
    """The mean time of each pass in us."""
    kept = dict(norms_gpu.SHAPES)
    if tried is not None:
        norms_gpu.SHAPES.update(dict.fromkeys(kept, tried))
    x, added, other = (jax.random.normal(jax.random.key(n), shape, jnp.bfloat16) for n in range(3))
    scale, shift = jnp.ones(shape[-1]), jnp.zeros(shape[-1])

    @jax.jit
    def both(x: Any, added: Any, other: Any) -> Any:
        plan = NormPlan(activation, EPSILON, forks=True)

        def normalize(x: Any, added: Any, scale: Any, shift: Any) -> Any:
            return norms_gpu.normalize(x, added, scale, shift, None, plan)

        found, back = jax.vjp(normalize, x, added, scale, shift)
        return found, back(found._replace(total=other, out=added))

    try:
        jax.block_until_ready(both(x, added, other))
        times = kernel_times(lambda: [both(x, added, other) for _ in range(10)])
    finally:
        norms_gpu.SHAPES.update(kept)
    return {name: sum(times[name]) / len(times[name]) for name in (*ARRAYS, *SMALL)}


if __name__ == "__main__":
    main()
