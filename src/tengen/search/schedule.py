"""Sequential halving: which of the root's moves is due, for any budget, without a table."""

import math

import jax.numpy as jnp
from jax import Array


def wanted_visits(considered: Array, most: int, budget: Array, done: Array) -> Array:
    """Int32: the visits that the next move must have had so far in this search.

    `considered` moves (at most the fixed `most`) start; each phase gives the survivors equally many visits and then
    keeps the better half, until two are left. The budget is shared evenly between the phases.
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
