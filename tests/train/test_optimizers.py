"""Optimisers against their formulas, and who is spared by weight decay."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from optax import contrib

from tengen import games, nets
from tengen.config.settings.train import OptimizerSettings
from tengen.nets import saving
from tengen.train import optimizers
from tengen.train.packing import Packing

SETTINGS = OptimizerSettings(momentum=0.8, square_momentum=0.9, weight_decay=0.1, clip=None)


def example() -> dict[str, jax.Array]:
    numbers = np.random.default_rng(0)
    sizes = {"a.conv.kernel": (3, 3, 2, 4), "a.norm.scale": (4,), "b.kernel": (4, 3), "b.bias": (3,)}
    return {name: jnp.asarray(numbers.normal(size=size), jnp.float32) for name, size in sizes.items()}


def changes(settings: OptimizerSettings, gradients: list[Any], parameters: Any) -> list[Any]:
    """What the optimiser says to each of the gradients; the parameters stay."""
    optimizer = optimizers.make(settings)
    state, said = optimizer.init(parameters), []
    for gradient in gradients:
        change, state = optimizer.update(gradient, state, parameters)
        said.append(change)
    return said


def gradients(count: int) -> list[dict[str, jax.Array]]:
    numbers = np.random.default_rng(1)
    return [
        {name: jnp.asarray(numbers.normal(size=x.shape), jnp.float32) for name, x in example().items()}
        for _ in range(count)
    ]


@pytest.mark.parametrize("kind", ["sgd", "adamw", "muon"])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_every_optimiser_starts_with_zeros(kind: Any, clip: float | None) -> None:
    settings = replace(SETTINGS, kind=kind, clip=clip)
    found, expected = optimizers.start(settings, example()), optimizers.make(settings).init(example())
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["adamw", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("sgd", "muon"))])
def test_decay_spares_norms_and_biases(kind: str) -> None:
    game = games.make("go", size=3)
    net = nnx.eval_shape(lambda: nets.build(nets.spec("b2c8-se", nets.possible_heads(game)), game, nnx.Rngs(0)))
    parameters = {name: jnp.ones(x.shape) for name, x in _shapes(net).items()}
    nothing = {name: jnp.zeros_like(x) for name, x in parameters.items()}
    (change,) = changes(replace(SETTINGS, kind=kind), [nothing], parameters)
    shrunk = {name for name, x in change.items() if np.asarray(x).any()}
    assert shrunk == {name for name, x in parameters.items() if name.endswith(".kernel")}
    assert all(parameters[name].ndim >= 2 for name in shrunk)
    spared = {name.rsplit(".", 1)[1] for name in set(parameters) - shrunk}
    assert spared == {"scale", "shift", "bias"}
    factor = -0.1 * (1.8 if kind == "sgd" else 1)  # Nesterov counts the first gradient twice, shrunk by the momentum
    for name in shrunk:
        np.testing.assert_allclose(change[name], factor, rtol=1e-5)


def _shapes(net: Any) -> dict[str, Any]:
    return {".".join(map(str, path)): leaf for path, leaf in nnx.to_flat_state(nnx.state(net, nnx.Param))}


def test_names_of_the_decayed_are_those_of_the_saved() -> None:
    net = nets.build(nets.spec("mlp1x4"), games.make("hironaka"), nnx.Rngs(0))
    named = saving.named(nnx.state(net, nnx.Param))
    assert {name for name, yes in optimizers.decayed(named).items() if not yes} == {
        name for name in named if name.endswith("bias")
    }


def test_sgd_against_its_formula() -> None:
    parameters, given = example(), gradients(3)
    found = changes(replace(SETTINGS, kind="sgd"), given, parameters)
    for name, parameter in parameters.items():
        decay = 0.1 if name.endswith("kernel") else 0
        velocity = np.zeros(parameter.shape)
        for gradient, change in zip(given, found, strict=True):
            pull = np.asarray(gradient[name]) + decay * np.asarray(parameter)
            velocity = 0.8 * velocity + pull
            np.testing.assert_allclose(change[name], -(pull + 0.8 * velocity), rtol=1e-5, atol=1e-6)


def test_adamw_against_its_formula() -> None:
    parameters, given = example(), gradients(3)
    found = changes(replace(SETTINGS, kind="adamw"), given, parameters)
    for name, parameter in parameters.items():
        decay = 0.1 if name.endswith("kernel") else 0
        first, second = np.zeros(parameter.shape), np.zeros(parameter.shape)
        for number, (gradient, change) in enumerate(zip(given, found, strict=True), start=1):
            pull = np.asarray(gradient[name], np.float64)
            first, second = 0.8 * first + 0.2 * pull, 0.9 * second + 0.1 * pull**2
            step = (first / (1 - 0.8**number)) / (np.sqrt(second / (1 - 0.9**number)) + 1e-8)
            np.testing.assert_allclose(change[name], -(step + decay * np.asarray(parameter)), rtol=1e-4, atol=1e-6)


def test_muon_makes_kernels_turn_and_leaves_vectors_to_adam() -> None:
    parameters, given = example(), gradients(1)
    (found,) = changes(replace(SETTINGS, kind="muon", weight_decay=0.0), given, parameters)
    (adam,) = changes(replace(SETTINGS, kind="adamw", weight_decay=0.0), given, parameters)
    for name in ("a.conv.kernel", "b.kernel"):
        matrix = np.asarray(found[name]).reshape(-1, found[name].shape[-1])
        sizes = np.linalg.svd(matrix, compute_uv=False)
        # Newton and Schulz in five steps bring singular values near each other, not onto each other.
        assert sizes.min() > 0.5 * sizes.max(), name
        assert np.sqrt(np.mean(matrix**2)) == pytest.approx(0.2, rel=0.5), name
    for name in ("a.norm.scale", "b.bias"):
        # Nesterov's first step is longer than Adam's, by a factor that is the same everywhere.
        factor = np.asarray(found[name]) / np.asarray(adam[name])
        np.testing.assert_allclose(factor, (1 + 0.8 / (1 + 0.8)), rtol=1e-3)


def test_muon_treats_each_kernel_by_itself() -> None:
    """Kernels of one shape are computed together, which must not show."""
    shape, settings = example()["a.conv.kernel"].shape, replace(SETTINGS, kind="muon")
    numbers = np.random.default_rng(2)
    three = [f"{name}.conv.kernel" for name in "zay"]  # not in the order of their names
    parameters = {name: jnp.asarray(numbers.normal(size=shape), jnp.float32) for name in three}
    given = [{name: jnp.asarray(size * x) for name, x in parameters.items()} for size in (1.0, -3.0)]
    together = changes(settings, given, parameters)
    for name in three:
        alone = changes(settings, [{name: each[name]} for each in given], {name: parameters[name]})
        for one, all_of_them in zip(alone, together, strict=True):
            np.testing.assert_allclose(all_of_them[name], one[name], rtol=1e-4, atol=1e-6)
    assert list(together[0]) == three


def test_muon_agrees_with_optax() -> None:
    parameters, given = example(), gradients(3)
    shapes = {
        name: contrib.MuonDimensionNumbers(tuple(range(x.ndim - 1)), x.ndim - 1) if name.endswith("kernel") else None
        for name, x in parameters.items()
    }
    other = contrib.muon(
        1.0,
        beta=0.8,
        weight_decay=0.1,
        adam_b1=0.8,
        adam_b2=0.9,
        consistent_rms=0.2,
        muon_weight_dimension_numbers=shapes,
    )
    state: Any = other.init(parameters)
    expected: Any
    for gradient, found in zip(given, changes(replace(SETTINGS, kind="muon"), given, parameters), strict=True):
        expected, state = other.update(gradient, state, parameters)
        for name, change in expected.items():
            np.testing.assert_allclose(found[name], change, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", ["sgd", "adamw", "muon"])
def test_packed_parameters_change_as_others_do(kind: str) -> None:
    parameters, given = example(), gradients(3)
    settings = replace(SETTINGS, kind=kind, clip=0.7)
    packing = Packing(parameters)
    optimizer, packed = optimizers.make(settings, packing), packing.pack(parameters)
    state = optimizer.init(packed)
    for gradient, expected in zip(given, changes(settings, given, parameters), strict=True):
        found, state = optimizer.update(packing.pack(gradient), state, packed)
        for name, change in packing.unpack(found).items():
            np.testing.assert_allclose(change, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_long_gradients_are_cut() -> None:
    parameters, given = example(), gradients(1)
    plain = replace(SETTINGS, kind="sgd", weight_decay=0.0, momentum=0.0)
    (whole,) = changes(plain, given, parameters)
    (cut,) = changes(replace(plain, clip=0.5), given, parameters)
    assert float(optax.tree.norm(whole)) > 1
    assert float(optax.tree.norm(cut)) == pytest.approx(0.5, rel=1e-5)
    (same,) = changes(replace(plain, clip=1000.0), given, parameters)
    jax.tree.map(np.testing.assert_array_equal, same, whole)
