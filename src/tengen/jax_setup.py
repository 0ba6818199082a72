"""Setting up JAX: checking for a device, caching compiled programs, and explaining a lack of device memory."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tengen import files
from tengen.errors import TengenError

_PLATFORMS = "JAX_PLATFORMS"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_USABLE = 0.9  # of a GPU's memory, by all processes on it together


def device_problem() -> str:
    """Why JAX cannot compute, in one line; empty if it can."""
    import jax

    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # AssertionError: JAX 0.10 where there is no GPU
        return _problem(str(error))
    return ""


def backend_elsewhere() -> str:
    """The backend of JAX, such as `cpu`, see `devices_elsewhere`."""
    return devices_elsewhere()[0]


def devices_elsewhere() -> tuple[str, int]:
    """JAX's backend and its number of devices, found in a child process: this one must not take the device's memory.

    Raises TengenError if it cannot compute.
    """
    program = "import jax; print(jax.default_backend(), jax.local_device_count())"
    environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ}
    words = [sys.executable, "-c", program]
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if found.returncode:
        lines = found.stderr.strip().splitlines()
        raise TengenError(_problem(lines[-1].partition(": ")[2] if lines else ""))
    name, count = found.stdout.split()[-2:]
    return name, int(count)


def restricted(backend: str, devices: Sequence[int], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Environment variables that show a new process only these devices, numbered as JAX finds them here."""
    if backend == "cpu":  # virtual devices, which are all alike
        flags = f"{environment.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={len(devices)}"
        return {"XLA_FLAGS": flags.strip()}
    names = [name.strip() for name in environment.get(_VISIBLE, "").split(",") if name.strip()]
    return {_VISIBLE: ",".join(names[number] if names else str(number) for number in devices)}


def nvidia_smi(*options: str, seconds: float = 30.0) -> list[str]:
    """The lines that nvidia-smi prints; none if there is no such program or it fails."""
    try:
        found = subprocess.run(["nvidia-smi", *options], capture_output=True, text=True, timeout=seconds, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return found.stdout.splitlines()


def gpu_share(gpus: float, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables with which a process sees no GPU (0), or takes only its share of a GPU's memory (below 1).

    Without the second one, the first process takes three quarters of the memory when it starts.
    """
    if not gpus:  # Ray does not hide GPUs from those who asked for none
        return {_VISIBLE: "", _PLATFORMS: "cpu"}
    return {_FRACTION: f"{_USABLE * gpus:.3g}"} if gpus < 1 and _FRACTION not in environment else {}


def use_gpus(gpus: float) -> None:
    """Limit this process as `gpu_share` says. JAX must not have been used yet."""
    os.environ.update(gpu_share(gpus))
    if not gpus and (jax := sys.modules.get("jax")) is not None:
        jax.config.update("jax_platforms", "cpu")


def cpu() -> Any:
    """The CPU as a device of JAX, to compute on beside an accelerator; None if JAX was told to leave it alone."""
    import jax

    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


def device_memory() -> int | None:
    """Bytes of the device's memory for programs, or of the machine's if it computes on the CPU; None if unknown."""
    import jax

    known = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    return machine_memory() if known is None and jax.default_backend() == "cpu" else known


def machine_memory() -> int | None:
    """Bytes of the machine's memory that this process may use; None if unknown."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    return min([there, *_allowed_by_container()])


def _allowed_by_container() -> list[int]:
    """The limit of this process's memory in bytes, if Linux sets one."""
    for path in _LIMITS:
        with contextlib.suppress(TengenError, OSError, ValueError):
            return [int(files.read_text(path))]  # "max" if there is none
    return []


def check_device_elsewhere() -> None:
    """TengenError if child processes will not find the device that JAX_PLATFORMS names."""
    if os.environ.get(_PLATFORMS, "").lower() not in ("", "cpu"):
        backend_elsewhere()


def _problem(error: str) -> str:
    asked = os.environ.get(_PLATFORMS, "")
    why = error.strip().splitlines()[0].partition(" (set JAX_PLATFORMS")[0][:300] if error.strip() else ""
    if not asked:
        return f"JAX finds no device to compute on{f': {why}' if why else ''}"
    reason = f": {why}" if why else ", because there is none here or JAX is installed without support for it"
    return f"{_PLATFORMS}={asked}: JAX cannot use that device{reason}; unset {_PLATFORMS}, or set it to cpu"


def keep_compiled() -> None:
    """Cache compiled programs in the user's cache folder, unless JAX is configured otherwise.

    Raises TengenError if there is no device, so commands call this before they write anything.
    """
    import jax

    if problem := device_problem():
        raise TengenError(problem)
    if not jax.config.values.get("jax_compilation_cache_dir"):
        jax.config.update("jax_compilation_cache_dir", str(files.cache_folder() / "jax"))
        # The many small programs of a start take long together.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@contextlib.contextmanager
def explaining_memory(
    lower: str = "selfplay.games, search.simulations, train.batch or data.ring_rows",
) -> Iterator[None]:
    """Around work on the device: a TengenError if it has too little memory, naming the settings to `lower`."""
    import jax

    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        first = str(error).strip().splitlines()[0][:200]
        raise TengenError(
            f"the device has too little memory ({first}): lower {lower}, or end other programs that use it"
        ) from error
