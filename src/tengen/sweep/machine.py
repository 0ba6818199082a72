"""The GPUs and cores of this machine, divided among trials that run side by side."""

import os
import shutil
import subprocess
from collections.abc import Mapping

from tengen.sweep.trial import Share

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
_WHOLE = 0.9  # of a GPU's memory that all trials on it may take together
_THREADS = "OMP_NUM_THREADS"


def gpus(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The NVIDIA GPUs that JAX would use, as CUDA_VISIBLE_DEVICES names them; none without any."""
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
    """The default number of trials at once: one for each GPU or, without any, one for each two cores."""
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
            given[_VISIBLE] = devices[number % len(devices)]
        given |= memory_fraction(1 / on_one if on_one else 0, environment)
        found.append(Share(mine, given))
    return tuple(found)


def memory_fraction(share: float, environment: Mapping[str, str]) -> dict[str, str]:
    """The variable that leaves others their part of a GPU's memory, if a trial has only a share of it.

    Otherwise the first one takes three quarters of it when it starts, and the next finds nothing.
    """
    return {_FRACTION: f"{_WHOLE * share:.3g}"} if 0 < share < 1 and _FRACTION not in environment else {}


def _slice(there: tuple[int, ...], number: int, count: int) -> tuple[int, ...]:
    """Cores for one of `count`; where there are fewer cores than trials, some share one."""
    if count >= len(there):
        return (there[number % len(there)],)
    return there[len(there) * number // count : len(there) * (number + 1) // count]
