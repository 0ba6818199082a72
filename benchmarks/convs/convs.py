"""Learning in residual towers with GPU programs (`convs.cu`), for Hopper GPUs: an experiment, outside of the package.

A program convolves, and does what XLA would do in passes between two convolutions: the norm and the activation before
it, the residual stream and the sums for the next norm after it, and the gradients of all of that. A program starts from
the sums that the one before it has left, so that a run of convolutions is one launch each, in both directions; only the
gradients of kernels are cuDNN's. Blocks with global pooling end a run. The plain layers serve other devices and other
towers, and tests compare with them.

`benchmarks/training_convs.py` checks and measures the programs on a GPU; docs/log.md has what was measured. What has
to hold before they move into the package: a step of the learner that is clearly faster than with the layers.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, BFloat16, Float, Float32

from tengen import gpu
from tengen.gpu.program import defines
from tengen.nets import norms
from tengen.nets.blocks import AnyBlock, BlockChain, BlockStep, PoolChain, Residual
from tengen.nets.board import BoardMask, Trunk
from tengen.nets.gpu import ACTIVATIONS
from tengen.nets.heads import Heads
from tengen.nets.layers import activate, convolve
from tengen.nets.network import BoardNetwork
from tengen.nets.norms import Norm
from tengen.nets.outputs import Outputs
from tengen.nets.specs import Activation

_SOURCE = str(Path(__file__).with_name("convs.cu"))
_CHANNELS = (96, 128)  # that a tower may have
_LEAST_SHARE = 0.6  # of the rows that points must have; the others are empty
_MOST_SHARED = 227 * 1024  # bytes
_FEWEST_STAGES, _MOST_STAGES = 6, 8
_THREADS = 512  # half of them multiply
_MOST_BLOCKS = 132  # of threads: the multiprocessors of a Hopper GPU
AHEAD = {"forward": 4, "backward": 2}  # units of 16 bytes that a helper loads before it needs them, of up to two arrays
Vector = Float32[Array, " channels"]
Sums = Float32[Array, "2 channels"]  # over all points of all boards: of the numbers, and of their squares
Packed = BFloat16[Array, "convolutions numbers"]


class Plan(NamedTuple):
    """How a block of threads uses its memory; two teams have half of the boards each."""

    boards: int  # at once
    lines: bool  # whether a tile of 64 rows is a board of 8 x 8
    groups: int  # of boards, each with half of the rows or all of them
    tiles: int  # of 64 rows for each team
    shared: int  # bytes
    depth: int  # stages of weights
    slices: int  # of 16 inputs in a stage


def plan(height: int, width: int, channels: int) -> Plan | None:
    """None if the programs do not support such boards.

    The sums of a multiplier need tiles * channels / 2 of its registers, and it needs about 32 others: 176 with three
    tiles of 96 channels, which leaves 80 for a helper (256 of each have 65,536). Three tiles of 128 channels would need
    224, and leave 56 for each of only 128 helpers, which is not enough; so these have two tiles, and one 9x9 board for
    128 rows.
    """
    pitch, length = (height + 1) * (width + 1), (height - 1) * (width + 1) + width
    lines = height == width == 8
    tiles = 3 if channels == 96 else 2
    if lines:
        groups, boards, rows = 1, 2 * tiles, 2 * tiles * pitch
    else:
        groups, rows = 2, 2 * 64 * tiles
        boards = 2 * ((rows // 2 - length) // pitch + 1) if length <= rows // 2 else 0
        if boards * height * width < _LEAST_SHARE * rows:
            return None
    # An odd number, so that threads read neighbouring channels without conflicts.
    rows = (rows + (groups + 1) * (width + 2) + 1) | 1
    # The rows, four numbers for each channel, where each point is, and alignment.
    fixed = 2 * channels * rows + 16 * channels + boards * height * width + 256
    for slices in (slices for slices in range(channels // 16, 0, -1) if channels // 16 % slices == 0):
        stage = 32 * channels * slices + 16  # with two barriers
        depth = min((_MOST_SHARED - fixed) // stage, _MOST_STAGES)
        if depth >= _FEWEST_STAGES:
            return Plan(boards, lines, groups, tiles, fixed + depth * stage, depth, slices)
    return None


def supports(x: Trunk, blocks: Sequence[AnyBlock]) -> bool:
    """Whether the programs support some convolutions of these blocks, on full boards of that size."""
    _, height, width, channels = x.shape
    fits = channels in _CHANNELS and plan(height, width, channels) is not None
    return fits and x.dtype == jnp.bfloat16 and any(_steps(block, channels) for block in blocks)


@contextmanager
def in_training() -> Iterator[None]:
    """Networks that are traced for training meanwhile use the programs where they can; one GPU has the whole batch."""
    usual = BoardNetwork._look

    def look(net: BoardNetwork, planes: Array, scalars: Array, train: bool) -> Outputs:
        board, blocks = BoardMask.of(planes, net.full_board), list(net.blocks)
        if train and board.on is None and gpu.is_hopper():
            x = net.stem(net.stem.inputs(planes, scalars, net.dtype))
            if supports(x, blocks):
                return net.heads(learn(x, blocks, net.heads, board), board, train)
        return usual(net, planes, scalars, train)

    setattr(BoardNetwork, "_look", look)  # noqa: B010 - a method of the package, for as long as this is open
    try:
        yield
    finally:
        BoardNetwork._look = usual


def learn(x: Trunk, blocks: Sequence[AnyBlock], heads: Heads, board: BoardMask) -> Array:
    """From the first convolution's output to that of the neck, in training."""
    channels = x.shape[3]
    steps = [step for block in blocks for step in _steps(block, channels)]
    packed = pack([step.conv.kernel[...] for step in steps])
    sums, run, number = _sums(x), [], 0
    for block in blocks:
        mine = _steps(block, channels)
        run += mine
        if len(mine) == 2:
            continue
        inner, x, sums = _run(x, sums, run, packed, number)
        number, run = number + len(run), []
        if mine:
            assert isinstance(block, Residual)
            branch = block.branch
            assert isinstance(branch, PoolChain)
            biased, _ = branch.pool(inner, branch.first.conv, board, train=True)
            x = x + branch.second(biased)
        else:
            x = block(x, board, train=True)
        sums = _sums(x)
    if run:
        x, _, sums = _run(x, sums, run, packed, number)
    tip = heads.tip
    if not isinstance(tip, Norm):
        return heads.from_trunk(x, board, train=True)
    mean, square = sums / (x.size // channels)
    moments = mean, jnp.maximum(square - jnp.square(mean), 0)
    for running, now in zip((tip.mean, tip.variance), moments, strict=True):
        old = running[...]
        running.set_value(old + norms._NEW_SHARE * (lax.stop_gradient(now) - old))
    scale, shift = tip.affine(moments)
    return heads.neck.unbiased(activate(x.astype(jnp.float32) * scale + shift, heads.activation).astype(x.dtype))


def _sums(x: Trunk) -> Sums:
    wide = x.astype(jnp.float32)
    return jnp.stack([jnp.sum(wide, (0, 1, 2)), jnp.sum(jnp.square(wide), (0, 1, 2))])


def _steps(block: AnyBlock, channels: int) -> list[BlockStep]:
    """The convolutions of a block that the programs support: both, the first one of a block that pools, or none."""
    if not isinstance(block, Residual) or block.excite is not None:
        return []
    branch = block.branch
    steps = [branch.first] if isinstance(branch, PoolChain) else branch.steps if isinstance(branch, BlockChain) else []
    convs = [step.conv for step in steps]
    usual = all(conv.groups == 1 and conv.bias is None for conv in convs)
    shapes = all(conv.kernel.shape == (3, 3, channels, channels) for conv in convs)
    return list(steps) if usual and shapes and len(convs) == (1 if isinstance(branch, PoolChain) else 2) else []


def pack(kernels: Sequence[Float[Array, "3 3 channels channels"]]) -> tuple[Packed, Packed]:
    """All kernels for the programs, forward and backward.

    They are ordered by place, then eight inputs at a time, for each output these eight. Backward, places are reversed,
    and inputs and outputs exchanged.
    """
    stacked = jnp.stack([lax.stop_gradient(kernel).astype(jnp.bfloat16) for kernel in kernels])
    count, _, _, channels, _ = stacked.shape
    by_eight = stacked.reshape(count, 9, channels // 8, 8, channels).swapaxes(3, 4)
    turned = stacked.reshape(count, 9, channels, channels // 8, 8)[:, ::-1].swapaxes(2, 3)
    return by_eight.reshape(count, -1), turned.reshape(count, -1)


def _run(
    x: Trunk, sums: Sums, steps: Sequence[BlockStep], packed: tuple[Packed, Packed], number: int
) -> tuple[Trunk, Trunk, Sums]:
    """Ordinary blocks, and the first convolution of one that pools, of which `number` is the first one in `packed`.

    Returns the output of the last convolution, the residual stream that the block that pools adds to, and the sums of
    that output.
    """
    if not steps:
        return x, x, sums
    found = [step.norm for step in steps if isinstance(step.norm, Norm)]
    assert len(found) == len(steps)
    params = [
        (norm.scale[...], norm.shift[...], step.conv.kernel[...]) for norm, step in zip(found, steps, strict=True)
    ]
    running = [(norm.mean[...], norm.variance[...]) for norm in found]
    results: Any = convolved(x, sums, params, running, packed, number, steps[0].activation)
    (y, stream, sums), moved = results
    for norm, (mean, variance) in zip(found, moved, strict=True):
        norm.mean.set_value(lax.stop_gradient(mean))
        norm.variance.set_value(lax.stop_gradient(variance))
    return y, stream, sums


Parameters = list[tuple[Vector, Vector, Float32[Array, "3 3 channels channels"]]]  # of each norm, and of each kernel
Moments = list[tuple[Vector, Vector]]  # means and variances of each norm
Results = tuple[tuple[Trunk, Trunk, Sums], Moments]


@partial(jax.custom_vjp, nondiff_argnums=(5, 6))
def convolved(
    x: Trunk,
    sums: Sums,
    params: Parameters,
    running: Moments,
    packed: tuple[Packed, Packed],
    number: int,
    activation: Activation,
) -> Results:
    """A run of convolutions, each with a norm and an activation before it; every second one adds what the first had.

    Returns what `_run` does, and the new running statistics.
    """
    return _forward(x, sums, params, running, packed, number, activation)[0]


def _forward(
    x: Array,
    sums: Array,
    params: Parameters,
    running: Moments,
    packed: tuple[Array, Array],
    number: int,
    activation: Activation,
) -> tuple[Results, Any]:
    streams, between, numbers, moved = [x], [], [], []
    given = sums[None]
    for k, ((scale, shift, _), old) in enumerate(zip(params, running, strict=True)):
        added = streams[-2] if k % 2 else None
        arguments = [packed[0], _index(number + k), given, scale, shift, *old]
        a, y, given, own, *new = _call("forward", [streams[-1]], added, arguments, activation)
        streams.append(y)
        between.append(a)
        numbers.append(own)
        moved.append(tuple(new))
    results = streams[-1], streams[-2], jnp.sum(given, 0)
    kernels = [kernel for *_, kernel in params]
    return (results, moved), (streams, between, numbers, kernels, packed[1])


def _backward(number: int, activation: Activation, kept: Any, changes: Any) -> tuple[Any, ...]:
    streams, between, numbers, kernels, packed = kept
    (change, other, given), _ = changes  # `other` is what a block that pools adds to
    given, followed = given[None], False
    of_norms, of_kernels = [], []
    for k in reversed(range(len(kernels))):
        first = k % 2 == 0
        arguments = [packed, _index(number + k), given, numbers[k], numbers[k + 1] if followed else numbers[k]]
        arrays = [streams[k], streams[k + 1], change]
        g, change, given, *of_norm = _call(
            "backward", arrays, other if first else None, arguments, activation, followed
        )
        if not first:
            # The stream's own gradient: that of the sum, and, at the end of a run, of what is returned besides.
            other = g
        (of_kernel,) = jax.linear_transpose(partial(convolve, between[k]), kernels[k].astype(g.dtype))(g)
        of_kernels.append(of_kernel.astype(kernels[k].dtype))
        if followed:
            of_norms.append(of_norm)
        followed = True
    # The first norm's numbers were made from sums that are not a program's.
    of_shift, of_scaled = jnp.sum(given, 0)
    scale, _, mean, inverse = numbers[0]
    of_scale = (of_scaled - mean * of_shift) * inverse
    count = streams[0].size // streams[0].shape[3]
    of_squares = -0.5 * of_scale * scale * inverse / count
    of_sums = jnp.stack([-scale * of_shift / count - 2 * mean * of_squares, of_squares])
    of_norms.append((of_scale, of_shift))
    of_params = [(*of_norm, of_kernel) for of_norm, of_kernel in zip(of_norms, of_kernels, strict=True)][::-1]
    return change, of_sums, of_params, None, None


convolved.defvjp(_forward, _backward)


def _index(number: int) -> Array:
    """As an array: the same program serves all convolutions."""
    return jnp.asarray(np.array([number], np.int32))


def _call(
    entry: str,
    arrays: list[Array],
    added: Array | None,
    arguments: list[Array],
    activation: Activation,
    followed: bool = False,
) -> list[Array]:
    like = jax.ShapeDtypeStruct(arrays[0].shape, arrays[0].dtype)
    batch, height, width, channels = like.shape
    how = plan(height, width, channels)
    assert how is not None
    blocks = min(-(-batch // how.boards), _MOST_BLOCKS)
    program = gpu.Program(
        _SOURCE,
        entry,
        threads=_THREADS,
        defines=defines(
            HEIGHT=height,
            WIDTH=width,
            CHANNELS=channels,
            ACTIVATION=ACTIVATIONS[activation],
            BACKWARD=entry == "backward",
            ADDED=added is not None,
            FOLLOWED=followed,
            GIVEN=len(arguments[2]),
            BATCH=batch,
            PARTS=blocks,
            LINES=how.lines,
            GROUPS=how.groups,
            TEAMS=2,
            TILES=how.tiles,
            ODD=True,
            DEPTH=how.depth,
            LAG=0,
            SLICES=how.slices,
            AHEAD=AHEAD[entry],
            SHARED=how.shared,
        ),
        header="nets/hopper.cuh",
        shared=how.shared,
        hopper=True,
        persistent=True,
    )
    vector = jax.ShapeDtypeStruct((channels,), jnp.float32)
    numbers = jax.ShapeDtypeStruct((4, channels), jnp.float32)
    parts = jax.ShapeDtypeStruct((blocks, 2, channels), jnp.float32)
    outputs = [like, like, parts, *([numbers] if entry == "forward" else []), vector, vector]
    given = [*arrays, arrays[0] if added is None else added, *arguments]
    return gpu.call(program, given, outputs, blocks=blocks)
