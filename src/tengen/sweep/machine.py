"""The GPUs and cores of this machine, divided among trials that run side by side."""

import os
import shutil
import subprocess
from collections.abc import Mapping

from tengen.jax_setup import gpu_share
from tengen.sweep.trial import Share

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_THREADS = "OMP_NUM_THREADS"


def gpus(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The NVIDIA GPUs that JAX would use, by their names in CUDA_VISIBLE_DEVICES."""
    if environment.get("JAX_PLATFORMS", "").lower() == "cpu":
        return ()
    if _VISIBLE in environment:
        return tuple(name for text in environment[_VISIBLE].split(",") if (name := text.strip()))
    if shutil.which("nvidia-smi") is None:
        return ()
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return tuple(str(number) for number in range(len(lines)))


def usual(devices: tuple[str, ...], there: tuple[int, ...]) -> int:
    """The default number of trials at once: one per GPU or, without GPUs, one per two cores."""
    return len(devices) or max(1, len(there) // 2)


def shares(
    count: int, devices: tuple[str, ...], there: tuple[int, ...], environment: Mapping[str, str] = os.environ
) -> tuple[Share, ...]:
    """The shares of `count` trials at once: GPUs in turn, a part of the memory of each, and separate cores."""
    found = []
    on_one = -(-count // len(devices)) if devices else 0  # trials on the fullest GPU
    for number in range(count):
        given: dict[str, str] = {}
        mine = _slice(there, number, count) if count > 1 else ()
        if mine and _THREADS not in environment:
            given[_THREADS] = str(len(mine))
        if devices:
            given |= {_VISIBLE: devices[number % len(devices)], **gpu_share(1 / on_one, environment)}
        found.append(Share(mine, given))
    return tuple(found)


def _slice(there: tuple[int, ...], number: int, count: int) -> tuple[int, ...]:
    """The cores of one of `count` trials; if there are fewer cores than trials, some share one."""
    if count >= len(there):
        return (there[number % len(there)],)
    return there[len(there) * number // count : len(there) * (number + 1) // count]
