"""Compiled programs are kept for the next time."""

import os
from pathlib import Path


def keep_compiled() -> None:
    """Let JAX keep what it compiles in the user's cache folder, unless the user has said where."""
    import jax

    if not jax.config.values.get("jax_compilation_cache_dir"):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tengen" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
