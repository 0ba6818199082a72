"""CUDA C++ kernels as JAX operations.

    program = Program("games/go.cu", "go_move_and_look", threads=128, defines=(("SIZE", "9"),))
    outputs = call(program, inputs, [jax.ShapeDtypeStruct((64, 81), jnp.int16)], blocks=16)

A kernel is compiled when the function around it is lowered for a GPU, and launched by JAX's launcher for Triton
kernels, which takes any PTX. Its arguments are pointers: all inputs, then all outputs.
"""

import functools
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir

from tengen.errors import TengenError
from tengen.gpu import nvrtc

OLDEST = 80  # Ampere: the oldest supported compute capability
HOPPER = 90
_Shape = tuple[tuple[int, ...], Any]  # shape and dtype


@dataclass(frozen=True)
class Program:
    """A kernel, specialised by preprocessor definitions."""

    path: str  # of the source, within the package
    entry: str
    threads: int  # per block; a multiple of 32
    defines: tuple[tuple[str, str], ...]
    header: str = ""  # the path of a source that precedes it
    shared: int = 0  # bytes of shared memory that it gets besides what it declares
    hopper: bool = False  # whether it uses instructions that only Hopper has

    @property
    def source(self) -> str:
        """The source text including the definitions."""
        definitions = "".join(f"#define {name} {value}\n" for name, value in self.defines)
        return definitions + "".join(map(_file, filter(None, ("gpu/common.cuh", self.header, self.path))))


@functools.cache
def _file(path: str) -> str:
    return resources.files("tengen").joinpath(path).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Launch:
    program: Program
    blocks: tuple[int, int]
    outputs: tuple[_Shape, ...]
    aliases: tuple[tuple[int, int], ...]  # input -> output in the same memory


def defines(**values: object) -> tuple[tuple[str, str], ...]:
    """Definitions for a `Program`; bools become 0 or 1."""
    return tuple((name, str(int(value) if isinstance(value, bool) else value)) for name, value in values.items())


def call(
    program: Program,
    inputs: Sequence[Array],
    outputs: Sequence[jax.ShapeDtypeStruct],
    *,
    blocks: int | tuple[int, int],
    aliases: Mapping[int, int] | None = None,
) -> list[Array]:
    """Runs a program on arrays; `aliases` maps inputs to the outputs that reuse their memory."""
    grid = (blocks, 1) if isinstance(blocks, int) else blocks
    shapes = tuple((tuple(out.shape), np.dtype(out.dtype)) for out in outputs)
    results = _launch_p.bind(*inputs, launch=Launch(program, grid, shapes, tuple((aliases or {}).items())))
    # If a loop stacks a result of the program, XLA lets the program write directly into the stack, and ignores that an
    # aliased result also holds what was there before the call. The barrier keeps the two apart.
    return jax.lax.optimization_barrier(results) if aliases else results


@functools.cache
def ptx(program: Program, capability: int) -> str:
    """The program compiled for a compute capability such as 90."""
    # Without fused multiply-add a program rounds as XLA does. Lambdas are functions of the device only if all are.
    flags = "--std=c++17", "--device-as-default-execution-space", "--fmad=false"
    architecture = f"compute_{capability}{'a' if program.hopper else ''}"
    options = (f"--gpu-architecture={architecture}", *flags)
    return nvrtc.compile_ptx(program.source, program.path, options)


Emulator = Callable[..., Sequence[np.ndarray]]  # of a Launch and its inputs
_emulator: Emulator | None = None


def emulate_with(emulator: Emulator | None) -> None:
    """Makes a function run the programs on CPUs, for tests."""
    global _emulator
    _emulator = emulator


_launch_p = Primitive("gpu_program")
_launch_p.multiple_results = True


@_launch_p.def_abstract_eval
def _shapes(*inputs: Any, launch: Launch) -> list[Any]:
    return [ShapedArray(shape, dtype) for shape, dtype in launch.outputs]


def _on_cpu(*inputs: Array, launch: Launch) -> list[Array]:
    if _emulator is None:
        raise TengenError(f"{launch.program.path} is a program for NVIDIA GPUs and cannot run on a CPU")
    results = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in launch.outputs]
    return list(jax.pure_callback(functools.partial(_emulator, launch), results, *inputs))


def _on_gpu(context: Any, *operands: Any, launch: Launch) -> Any:
    from jaxlib import gpu_triton

    capability = min(_capabilities())
    program = launch.program
    kernel = gpu_triton.TritonKernel(
        program.entry, program.threads // 32, 1, program.shared, ptx(program, capability), "", capability
    )
    pointers = [gpu_triton.create_array_parameter(0, 16) for _ in (*operands, *launch.outputs)]
    proto = gpu_triton.TritonKernelCall(kernel, *launch.blocks, 1, pointers).to_proto(program.entry, b"")
    rule = jax.ffi.ffi_lowering("triton_kernel_call_ffi", operand_output_aliases=dict(launch.aliases))
    return rule(context, *operands, name=program.entry, opaque=zlib.compress(proto))


def _capabilities() -> set[int]:
    """The compute capabilities of the GPUs here. All of them run programs for the oldest."""
    return {int(device.compute_capability.replace(".", "")) for device in jax.local_devices(backend="cuda")}


def is_hopper() -> bool:
    """Whether computations run on Hopper GPUs."""
    return jax.default_backend() == "gpu" and _capabilities() == {HOPPER}


mlir.register_lowering(_launch_p, _on_gpu, platform="cuda")
mlir.register_lowering(_launch_p, mlir.lower_fun(_on_cpu, multiple_results=True), platform="cpu")
_launch_p.def_impl(jax.jit(lambda *inputs, launch: _launch_p.bind(*inputs, launch=launch), static_argnames="launch"))
