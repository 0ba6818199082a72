"""The GPU program for scale, shift and activation."""

import jax
import jax.numpy as jnp
import numpy as np

from tengen.nets import affine_kernel


def test_the_same_as_by_hand_where_rows_do_not_fill_the_last_program() -> None:
    numbers = np.random.default_rng(0)
    x = numbers.normal(size=(3, 5, 5, 96)).astype(np.float32)
    scale, shift = numbers.normal(size=(2, 96)).astype(np.float32)
    run = jax.jit(lambda *args: affine_kernel.run(*args, activation="relu", interpret=True))
    assert affine_kernel.suits(jnp.asarray(x))
    np.testing.assert_allclose(run(x, scale, shift), np.maximum(x * scale + shift, 0), rtol=1e-5, atol=1e-6)
    assert not affine_kernel.suits(jnp.zeros((1, 1, 1, 40)))
