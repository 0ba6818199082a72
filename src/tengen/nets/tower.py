"""A whole residual tower as one GPU program (`tower.cu`), for Hopper GPUs. See docs/architecture.md.

Its weights are packed when a network is folded. The layers themselves serve other devices and other towers, and tests
compare with them.
"""

import enum
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from tengen import gpu
from tengen.gpu.program import defines
from tengen.nets.blocks import AnyBlock, BlockChain, PoolChain, Residual
from tengen.nets.board import BoardMask
from tengen.nets.gpu import ACTIVATIONS
from tengen.nets.heads import Heads
from tengen.nets.layers import Conv
from tengen.nets.norms import Affine, AnyNorm
from tengen.nets.specs import Activation

_CHANNELS = (96, 128)
_ROWS = 384  # that a block of threads has: the points of its boards, and empty ones
_LEAST_SHARE = 0.65  # of the rows that points must have: with fewer, the layers are faster
_MOST_SHARED = 227 * 1024  # bytes
_WIDEST_TEAMS = 96  # channels for which two teams are faster than one
_MOST_IN_REGISTERS = 288  # channels of a thread's tiles, if it also keeps the residual stream of these
_MOST_PARTS = 12  # of a board that is pooled, each by a thread
_FEWEST_STAGES, _MOST_STAGES = 3, 8


class _Kind(enum.IntEnum):
    """As in tower.cu."""

    STEM = 0
    FIRST = 1
    SECOND = 2
    POOLING = 3
    SECOND_POOLED = 4
    NECK = 5


