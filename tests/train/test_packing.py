"""Tensors as few arrays and back."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from tengen.train.packing import Packing, is_kernel, stacks


def tensors() -> dict[str, Any]:
    numbers = np.random.default_rng(0)
    shapes = {
        "a.kernel": (3, 3, 2, 4),
        "a.scale": (4,),
        "b.kernel": (1, 1, 4, 5),
        "c.kernel": (5, 2),
        "c.bias": (2,),
        "d.kernel": (2, 7),
    }
    found: dict[str, Any] = {
        name: jnp.asarray(numbers.normal(size=shape), jnp.float32) for name, shape in shapes.items()
    }
    return found | {"count": jnp.int32(3)}


def test_unpacking_gives_back_what_was_packed() -> None:
    given = tensors()
    packing = Packing(given)
    packed = packing.pack(given)
    assert {name: array.shape for name, array in packed.items()} == {
        "*stack0": (4, 4, 18),
        "*vector": (4 + 2,),
        "count": (),
    }
    found = packing.unpack(packed)
    assert found.keys() == given.keys()
    for name, value in given.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_a_stack_holds_matrices_and_zeros() -> None:
    kernel = tensors()["a.kernel"]
    (stack,) = stacks({"a.kernel": kernel.shape, "e.kernel": (3, 3, 1, 4)})
    packed = stack.pack({"a.kernel": kernel, "e.kernel": kernel[:, :, :1]})
    np.testing.assert_array_equal(packed[0], np.asarray(kernel).reshape(18, 4).T)
    np.testing.assert_array_equal(packed[1, :, :9], np.asarray(kernel)[:, :, 0].reshape(9, 4).T)
    assert not packed[1, :, 9:].any()
    np.testing.assert_array_equal(stack.longest.ravel(), [18, 9])


def test_stacks_are_few_and_not_much_larger_than_their_kernels() -> None:
    wide = {f"{n}.kernel": (3, 3, 96, 96) for n in range(10)}
    small = {"x.kernel": (96, 2), "y.kernel": (64, 1), "z.kernel": (11, 96)}
    (only,) = stacks(wide | small)
    assert list(only.shapes) == [*sorted(wide), "z.kernel", "x.kernel", "y.kernel"]
    assert (only.rows, only.columns) == (96, 864)
    assert len(stacks({"a.kernel": (1000, 1000), **small})) == 2


def test_kernels_are_told_from_other_tensors_packed_or_not() -> None:
    given = tensors()
    assert [name for name, tensor in given.items() if is_kernel(name, tensor)] == [
        name for name in given if name.endswith(".kernel")
    ]
    packed = Packing(given).pack(given)
    assert [name for name, array in packed.items() if is_kernel(name, array)] == ["*stack0"]


def test_the_dictionaries_of_an_optimiser_are_packed_and_unpacked() -> None:
    given = {name: tensor for name, tensor in tensors().items() if name != "count"}
    packing = Packing(given)
    others = {name: tensor for name, tensor in given.items() if not is_kernel(name, tensor)}
    state = (jnp.int32(7), {"mu": given, "nu": others}, None)
    packed = packing.everywhere(packing.pack, state)
    assert packed[1]["mu"].keys() == {"*stack0", "*vector"}
    assert packed[1]["nu"].keys() == {"*vector"}
    found = packing.everywhere(packing.unpack, packed)
    assert (found[1]["mu"].keys(), found[1]["nu"].keys()) == (given.keys(), others.keys())
    np.testing.assert_array_equal(found[1]["mu"]["a.kernel"], given["a.kernel"])
