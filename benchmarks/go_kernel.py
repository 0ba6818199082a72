"""Go's GPU program against the plain version: the same results on random games, and the time of both.

    python benchmarks/go_kernel.py

Needs an NVIDIA GPU. Prints, for each setting, how many numbers differed (0 is right) and microseconds per step of the
whole batch, `tree nodes` being states without the list of all positions, as a search keeps them.
"""

import sys

import jax

from tengen.bench import games


def main() -> int:
    if jax.default_backend() != "gpu":
        print("this benchmark needs an NVIDIA GPU; JAX found only", jax.devices()[0].device_kind)
        return 1
    wrong = 0
    for found in games.go_programs(repeats=7):
        plain, program, nodes = map(found.microseconds, (found.plain, found.program, found.nodes))
        wrong += found.differ
        print(
            f"go {found.size}x{found.size} batch {found.batch} {found.setting}: {found.differ} differ; plain "
            f"{plain:.1f} us, GPU program {program:.1f} us ({plain / program:.1f}x), tree nodes {nodes:.1f} us",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
