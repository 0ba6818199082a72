"""Sequential halving: which of the root's moves comes next, for any budget, without a table."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Int, Int32


def wanted_visits(
    considered: Int[Array, "*#moves"], most: int, budget: Int[Array, "*#moves"], done: Int[Array, "*#moves"]
) -> Int32[Array, "*#moves"]:
    """The visits that the next move must have had so far in this search.

    `considered` moves (at most the fixed `most`) start; each phase gives the survivors equally many visits and then
    keeps the better half, until two are left. The phases share the budget evenly.
    """
    # The logarithm by comparison: rounded up, floating point would be wrong for powers of two on some devices.
    bits = range(max(1, math.ceil(math.log2(max(most, 2)))))
    phases = jnp.maximum(sum((considered > 2**bit).astype(jnp.int32) for bit in bits), 1)
    nothing = jnp.zeros_like(done)
    survivors, start, given, wanted = considered, nothing, nothing, nothing
    found = done < 0
    for _ in bits:
        rounds = jnp.maximum(budget // (phases * survivors), 1)
        length = rounds * survivors
        here = ~found & ((done < start + length) | (survivors <= 2))
        wanted = jnp.where(here, given + (done - start) // jnp.maximum(survivors, 1), wanted)
        found |= here
        start, given, survivors = start + length, given + rounds, jnp.maximum(survivors // 2, 2)
    wanted = jnp.where(found, wanted, given + (done - start) // 2)
    return jnp.where(considered <= 1, done, wanted).astype(jnp.int32)
