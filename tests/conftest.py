"""What all tests share."""

import contextlib
import ctypes
import gc
import os
import random
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jax
import jaxtyping
import pytest

from tengen.gpu import program
from tests.helpers import emulator, shapes
from tests.helpers.compilations import QUICKLY

pytest_plugins = ["tests.helpers.fixtures"]

# Checks the declared shapes and types of these modules, in tests alone: the hook changes modules as they are imported.
_CHECKED = ("games", "nets", "search", "data.format.rows", "data.store.buffer", "train.losses")
_CHECKED += ("selfplay.history", "selfplay.openings", "match.device_match")
_CHECKED += ("roles.games", "roles.replay", "context.thinking")
jaxtyping.install_import_hook([f"tengen.{name}" for name in _CHECKED], f"{shapes.__name__}.checked")

# Compiling is what takes long here: a cache outside the repository makes the second run quick.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tengen" / "jax"
jax.config.update("jax_compilation_cache_dir", str(_CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

# Several processes share the GPU, where there is one: none of them may take most of its memory at the start.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def pytest_configure(config: pytest.Config) -> None:
    """Run the tests on the CPU, unless `-m gpu` asks for those that need a GPU or `JAX_PLATFORMS` says otherwise.

    Figures and shapes in the tests are those of the CPU, and a GPU has no memory for many processes that each compile
    hundreds of programs. Programs that tests start inherit the choice.
    """
    wanted = config.option.markexpr
    if not re.search(r"(?<!not )\bgpu\b", wanted) and "JAX_PLATFORMS" not in os.environ:
        os.environ["JAX_PLATFORMS"] = "cpu"
        jax.config.update("jax_platforms", "cpu")
    # The long tests are compiled as they are for users, and with them all others (`make test-all`).
    if "not slow" in wanted and os.environ.get("JAX_PLATFORMS") == "cpu":
        os.environ["XLA_FLAGS"] = f"{QUICKLY} {os.environ.get('XLA_FLAGS', '')}"
        hypothesis.settings.load_profile("quick")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need a GPU where JAX does not use one."""
    if item.get_closest_marker("gpu") and jax.default_backend() != "gpu":
        pytest.skip("needs an NVIDIA GPU; where there is one, `make test-gpu` runs it")


# The first example compiles, so a limit on the time of one example would fail on slow machines only.
hypothesis.settings.register_profile("tengen", deadline=None)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=40, derandomize=True)
hypothesis.settings.load_profile("tengen")


# Files with few long tests: they come first, or one process would work on the last of them while the other has nothing.
_LONG = ("test_kills", "test_sweep", "test_run", "test_lanes", "test_sync", "test_part", "test_tui", "test_learner")
_LONG += ("test_browser",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole files stay together and in order; the long ones go to the front."""
    items.sort(key=lambda item: _LONG.index(item.path.stem) if item.path.stem in _LONG else len(_LONG))


def pytest_collection_finish() -> None:
    """Leave what was imported out of all later garbage collections: it stays, and there is much of it."""
    gc.collect()
    gc.freeze()


# Of the 65,530 pieces of memory that Linux lets a process have, every compiled program takes about nine; a process
# without any left dies in the middle of loading the next one.
_MOST_PIECES = 52_000
_MOST_MEMORY = 2_500_000_000  # bytes, so that several processes fit into a small machine
_MORE_MEMORY = 500_000_000  # bytes by which a process that stays above that grows before programs are forgotten again
_kept_memory = [0]  # when they were last forgotten


@pytest.fixture(scope="module", autouse=True)
def few_programs() -> Iterator[None]:
    """Forget compiled programs before there are too many of them for one process, or for the memory."""
    yield
    with contextlib.suppress(OSError, AttributeError):  # only Linux tells, and only its usual C library trims
        pieces = Path("/proc/self/maps").read_bytes().count(b"\n")
        if pieces > _MOST_PIECES or _memory() > max(_MOST_MEMORY, _kept_memory[0] + _MORE_MEMORY):
            jax.clear_caches()
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)  # otherwise the library keeps what was freed
            _kept_memory[0] = _memory()


def _memory() -> int:
    """Bytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


program.emulate_with(emulator.run)


@pytest.fixture(autouse=True)
def same_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of this process play the same games each time that a test runs, not new ones with each start."""
    monkeypatch.setattr(secrets, "randbits", random.Random(1).getrandbits)


@pytest.fixture
def emulated_gpu(request: pytest.FixtureRequest) -> None:
    """For tests that run GPU programs on this machine's CPU; those of a GPU in the same file need no emulator."""
    if request.node.get_closest_marker("gpu"):
        return
    if not emulator.is_available():
        pytest.skip("g++ is not installed, which compiles the GPU programs for the emulator")
