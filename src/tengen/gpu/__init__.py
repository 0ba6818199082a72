"""GPU programs: CUDA C++ kernels, compiled on demand and called inside `jit`."""

from tengen.gpu.program import Program, call, is_hopper

__all__ = ["Program", "call", "is_hopper"]
