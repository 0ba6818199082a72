"""Tensors as vectors and back."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from tengen.train import packing
from tengen.train.packing import Packing


def tensors() -> dict[str, Any]:
    numbers = np.random.default_rng(0)
    shapes = {"a.kernel": (3, 3, 2, 4), "a.scale": (4,), "b.kernel": (1, 1, 4, 5), "c.kernel": (5, 2), "c.bias": (2,)}
    found: dict[str, Any] = {name: numbers.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return found | {"count": np.int32(3)}


def test_unpacking_gives_back_what_was_packed() -> None:
    given = tensors()
    pack = Packing(given)
    packed = pack.pack({name: jnp.asarray(value) for name, value in given.items()})
    assert {name: np.shape(value) for name, value in packed.items()} == {
        "*kernels": (3 * 3 * 2 * 4 + 4 * 5 + 5 * 2,),
        "*others": (4 + 2,),
        "count": (),
    }
    found = pack.unpack(packed)
    assert found.keys() == given.keys()
    for name, value in given.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_kernels_decay_and_nothing_else() -> None:
    packed = Packing(tensors()).pack({name: jnp.asarray(value) for name, value in tensors().items()})
    assert packing.decayed(packed) == {"*kernels": True, "*others": False, "count": False}


def test_the_dictionaries_of_an_optimiser_are_packed_and_unpacked() -> None:
    given = {name: jnp.asarray(value) for name, value in tensors().items()}
    pack = Packing(given)
    state = (jnp.int32(7), {"mu": given, "nu": given}, None)
    packed = pack.everywhere(pack.pack, state)
    assert packed[1]["mu"].keys() == {"*kernels", "*others", "count"}
    found = pack.everywhere(pack.unpack, packed)
    assert found[1]["nu"].keys() == given.keys()
    np.testing.assert_array_equal(found[1]["nu"]["a.kernel"], given["a.kernel"])
