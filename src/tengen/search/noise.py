"""Random numbers for the root of a search."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from tengen.games.core import RandomKey

TRIES = 5  # each is accepted with a probability above 0.95, so fewer than one draw in a million is not exact


def dirichlet(
    key: RandomKey, concentration: Float32[Array, "batch 1"], wanted: Bool[Array, "batch actions"]
) -> Float32[Array, "batch actions"]:
    """A Dirichlet draw for each row over the entries `wanted`, 0 elsewhere.

    Marsaglia and Tsang's method with a fixed number of tries: `jax.random.gamma` loops until the last of all entries
    is accepted, which takes longer on a GPU than the simulations it is for.
    """
    normal, uniform, last = jax.random.split(key, 3)
    shape = (TRIES, *wanted.shape)
    d = concentration + 1 - 1 / 3
    x = jax.random.normal(normal, shape)
    v = (1 + x / jnp.sqrt(9 * d)) ** 3
    safe = jnp.where(v > 0, v, 1)
    accepted = (v > 0) & (jnp.log(jax.random.uniform(uniform, shape)) < 0.5 * x**2 + d - d * safe + d * jnp.log(safe))
    accepted = accepted.at[-1].set(True)
    first = jnp.argmax(accepted, 0)
    drawn = jnp.take_along_axis(safe, first[None], 0)[0]
    # A power of a uniform number turns a draw for a + 1 into one for a; in logarithms, because those powers underflow.
    power = jnp.log(jax.random.uniform(last, wanted.shape, minval=jnp.finfo(jnp.float32).tiny)) / concentration
    logs = jnp.where(wanted, jnp.log(d * drawn) + power, -jnp.inf)
    highest = jnp.max(logs, 1, keepdims=True, initial=jnp.finfo(jnp.float32).min)
    weights = jnp.exp(logs - highest)
    return weights / jnp.maximum(weights.sum(1, keepdims=True), jnp.finfo(jnp.float32).tiny)
