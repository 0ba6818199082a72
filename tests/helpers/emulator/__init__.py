"""Runs GPU programs on a CPU, so that machines without a GPU can test what they compute.

The CUDA C++ source is compiled by g++ with `cuda.h`, which stands in for CUDA's own words; `cuda.h` says how.
"""

import ctypes
import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tengen.gpu.program import Launch, Program

_HEADER = Path(__file__).parent / "cuda.h"
_PROCESSORS = 2  # so few that blocks take turns
_FOLDER = tempfile.TemporaryDirectory(prefix="tengen-emulator-")


def is_available() -> bool:
    """Whether there is a C++ compiler."""
    return shutil.which("g++") is not None


def run(launch: Launch, *given: np.ndarray) -> list[np.ndarray]:
    """The outputs of a launch; outputs that share memory with an input begin as that input."""
    inputs = [np.ascontiguousarray(x) for x in given]
    outputs = [_garbage(shape, dtype) for shape, dtype in launch.outputs]
    pointers = list(inputs)
    for source, target in launch.aliases:
        outputs[target][...] = inputs[source]
        pointers[source] = outputs[target]
    pointers += outputs
    library = _library(launch.program, len(pointers))
    arguments = (ctypes.c_void_p * len(pointers))(*(array.ctypes.data for array in pointers))
    x, y = launch.blocks
    blocks = (min(x, _PROCESSORS), y) if launch.program.persistent else (x, y)
    library.emulate(arguments, *blocks, launch.program.threads)
    return outputs


def _garbage(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """What a GPU's fresh memory may hold."""
    return np.full(int(np.prod(shape)) * np.dtype(dtype).itemsize, 0x5A, np.uint8).view(dtype).reshape(shape)


@functools.cache
def _library(program: Program, arguments: int) -> ctypes.CDLL:
    types = ", ".join(["void*"] * arguments)
    values = ", ".join(f"arguments[{k}]" for k in range(arguments))
    text = f"""#include "{_HEADER}"
{program.source}
static void** arguments;
static void one_thread() {{ ((void (*)({types})){program.entry})({values}); }}
extern "C" void emulate(void** given, int x, int y, int threads) {{
  arguments = given;
  emulator::body = one_thread;
  gridDim = {{x, y, 1}};
  for (int j = 0; j < y; j++)
    for (int i = 0; i < x; i++) {{
      blockIdx = {{i, j, 0}};
      emulator::run_block(threads);
    }}
}}
"""
    name = Path(_FOLDER.name) / hashlib.sha256(text.encode()).hexdigest()[:20]
    source, library = name.with_suffix(".cc"), name.with_suffix(".so")
    source.write_text(text)
    words = ["g++", "-std=c++17", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-o", str(library), str(source)]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return ctypes.CDLL(str(library))
