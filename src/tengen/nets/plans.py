"""How the programs for Hopper's tensor cores (`hopper.cuh`) divide boards among threads, and use shared memory."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from tengen.gpu.program import defines

CHANNELS = (96, 128)  # that a tower may have
_ROWS = 384  # that a block of threads has: the points of its boards, and empty ones
_LEAST_SHARE = 0.65  # of the rows that points must have: with fewer, the layers are faster
_MOST_SHARED = 227 * 1024  # bytes
_WIDEST_TEAMS = 96  # channels for which two teams are faster than one
_MOST_IN_REGISTERS = 288  # channels of a thread's tiles, if it also keeps the residual stream of these
_MOST_PARTS = 12  # of a board that is pooled, each by a thread
_FEWEST_STAGES, _MOST_STAGES = 3, 8


class Plan(NamedTuple):
    """How a block of threads uses its memory."""

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

    @property
    def threads(self) -> int:
        """One warpgroup more, of which one thread fetches weights."""
        return self.workers + 128

    def defines(self) -> tuple[tuple[str, str], ...]:
        return defines(
            LINES=self.lines,
            GROUPS=self.groups,
            TEAMS=self.teams,
            TILES=self.tiles,
            DEPTH=self.depth,
            LAG=self.depth // 2,
            SLICES=self.slices,
            SHARED=self.shared,
        )


def plan(height: int, width: int, channels: int, pooled: int = 0, *, tower: bool = True) -> Plan | None:
    """For a whole tower, or for one convolution, which has no residual stream; None if the board does not fit well."""
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
        teams = 2 if groups == 2 and (channels <= _WIDEST_TEAMS or not tower) and boards * pooled <= 512 else 1
        rows, tiles = _ROWS, 3 if teams == 2 else 2
    workers, pairs = 256 if teams == 2 else 384, boards * pooled // 2
    if pairs > workers:
        return None
    rows = rows + (groups + 1) * halo + 1 | 1
    in_registers = not tower or (teams == 2 and tiles * channels <= _MOST_IN_REGISTERS)
    stream = 0 if in_registers else boards * height * width + 1
    parts = min(workers // pairs, _MOST_PARTS) if pairs else 0
    pool = 4 * (max(4 * pairs * parts, boards * (channels - pooled)) + 3 * boards * pooled) if pooled else 0
    # The rows, the residual stream, numbers of the layer for each team, the pool, and alignment.
    fixed = 2 * channels * (rows + stream + (4 * teams if tower else 8)) + pool + 256
    # All stages of a layer have the same size. Two teams need more of them, because one is behind the other.
    for slices in (slices for slices in range(channels // 16, 0, -1) if channels // 16 % slices == 0):
        stage = 32 * channels * slices + 16  # with two barriers
        depth = min((_MOST_SHARED - fixed) // stage, _MOST_STAGES)
        if depth >= (_FEWEST_STAGES if teams == 1 or stream else 2 * _FEWEST_STAGES):
            return Plan(boards, lines, groups, teams, workers, tiles, stream, fixed + depth * stage, depth, slices)
    return None


def packed(
    kernel: Float[Array, "side side inputs outputs"] | Float[Array, "inputs outputs"],
) -> Float[Array, " numbers"]:
    """A convolution's by place, then eight inputs at a time: for each output, these eight. A dense layer's as it is."""
    if kernel.ndim == 4:
        side, _, inputs, outputs = kernel.shape
        kernel = kernel.reshape(side * side, inputs // 8, 8, outputs).swapaxes(2, 3)
    return kernel.astype(jnp.bfloat16).ravel()
