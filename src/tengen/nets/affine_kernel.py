"""Scale, shift and activation of every channel, as a GPU program (Pallas, Triton). See docs/performance.md.

XLA's own version of this pass reaches two thirds of the memory's speed. It stays beside the call: for other devices,
and as what the tests compare with.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from tengen.nets.layers import activate
from tengen.nets.spec import Activation

MOST_NUMBERS = 2**31  # what a program counts to
_SEGMENT = 32  # channels that one row of a tile holds: 64 bytes in a row are read at full speed
_ROWS = 64  # such rows in one program


def suits(x: Array) -> bool:
    """Whether `run` takes an array of that shape."""
    return x.shape[-1] % _SEGMENT == 0 and x.size < MOST_NUMBERS


def run(x: Array, scale: Array, shift: Array, *, activation: Activation, interpret: bool) -> Array:
    """activation(x * scale + shift) of [..., C], in the type of `x`; `scale` and `shift` are Float32[C]."""
    rows = x.size // _SEGMENT
    kernel = partial(_affine, rows=rows, segments=x.shape[-1] // _SEGMENT, activation=activation)
    call = pl.pallas_call(
        kernel,
        grid=(-(-rows // _ROWS),),
        out_shape=jax.ShapeDtypeStruct((x.size,), x.dtype),
        interpret=interpret,
        compiler_params=plgpu.CompilerParams(num_warps=4),
        name="affine",
    )
    return call(x.reshape(-1), scale, shift).reshape(x.shape)


def backwards() -> Array:
    """The number of this program, counted from the last one.

    Programs begin in order, and so do those of the convolution before, whose last outputs are still in the cache.
    """
    return pl.num_programs(0) - 1 - pl.program_id(0)


def _affine(x: Any, scale: Any, shift: Any, out: Any, *, rows: int, segments: int, activation: Activation) -> None:
    row = backwards() * _ROWS + jnp.arange(_ROWS)[:, None]
    lane = jnp.arange(_SEGMENT)[None]
    at, channel, mask = (
        row * _SEGMENT + lane,
        row % segments * _SEGMENT + lane,
        jnp.broadcast_to(row < rows, (_ROWS, _SEGMENT)),
    )
    wide = plgpu.load(x.at[at], mask=mask, other=0).astype(jnp.float32)
    wide = wide * plgpu.load(scale.at[channel]) + plgpu.load(shift.at[channel])
    plgpu.store(out.at[at], activate(wide, activation).astype(out.dtype), mask=mask)
