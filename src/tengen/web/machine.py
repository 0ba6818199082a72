"""The load of this machine, for the live page."""

import contextlib
import os
import socket
import time
from typing import Any

from tengen import files
from tengen.jax_setup import nvidia_smi

_LEAST = 3.0  # seconds between two measurements
_QUERY = ["--query-gpu=name,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits"]


class MachineLoad:
    def __init__(self) -> None:
        self._cpu = _cpu_times()
        self._at = -_LEAST
        self._found: dict[str, Any] = {}

    def look(self) -> dict[str, Any]:
        """Shares of processors and memory that are in use, and the GPUs."""
        if time.monotonic() - self._at >= _LEAST:
            self._at = time.monotonic()
            now, before = _cpu_times(), self._cpu
            busy = None
            if now and before and now[1] > before[1]:
                busy = round((now[0] - before[0]) / (now[1] - before[1]), 3)
            self._cpu = now
            self._found = {
                "host": socket.gethostname(),
                "cores": os.cpu_count() or 1,
                "cpu": busy,
                "memory": _memory(),
                "gpus": _gpus(),
            }
        return self._found


def _cpu_times() -> tuple[int, int] | None:
    """Busy and all time of the processors so far; None where the system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        numbers = [int(word) for word in files.read_text("/proc/stat").splitlines()[0].split()[1:9]]
        return sum(numbers) - numbers[3] - numbers[4], sum(numbers)
    return None


def _memory() -> tuple[int, int] | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        lines = (line.split() for line in files.read_text("/proc/meminfo").splitlines())
        found = {words[0]: 1024 * int(words[1]) for words in lines if len(words) > 1}
        return found["MemTotal:"] - found["MemAvailable:"], found["MemTotal:"]
    return None


def _gpus() -> list[dict[str, Any]]:
    found = []
    with contextlib.suppress(ValueError):
        for line in nvidia_smi(*_QUERY, seconds=5.0):
            name, load, used, memory = (word.strip() for word in line.rsplit(",", 3))
            found.append({"name": name, "load": int(load) / 100, "used": int(used) << 20, "memory": int(memory) << 20})
    return found
