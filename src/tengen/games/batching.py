"""Functions of a batch that `vmap` calls once, with a larger batch."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_batching import custom_vmap


def joined(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under `vmap`: arrays [N, ...] from M calls become one call with arrays [M * N, ...].

    So the calls may share work, or be one GPU program. All arguments and results are arrays with the batch in front.
    """
    calls = custom_vmap(function)

    @calls.def_vmap
    def _(size: int, batched: list[bool], *given: Array) -> tuple[Any, Any]:
        wide = [x if b else jnp.broadcast_to(x, (size, *x.shape)) for x, b in zip(given, batched, strict=True)]
        found = calls(*(x.reshape(-1, *x.shape[2:]) for x in wide))
        split = jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), found)
        return split, jax.tree.map(lambda _: True, split)

    return calls
