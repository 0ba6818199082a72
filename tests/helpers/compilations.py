"""What XLA compiles, on whatever thread, and how to make it quick."""

import threading
from typing import Any

import jax

QUICKLY = "--xla_backend_optimization_level=0"
"""Flags of XLA for tests that compile much and run little: compiling for CPUs is three times as quick."""
if jax.__version_info__ < (0, 11):  # later versions end the process if they are given this option
    QUICKLY += " --xla_cpu_use_fusion_emitters=false"

_EVENT = "/jax/core/compile/backend_compile_duration"


class Compilations:
    """Listens from now on; JAX has no way to stop."""

    def __init__(self) -> None:
        self.programs: list[tuple[str, str]] = []  # the compiled function, and the name of the thread
        jax.monitoring.register_event_duration_secs_listener(self._heard)

    @property
    def count(self) -> int:
        return len(self.programs)

    def of(self, function: str) -> list[str]:
        """The threads that compiled a function of this name."""
        return [thread for name, thread in self.programs if name.removeprefix("jit(").removesuffix(")") == function]

    def _heard(self, name: str, seconds: float, **more: Any) -> None:
        if name == _EVENT:
            self.programs.append((str(more.get("fun_name")), threading.current_thread().name))
