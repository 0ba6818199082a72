"""GPU programs: compiling for each architecture, calls inside `jit`, and what happens without a GPU or a compiler."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.extend.core import jaxprs_in_params

from tengen import games, nets, search
from tengen.config.settings.search import SearchSettings
from tengen.errors import TengenError
from tengen.gpu import program
from tengen.gpu.program import Program, call, defines
from tests.helpers.nvrtc import is_available as nvrtc_is_available

AFFINE = Program(
    "nets/board.cu",
    "affine",
    threads=128,
    defines=defines(
        TYPE="float", WEIGHT="float", THREADS=128, CHANNELS=32, ACTIVATION=0, VECTOR=4, ROWS=8, REPEATS=1, AFFINE=True
    ),
)
needs_nvrtc = pytest.mark.skipif(
    not nvrtc_is_available(), reason="NVRTC is not installed (pip install nvidia-cuda-nvrtc)"
)


def programs_of(function: Any, *inputs: Any) -> set[Program]:
    """All programs that a function may call on a GPU."""
    found: set[Program] = set()

    def search_in(jaxpr: Any) -> None:
        for equation in jaxpr.eqns:
            if "launch" in equation.params:
                found.add(equation.params["launch"].program)
            for inner in jaxprs_in_params(equation.params):
                search_in(inner)

    search_in(jax.make_jaxpr(function)(*inputs).jaxpr)
    return found


def all_programs() -> set[Program]:
    """The programs of a search in 9x9 Go with points, one in a game with many moves, and those of a network."""
    found: set[Program] = set()
    of_go, of_hex = SearchSettings(simulations=8, score_weight=0.4), SearchSettings(algorithm="puct", simulations=8)
    for game, settings in ((games.make("go", size=9), of_go), (games.make("hex", size=13), of_hex)):

        def simulate(keys: Any, game: Any = game, settings: Any = settings) -> Any:
            states, everywhere = jax.vmap(game.init)(keys), jnp.ones(4, bool)
            tree = search.begin(search.plant(game, settings, states), keys[0], jnp.full(4, 8), everywhere)
            leaves = search.select(tree)
            tree = search.expand(tree, leaves, nets.Evaluation(jnp.zeros((4, game.num_actions)), jnp.zeros(4)))
            return search.restart(tree, states, everywhere)

        found |= programs_of(simulate, jax.random.split(jax.random.key(0), 4))
    return found | of_network("b3c96-mish", 9)


def of_network(name: str, size: int) -> set[Program]:
    """The programs of a folded network for Go."""
    game = games.make("go", size=size)
    spec = nets.spec(name, nets.possible_heads(game))
    net = nnx.eval_shape(lambda: nets.fold(nets.build(spec, game, nnx.Rngs(0)), "bfloat16"))
    graph, state = nnx.split(net)
    inputs = jax.ShapeDtypeStruct((4, *game.planes_shape), bool), jax.ShapeDtypeStruct((4, 11), jnp.float32)
    return programs_of(lambda state, *inputs: nnx.merge(graph, state)(*inputs), state, *inputs)


@needs_nvrtc
def test_every_program_compiles_for_the_oldest_and_the_newest_architecture() -> None:
    found = all_programs()
    entries = {"go_move_and_look", "tree_walk", "tree_expand", "tree_plan", "tree_root", "affine", "pool_bias", "heads"}
    assert {each.entry for each in found} == entries
    for each in found:
        for capability in (program.OLDEST, 120):
            text = program.ptx(each, capability)
            assert f".entry {each.entry}(" in text
            assert f".target sm_{capability}" in text


@needs_nvrtc
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in nets.names() if name.startswith("b")])
def test_the_programs_of_every_listed_network_compile(name: str) -> None:
    found = of_network(name, 9) | of_network(name, 19)
    assert {each.entry for each in found} == {"affine", "pool_bias", "heads"}
    for each in found:
        program.ptx(each, program.OLDEST)


@needs_nvrtc
@pytest.mark.parametrize("capability", [80, 86, 89, 90, 100, 120])
def test_ampere_ada_hopper_and_blackwell(capability: int) -> None:
    assert f".target sm_{capability}" in program.ptx(AFFINE, capability)


@needs_nvrtc
def test_a_program_that_is_wrong_is_named_with_its_line() -> None:
    with pytest.raises(program.CompilerError, match=r"games/x\.cu: the CUDA compiler rejects(.|\n)*games/x\.cu\(1\)"):
        program.compile_ptx("this is no program", "games/x.cu", ["--gpu-architecture=compute_80"])


def test_without_the_compiler_one_learns_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_candidates", lambda: iter(["/nowhere/libnvrtc.so.13"]))
    program._library.cache_clear()
    try:
        assert not nvrtc_is_available()
        with pytest.raises(program.CompilerError, match=r"pip install 'tengen-zero\[cuda\]'"):
            program.compile_ptx("", "x.cu", [])
    finally:
        program._library.cache_clear()


def affine(x: Any) -> Any:
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return call(AFFINE, [x, jnp.full(32, 2.0), jnp.full(32, -1.0)], [shape], blocks=1)[0]


def test_on_a_cpu_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_emulator", None)
    with pytest.raises(TengenError, match="program for NVIDIA GPUs"):
        jax.jit(affine)(jnp.zeros((8, 32)))


@pytest.mark.usefixtures("emulated_gpu")
def test_a_call_in_a_compiled_loop_and_alone() -> None:
    x = np.linspace(-3, 3, 256, dtype=np.float32).reshape(8, 32)
    expected = x
    for _ in range(3):
        expected = np.maximum(2 * expected - 1, 0)
    found = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, x: affine(x), x))(x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(affine(jnp.asarray(x)), np.maximum(2 * x - 1, 0))


@pytest.mark.gpu
def test_a_gpu_runs_programs_without_a_warning() -> None:
    x = np.linspace(-3, 3, 256, dtype=np.float32).reshape(8, 32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, x: affine(x), x))(x)
    expected = x
    for _ in range(3):
        expected = np.maximum(2 * expected - 1, 0)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "size"), [("b6c96", 9), ("b10c128", 19), ("b3c64nbt-silu", 5)])
def test_a_network_says_the_same_with_and_without_programs(name: str, size: int) -> None:
    game = games.make("go", size=size)
    spec = nets.spec(name, nets.possible_heads(game))
    planes = jax.random.bernoulli(jax.random.key(0), 0.3, (8, *game.planes_shape)).at[..., 0].set(True)
    scalars = jax.random.normal(jax.random.key(1), (8, game.num_scalars))
    said = []
    for kernels in (True, False):
        graph, state = nnx.split(nets.fold(nets.build(spec, game, nnx.Rngs(0)), "float32", kernels=kernels))
        look = jax.jit(lambda state, *inputs, graph=graph: nnx.merge(graph, state)(*inputs))
        said.append(look(state, planes, scalars))
    # Convolutions of float32 numbers round to fewer digits on GPUs.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0.01, atol=0.01), *said)
