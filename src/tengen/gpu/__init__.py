"""GPU programs: CUDA C++ kernels, compiled on demand and called inside `jit`."""

from tengen.gpu.program import Program, call

__all__ = ["Program", "call"]
