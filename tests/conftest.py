"""What all tests share."""

import os
from pathlib import Path

import hypothesis
import jax

# Compiling is what takes long here: a cache outside the repository makes the second run quick.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tengen" / "jax"
jax.config.update("jax_compilation_cache_dir", str(_CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)

# The first example compiles, so a limit on the time of one example would fail on slow machines only.
hypothesis.settings.register_profile("tengen", deadline=None)
hypothesis.settings.load_profile("tengen")
