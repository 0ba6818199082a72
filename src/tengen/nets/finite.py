"""Whether numbers are finite. A network or a training with others is never saved, and never gone on from."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np


def first_bad(arrays: Mapping[str, Any]) -> str:
    """The name of the first array that holds a number that is not finite; empty if there is none."""
    for name, array in arrays.items():
        if jnp.issubdtype(array.dtype, jnp.floating) and not np.isfinite(np.asarray(array)).all():
            return name
    return ""
