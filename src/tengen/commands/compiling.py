"""Compiled programs are kept for the next time; and what to tell a person whose device is too small for them."""

import contextlib
from collections.abc import Iterator

from tengen import files
from tengen.errors import TengenError


def keep_compiled() -> None:
    """Let JAX keep what it compiles in the user's cache folder, unless the user has said where."""
    import jax

    if not jax.config.values.get("jax_compilation_cache_dir"):
        jax.config.update("jax_compilation_cache_dir", str(files.cache_folder() / "jax"))
        # The many small programs of a start take long together.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@contextlib.contextmanager
def explaining_memory(
    lower: str = "selfplay.games, search.simulations, train.batch or data.ring_rows",
) -> Iterator[None]:
    """Around work on the device: an error for people if its memory is not enough, and what they may `lower`."""
    import jax

    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        first = str(error).strip().splitlines()[0][:200]
        raise TengenError(
            f"the device has not enough memory ({first}): lower {lower}, or end other programs that use it"
        ) from error
