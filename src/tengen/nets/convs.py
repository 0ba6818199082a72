"""Learning in residual towers with GPU programs (`convs.cu`), for Hopper GPUs.

A program convolves, and does what XLA would do in passes between two convolutions: the norm and the activation before
it, the residual stream and the sums for the next norm after it, and the gradients of all of that. The plain layers
serve other devices and other towers, and tests compare with them.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32

from tengen import gpu
from tengen.gpu.program import defines
from tengen.nets.blocks import AnyBlock, BlockChain, BlockStep, PoolChain, Residual
from tengen.nets.board import BoardMask, Trunk
from tengen.nets.gpu import ACTIVATIONS
from tengen.nets.heads import Heads
from tengen.nets.layers import activate, convolve
from tengen.nets.norms import Norm
from tengen.nets.plans import CHANNELS, packed, plan
from tengen.nets.specs import Activation

_MOST_BLOCKS = 132  # of threads: the multiprocessors of a Hopper GPU
_CHUNK = 6  # units of 16 bytes that a thread loads ahead
_EAGER = True  # whether it loads the first of the next boards before it has done with these
Sums = Float32[Array, "2 channels"]  # over all points of all boards: of the numbers, and of their squares


class Stream(NamedTuple):
    """Activations, and their mean and variance over all points of all boards."""

    x: Trunk
    mean: Float32[Array, " channels"]
    variance: Float32[Array, " channels"]


def supports(x: Trunk, blocks: list[AnyBlock]) -> bool:
    """Whether the programs support some convolutions of these blocks, on full boards of that size."""
    _, height, width, channels = x.shape
    fits = channels in CHANNELS and plan(height, width, channels, tower=False) is not None
    return fits and x.dtype == jnp.bfloat16 and any(_suits(block, channels) for block in blocks)


def learn(x: Trunk, blocks: list[AnyBlock], heads: Heads, board: BoardMask) -> Array:
    """From the first convolution's output to that of the neck, in training."""
    stream = Stream(x, *board.moments(x))
    for block in blocks:
        stream = _block(stream, block, board)
    if not isinstance(heads.tip, Norm):
        return heads.from_trunk(stream.x, board, train=True)
    scale, shift = heads.tip.affine(heads.tip.learn((stream.mean, stream.variance)))
    return heads.neck.unbiased(activate(stream.x.astype(jnp.float32) * scale + shift, heads.activation).astype(x.dtype))


def _block(stream: Stream, block: AnyBlock, board: BoardMask) -> Stream:
    branch = block.branch if isinstance(block, Residual) and _suits(block, stream.x.shape[3]) else None
    if isinstance(branch, BlockChain):
        inner, x = _step(stream, branch.steps[0], again=True)
        return _step(inner, branch.steps[1], added=x)[0]
    if isinstance(branch, PoolChain):
        inner, x = _step(stream, branch.first, again=True)
        biased, _ = branch.pool(inner.x, branch.first.conv, board, train=True)
        x = x + branch.second(biased)
    else:
        x = block(stream.x, board, train=True)
    return Stream(x, *board.moments(x))


def _suits(block: AnyBlock, channels: int) -> bool:
    if not isinstance(block, Residual) or block.excite is not None:
        return False
    branch = block.branch
    steps = [branch.first] if isinstance(branch, PoolChain) else branch.steps if isinstance(branch, BlockChain) else []
    convs = [step.conv for step in steps if step.conv.kernel.shape == (3, 3, channels, channels)]
    usual = all(conv.groups == 1 and conv.bias is None for conv in convs)
    return len(convs) == len(steps) == (1 if isinstance(branch, PoolChain) else 2) and usual


def _step(stream: Stream, step: BlockStep, added: Array | None = None, again: bool = False) -> tuple[Stream, Any]:
    """A step of a block on a stream; also the stream's numbers, for the sum at the end of the block."""
    assert isinstance(step.norm, Norm)
    scale, shift = step.norm.affine(step.norm.learn((stream.mean, stream.variance)))
    y, sums, x = convolved(stream.x, scale, shift, step.conv.kernel[...], added, step.activation, again)
    mean, square = sums / (y.size // y.shape[3])
    return Stream(y, mean, jnp.maximum(square - jnp.square(mean), 0)), x


@partial(jax.custom_vjp, nondiff_argnums=(5, 6))
def convolved(
    x: Trunk,
    scale: Float32[Array, " channels"],
    shift: Float32[Array, " channels"],
    kernel: Float32[Array, "3 3 channels channels"],
    added: Trunk | None,
    activation: Activation,
    again: bool,
) -> tuple[Trunk, Sums, Trunk | None]:
    """The convolution of activate(x * scale + shift), plus `added`, and its sums; also `x` again if wanted.

    What uses `x` besides must use that, so that the program for the gradient can add the other's gradient.
    """
    return _forward(x, scale, shift, kernel, added, activation, again)[0]


def _forward(
    x: Array, scale: Array, shift: Array, kernel: Array, added: Array | None, activation: Activation, again: bool
) -> tuple[tuple[Array, Array, Array | None], Any]:
    numbers = jnp.stack([scale, shift])
    a, y, sums = _call("forward", [x], added, kernel, numbers, activation)
    return (y, sums, x if again else None), (x, y, a, numbers, kernel, None if added is None else ())


def _backward(
    activation: Activation, again: bool, kept: Any, changes: tuple[Array, Array, Array | None]
) -> tuple[Array | None, ...]:
    x, y, a, numbers, kernel, added = kept
    change, change_of_sums, other = changes
    numbers = jnp.concatenate([numbers, 2 * change_of_sums[1:], change_of_sums[:1]])
    turned = kernel[::-1, ::-1].swapaxes(2, 3)
    g, dx, sums = _call("backward", [x, y, change], other, turned, numbers, activation)
    _, of_kernel = jax.vjp(partial(convolve, a), kernel.astype(x.dtype))
    return dx, sums[1], sums[0], of_kernel(g)[0].astype(kernel.dtype), None if added is None else g


convolved.defvjp(_forward, _backward)


def _call(
    entry: str, arrays: list[Array], added: Array | None, kernel: Array, numbers: Array, activation: Activation
) -> tuple[Array, Array, Array]:
    like = jax.ShapeDtypeStruct(arrays[0].shape, arrays[0].dtype)
    batch, height, width, channels = like.shape
    how = plan(height, width, channels, tower=False)
    assert how is not None
    blocks = min(-(-batch // how.boards), _MOST_BLOCKS)
    program = gpu.Program(
        "nets/convs.cu",
        entry,
        threads=how.threads,
        defines=defines(
            HEIGHT=height,
            WIDTH=width,
            CHANNELS=channels,
            ACTIVATION=ACTIVATIONS[activation],
            BACKWARD=entry == "backward",
            ADDED=added is not None,
            BATCH=batch,
            PARTS=blocks,
            CHUNK=_CHUNK,
            EAGER=_EAGER and how.teams == 2,
        )
        + how.defines(),
        header="nets/hopper.cuh",
        shared=how.shared,
        hopper=True,
        persistent=True,
    )
    given = [*arrays, arrays[0] if added is None else added, packed(kernel), numbers]
    parts = jax.ShapeDtypeStruct((blocks, 2, channels), jnp.float32)
    between, out, sums = gpu.call(program, given, [like, like, parts], blocks=blocks)
    return between, out, jnp.sum(sums, 0)
