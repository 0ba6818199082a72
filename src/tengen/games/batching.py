"""Batches of games: choosing among them, functions that `vmap` calls once, and programs that compile quickly."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_batching import custom_vmap


def choose(which: Array, new: Array | float, old: Array) -> Array:
    """[B, ...]: the rows of `new` where `which`, Bool[B], is set, otherwise those of `old`."""
    return jnp.where(which.reshape(-1, *[1] * (old.ndim - 1)), new, old)


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


@cache
def quick_options() -> dict[str, Any]:
    """Compiler options that make compilation many times faster, as far as this version has them."""
    options = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda x: x + 1, compiler_options=options)(0)
    except (RuntimeError, ValueError):
        return {}
    return options


def quick_jit(function: Callable[..., Any]) -> Any:
    """`jax.jit` for programs of which compiling takes longer than running: tests, and rules for one position."""
    return jax.jit(function, compiler_options=quick_options())