class PackedTower(nnx.Module):
    """From the input of the first convolution to the output of the neck, without its bias."""

    def __init__(self, stem: Conv, blocks: list[AnyBlock], heads: Heads, activation: Activation) -> None:
        norms = [_first_norm(block) for block in blocks]
        channels = stem.kernel.shape[3]
        kinds, kernels, numbers = [_Kind.STEM], [_padded(stem.kernel[...], 2)], _affine(norms[0])
        for block, norm in zip(blocks, [*norms[1:], heads.tip], strict=True):
            branch = block.branch if isinstance(block, Residual) else None
            if isinstance(branch, PoolChain):
                first, second, dense = branch.first.conv, branch.second, branch.pool.dense.kernel[...]
                kinds += [_Kind.POOLING, _Kind.SECOND_POOLED]
                self.pooled = dense.shape[0] // 3
                between = [dense]
            else:
                assert isinstance(branch, BlockChain)
                first, second = (step.conv for step in branch.steps)
                kinds += [_Kind.FIRST, _Kind.SECOND]
                between = []
            # Inputs that are added have weights of zero: the rows hold pooled channels there.
            kernels += [first.kernel[...], *between, _padded(second.kernel[...], 2)]
            numbers += [_bias(first), *_affine(norm)]
        neck = heads.neck.kernel[...]
        kinds.append(_Kind.NECK)
        kernels.append(jnp.pad(neck, ((0, 0), (0, 0), (0, 0), (0, channels - neck.shape[3]))))
        self.weights = nnx.Param(jnp.concatenate([_packed(kernel) for kernel in kernels]))
        self.numbers = nnx.Param(jnp.concatenate([part.astype(jnp.float32).ravel() for part in numbers]))
        self.kinds = tuple(int(kind) for kind in kinds)
        self.inputs, self.channels, self.outputs = kernels[0].shape[2], channels, neck.shape[3]
        self.activation: Activation = activation

    pooled: int = 0

    @staticmethod
    def suits(stem: Conv, blocks: list[AnyBlock], heads: Heads) -> bool:
        """Whether the program supports these parts of a folded network."""
        side, _, _, channels = stem.kernel.shape
        if stem.kernel.dtype != jnp.bfloat16 or side != 3 or stem.bias is not None or channels not in _CHANNELS:
            return False
        branches = [block.branch for block in blocks if isinstance(block, Residual) and _suits(block, channels)]
        pooled = {branch.pool.dense.kernel.shape[0] // 3 for branch in branches if isinstance(branch, PoolChain)}
        if len(branches) < len(blocks) or len(pooled) > 1:
            return False
        neck, inputs = heads.neck.kernel.shape[3], _padded(stem.kernel[...], 2).shape[2]
        return max(neck, inputs) <= channels and neck % 8 == 0 and isinstance(heads.tip, Affine)

    def supports(self, x: Float[Array, "batch height width inputs"]) -> bool:
        """Whether the program supports boards of that size."""
        return _plan(x.shape[1], x.shape[2], self.channels, self.pooled) is not None

    def __call__(self, x: Float[Array, "batch height width inputs"]) -> Float[Array, "batch height width outputs"]:
        x = _padded(x, 3)
        batch, height, width, _ = x.shape
        side = BoardMask(None, height * width).side
        plan = _plan(height, width, self.channels, self.pooled)
        assert plan is not None
        program = gpu.Program(
            "nets/tower.cu",
            "tower",
            threads=plan.workers + 128,
            defines=defines(
                HEIGHT=height,
                WIDTH=width,
                INPUTS=self.inputs,
                CHANNELS=self.channels,
                POOLED=self.pooled,
                OUTPUTS=self.outputs,
                ACTIVATION=ACTIVATIONS[self.activation],
                SIDE=side,
                LAYERS=len(self.kinds),
                KINDS="{" + ", ".join(map(str, self.kinds)) + "}",
                BATCH=batch,
                LINES=plan.lines,
                GROUPS=plan.groups,
                TEAMS=plan.teams,
                TILES=plan.tiles,
                STREAM_ROWS=plan.stream,
                DEPTH=plan.depth,
                LAG=plan.depth // 2,
                SLICES=plan.slices,
                SHARED=plan.shared,
            ),
            header="nets/hopper.cuh",
            shared=plan.shared,
            hopper=True,
            persistent=True,
        )
        out = jax.ShapeDtypeStruct((batch, height, width, self.outputs), x.dtype)
        (found,) = gpu.call(program, [x, self.weights[...], self.numbers[...]], [out], blocks=-(-batch // plan.boards))
        return found


def _suits(block: Residual, channels: int) -> bool:
    branch = block.branch
    if block.excite is not None:
        return False
    if isinstance(branch, BlockChain):
        convs, norm = [step.conv for step in branch.steps], branch.steps[0].norm
        shapes = [(3, 3, channels, channels)] * 2
    elif isinstance(branch, PoolChain):
        regular = branch.pool.regular
        convs, norm = [branch.first.conv, branch.second], branch.first.norm
        shapes = [(3, 3, channels, channels), (3, 3, regular, channels)]
        if regular % 8:
            return False
    else:
        return False
    usual = all(conv.groups == 1 for conv in convs) and convs[-1].bias is None
    return usual and [conv.kernel.shape for conv in convs] == shapes and isinstance(norm, Affine)


class _Plan(NamedTuple):
    boards: int  # at once
    lines: bool  # whether a tile of 64 rows is a board of 8 x 8
    groups: int  # of boards, each with half of the rows or all of them
    teams: int  # of threads: one for all boards, or two with half of the boards each
    workers: int  # threads that multiply
    tiles: int  # of 64 rows for each 128 of them
    stream: int  # rows of the residual stream in shared memory; 0: it is in registers
    shared: int  # bytes
    depth: int  # stages of weights
    slices: int  # of 16 inputs in a stage, at most


def _plan(height: int, width: int, channels: int, pooled: int) -> _Plan | None:
    """None if the program does not support them."""
    halo, pitch, length = width + 2, (height + 1) * (width + 1), (height - 1) * (width + 1) + width
    lines = height == width == 8
    if lines:
        groups, teams, tiles = 1, 2, 3 if channels == 96 else 2
        boards = 2 * tiles
        rows = boards * pitch
    else:
        boards, groups = max((groups * max((_ROWS // groups - length) // pitch + 1, 0), groups) for groups in (1, 2))
        if boards * height * width < _LEAST_SHARE * _ROWS:
            return None
        teams = 2 if groups == 2 and channels <= _WIDEST_TEAMS and boards * pooled <= 512 else 1
        rows, tiles = _ROWS, 3 if teams == 2 else 2
    workers, pairs = 256 if teams == 2 else 384, boards * pooled // 2
    if pairs > workers:
        return None
    rows += (groups + 1) * halo + 1
    stream = 0 if teams == 2 and tiles * channels <= _MOST_IN_REGISTERS else boards * height * width + 1
    parts = min(workers // pairs, _MOST_PARTS) if pairs else 0
    pool = 4 * (max(4 * pairs * parts, boards * (channels - pooled)) + 3 * boards * pooled) if pooled else 0
    # The rows, the residual stream, numbers of the layer for each team, the pool, and alignment.
    fixed = 2 * channels * (rows + stream + 4 * teams) + pool + 256
    # All stages of a layer have the same size. Two teams need more of them, because one is behind the other.
    for slices in (slices for slices in range(channels // 16, 0, -1) if channels // 16 % slices == 0):
        stage = 32 * channels * slices + 16  # with two barriers
        depth = min((_MOST_SHARED - fixed) // stage, _MOST_STAGES)
        if depth >= (_FEWEST_STAGES if stream else 2 * _FEWEST_STAGES):
            shared = fixed + depth * stage
            return _Plan(boards, lines, groups, teams, workers, tiles, stream, shared, depth, slices)
    return None


def _padded(x: Array, axis: int) -> Array:
    """With as many inputs as a stage of weights has, or a multiple of it."""
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, -x.shape[axis] % 32)
    return jnp.pad(x, widths)


def _packed(
    kernel: Float[Array, "side side inputs outputs"] | Float[Array, "inputs outputs"],
) -> Float[Array, " numbers"]:
    """A convolution's by place, then eight inputs at a time: for each output, these eight. A dense layer's as it is."""
    if kernel.ndim == 4:
        side, _, inputs, outputs = kernel.shape
        kernel = kernel.reshape(side * side, inputs // 8, 8, outputs).swapaxes(2, 3)
    return kernel.astype(jnp.bfloat16).ravel()


def _first_norm(block: AnyBlock) -> AnyNorm:
    assert isinstance(block, Residual)
    branch = block.branch
    assert isinstance(branch, BlockChain | PoolChain)
    return branch.first.norm if isinstance(branch, PoolChain) else branch.steps[0].norm


def _affine(norm: AnyNorm) -> list[Array]:
    assert isinstance(norm, Affine)
    return [norm.scale[...], norm.shift[...]]


def _bias(conv: Conv) -> Array:
    return jnp.zeros(conv.kernel.shape[3]) if conv.bias is None else conv.bias[...]
