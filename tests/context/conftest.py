"""Contexts that are compiled quickly rather than well."""

from collections.abc import Iterator
from typing import Any

import jax
import pytest

from tengen.context import program
from tengen.games.batching import quick_options


@pytest.fixture(autouse=True, scope="session")
def _quickly() -> Iterator[None]:
    def compiled(function: Any, *shapes: Any, donate: Any = ()) -> Any:
        return jax.jit(function, donate_argnums=donate).lower(*shapes).compile(quick_options())

    usual, program.compiled = program.compiled, compiled
    yield
    program.compiled = usual
