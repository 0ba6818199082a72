"""GPU programs: CUDA C++ kernels, compiled when they are needed and called inside `jit`."""

from tengen.gpu.program import Program, call

__all__ = ["Program", "call"]
