"""Compiles CUDA C++ to PTX with NVRTC, a library installed by `jax[cuda13]`. Needs no GPU and no header."""

import ctypes
import functools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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
