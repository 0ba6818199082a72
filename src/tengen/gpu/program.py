"""CUDA C++ kernels as JAX operations, compiled with NVRTC when the function around them is lowered for a GPU.

    program = Program("games/go.cu", "go_move_and_look", threads=128, defines=(("SIZE", "9"),))
    outputs = call(program, inputs, [jax.ShapeDtypeStruct((64, 81), jnp.int16)], blocks=16)

The arguments of a kernel are pointers: all inputs, then all outputs.
"""

import ctypes
import functools
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir

from tengen.errors import TengenError

_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
_SYSTEM = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib")


class CompilerError(TengenError):
    """NVRTC is missing or rejects a program."""


def compile_ptx(source: str, name: str, options: Sequence[str]) -> str:
    """The PTX of a source text; `name` appears in error messages."""
    library = _library()
    program = ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
    try:
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if library.nvrtcCompileProgram(program, len(options), words):
            log = _text(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
            raise CompilerError(f"{name}: the CUDA compiler rejects this program:\n{log}")
        return _text(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def _library() -> ctypes.CDLL:
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise CompilerError(
        "libnvrtc, which compiles Tengen's GPU programs, was not found; install it with pip install 'tengen-zero[cuda]'"
    )


def _candidates() -> Iterator[str]:
    """NVRTC of the Python packages first, since it fits the installed JAX, then the system's."""
    for folder in sys.path:
        nvidia = Path(folder or ".") / "nvidia"
        for name in _NAMES:
            yield from (str(path) for path in sorted(nvidia.glob(f"*/lib/{name}")))
    yield from _NAMES
    for folder in _SYSTEM:
        yield from (f"{folder}/{name}" for name in _NAMES)


def _check(code: int) -> None:
    if code:
        raise CompilerError(f"the CUDA compiler failed with code {code}")


def _text(size_of: Any, read: Any, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(read(program, text))
    return text.value.decode(errors="replace")


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
    persistent: bool = False  # whether its blocks take turns, so that one for each multiprocessor is enough

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
    return compile_ptx(program.source, program.path, options)


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
    x, y = launch.blocks
    blocks = (min(x, _processors()), y) if program.persistent else (x, y)
    proto = gpu_triton.TritonKernelCall(kernel, *blocks, 1, pointers).to_proto(program.entry, b"")
    rule = jax.ffi.ffi_lowering("triton_kernel_call_ffi", operand_output_aliases=dict(launch.aliases))
    return rule(context, *operands, name=program.entry, opaque=zlib.compress(proto))


def _capabilities() -> set[int]:
    """The compute capabilities of the GPUs here. All of them run programs for the oldest."""
    return {int(device.compute_capability.replace(".", "")) for device in jax.local_devices(backend="cuda")}


def _processors() -> int:
    """The multiprocessors of a GPU here, of the smallest if they differ."""
    return min(device.core_count for device in jax.local_devices(backend="cuda"))


def runs_here() -> bool:
    """Whether there is a GPU for the programs, or an emulator."""
    return jax.default_backend() == "gpu" or _emulator is not None


def is_hopper() -> bool:
    """Whether computations run on Hopper GPUs."""
    return jax.default_backend() == "gpu" and _capabilities() == {HOPPER}


mlir.register_lowering(_launch_p, _on_gpu, platform="cuda")
mlir.register_lowering(_launch_p, mlir.lower_fun(_on_cpu, multiple_results=True), platform="cpu")
_launch_p.def_impl(jax.jit(lambda *inputs, launch: _launch_p.bind(*inputs, launch=launch), static_argnames="launch"))
