"""What all tests share: a compilation cache outside the repository, so that a second run is quick."""

import os
from pathlib import Path

import jax

_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tengen" / "jax"
jax.config.update("jax_compilation_cache_dir", str(_CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
