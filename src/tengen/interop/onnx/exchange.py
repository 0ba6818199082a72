"""Exporting networks as ONNX, and checking the file with ONNX Runtime.

The network is traced for two batches of different size. Whatever differs between the two depends on the batch, so that
the graph can say "the batch" there, for functions that were written without it in mind.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from tengen import files, nets
from tengen.errors import TengenError
from tengen.games import players
from tengen.games.core import Game, Observation
from tengen.interop.onnx import operations
from tengen.interop.onnx.graph import OnnxGraph, Tensor
from tengen.nets import saving
from tengen.nets.evaluators import evaluator
from tengen.nets.network import Network

ENDING = ".onnx"
TOLERANCE = 1e-4
_GAMES, _MOVES = 7, 12  # random games, and moves of each, whose positions the file is checked with


def export(network: Path, name: str, out: Path) -> list[str]:
    """Writes the network as a file of ONNX. Returns what its user should know, line by line."""
    if out.suffix != ENDING:
        raise TengenError(f"{out}: expected a name that ends in {ENDING}")
    saved = saving.read(network)
    game = saved.make_game()
    net = saving.load(network, game, dtype="float32")
    about = {"game": {"name": game.name, "version": game.version, "options": asdict(game.options)},
             "spec": saved.spec.to_dict(), "info": saved.info}  # fmt: skip
    try:
        data = to_onnx(net, game, name, about)
    except TengenError as error:
        raise TengenError(f"{name}: {error}") from None
    note = check(data, net, game, name)
    files.write_bytes(out, data)
    return [note]


def to_onnx(net: Network, game: Game, name: str, about: Mapping[str, Any]) -> bytes:
    """The file of a network. It takes any number of positions and has an output for each head, all float32."""
    return trace(_outputs(net, game), _inputs(game)).file(name, {"tengen": json.dumps(about)})


def check(data: bytes, net: Network, game: Game, name: str) -> str:
    """Compares the file with the network on positions of random games, and returns the result in words.

    Raises TengenError if an output differs by more than TOLERANCE. Without ONNX Runtime nothing is compared.
    """
    try:
        import onnxruntime  # type: ignore[reportMissingImports]
    except ModuleNotFoundError:
        return "not checked, because onnxruntime is not installed (pip install onnxruntime)"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    seen = _positions(game)
    folded, params = evaluator(nets.fold(net, "float32", kernels=False))
    with jax.default_matmul_precision("float32"):
        expected = jax.jit(folded.outputs)(params, seen).by_name()
    given = {key: np.asarray(getattr(seen, key), np.float32) for key in _inputs(game)}
    largest = 0.0
    for count in (1, _GAMES):
        found = session.run(names, {key: value[:count] for key, value in given.items()})
        for key, value in zip(names, map(np.asarray, found), strict=True):
            right = np.asarray(expected[key], np.float64)[:count]
            # Scores and moves are large numbers: what counts there is the relative difference.
            off = float(np.max(np.abs(value - right) / np.maximum(np.abs(right), 1), initial=0))
            if value.shape != right.shape or not off <= TOLERANCE:
                raise TengenError(f"{name}: not written, because ONNX Runtime's {key} differs by {off:.2g}")
            largest = max(largest, off)
    return f"ONNX Runtime gives the same outputs, within {largest:.1g}, on {_GAMES} random positions"


def _inputs(game: Game) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and type of each input for one position; those without numbers are left out."""
    given = {"planes": game.planes_shape, "scalars": (game.num_scalars,)}
    return {name: (shape, "float32") for name, shape in given.items() if shape[-1]}


def _outputs(net: Network, game: Game) -> Callable[..., dict[str, Array]]:
    """The network as a function of its inputs, in the order of `_inputs`, to its outputs by name."""
    graph, state = nnx.split(nets.fold(net, "float32", kernels=False))
    names = list(_inputs(game))

    def look(*given: Array) -> dict[str, Array]:
        seen = dict(zip(names, given, strict=True))
        planes = seen["planes"] != 0 if "planes" in seen else jnp.zeros((len(given[0]), *game.planes_shape), bool)
        scalars = seen.get("scalars", jnp.zeros((len(given[0]), 0)))
        return nnx.merge(graph, state)(planes, scalars).by_name()

    return look


def _positions(game: Game) -> Observation:
    def move(state: Any, key: Array) -> Any:
        legal = jax.vmap(game.legal_actions)(state)
        after = jax.vmap(game.step)(state, players.draw(key, legal))
        return jax.vmap(lambda over, old, new: jax.tree.map(lambda *pair: jnp.where(over, *pair), old, new))(
            jax.vmap(game.is_over)(after), state, after
        )

    state = jax.vmap(game.init)(jax.random.split(jax.random.key(0), _GAMES))
    step = jax.jit(move)
    for key in jax.random.split(jax.random.key(1), _MOVES):
        state = step(state, key)
    return jax.jit(jax.vmap(game.observe))(state)


_BATCHES = (1009, 1013)  # primes, and larger than any dimension of a game
_INLINED = ("jaxpr", "call_jaxpr", "fun_jaxpr")


def trace(
    function: Callable[..., Mapping[str, jax.Array]], inputs: Mapping[str, tuple[tuple[int, ...], str]]
) -> OnnxGraph:
    """The graph of `function`, whose arguments are the inputs: the shape of one position and the type, by name.

    Raises TengenError if the function uses something that ONNX does not have, or treats a batch as a whole.
    """
    traces, names = [], []
    for batch in _BATCHES:
        given = [jax.ShapeDtypeStruct((batch, *shape), dtype) for shape, dtype in inputs.values()]
        closed, found = jax.make_jaxpr(function, return_shape=True)(*given)
        traces.append(closed)
        names = list(found)
    graph = OnnxGraph()
    arguments = [graph.input(name, (-1, *shape), dtype) for name, (shape, dtype) in inputs.items()]
    # A dictionary's outputs come in the order of its sorted names.
    for name, tensor in zip(sorted(names), _run(graph, traces[0], traces[1], arguments), strict=True):
        graph.output(name, tensor)
    return graph


def _run(graph: OnnxGraph, first: Any, second: Any, arguments: Sequence[Tensor]) -> list[Tensor]:
    """The results of a closed jaxpr; `second` is the same one for the other batch."""
    known = dict(zip(first.jaxpr.invars, arguments, strict=True))
    for variable, one, other in zip(first.jaxpr.constvars, first.consts, second.consts, strict=True):
        known[variable] = _constant(one, other)

    def look(variable: Any, twin: Any) -> Tensor:
        return _constant(variable.val, twin.val) if hasattr(variable, "val") else known[variable]

    if len(first.jaxpr.eqns) != len(second.jaxpr.eqns):
        raise TengenError("the network computes differently for batches of different size")
    for equation, twin in zip(first.jaxpr.eqns, second.jaxpr.eqns, strict=True):
        inputs = [look(*pair) for pair in zip(equation.invars, twin.invars, strict=True)]
        for variable, result in zip(equation.outvars, _apply(graph, equation, twin, inputs), strict=True):
            known[variable] = result
    return [look(*pair) for pair in zip(first.jaxpr.outvars, second.jaxpr.outvars, strict=True)]


def _apply(graph: OnnxGraph, equation: Any, twin: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
    key = next((key for key in _INLINED if key in equation.params), None)
    if key is not None and equation.primitive.name not in ("scan", "while"):
        found = (part.params[key] for part in (equation, twin))
        inner = [each if hasattr(each, "consts") else jax.extend.core.ClosedJaxpr(each, ()) for each in found]
        return _run(graph, inner[0], inner[1], inputs)
    pairs = zip(equation.outvars, twin.outvars, strict=True)
    outputs = [Tensor("", _shape(one.aval, other.aval), one.aval.dtype.name) for one, other in pairs]
    if equation.primitive.name == "broadcast_in_dim":
        return [operations.spread(graph, equation, inputs[0], outputs[0].shape)]
    if inputs and all(tensor.constant is not None and not tensor.broadcast for tensor in inputs):
        found = equation.primitive.bind(*(tensor.constant for tensor in inputs), **equation.params)
        return [_constant(value) for value in (found if equation.primitive.multiple_results else [found])]
    name = operations.elementwise(graph, equation, inputs)
    if name is not None:
        shape, dtype = outputs[0].shape, outputs[0].dtype
        small = all(tensor.broadcast or tensor.shape != shape for tensor in inputs)
        return [Tensor(name, shape, dtype, broadcast=small)]
    found = operations.whole(graph, equation, inputs, outputs)
    return [Tensor(name, out.shape, out.dtype) for name, out in zip(found, outputs, strict=True)]


def _constant(value: Any, twin: Any = None) -> Tensor:
    array = np.asarray(value)
    if twin is not None and not np.array_equal(array, np.asarray(twin), equal_nan=array.dtype.kind == "f"):
        raise TengenError("the network computes with the size of the batch, so it cannot take any number of positions")
    return Tensor("", array.shape, array.dtype.name, array)


def _shape(one: Any, other: Any) -> tuple[int, ...]:
    """The shape, in which -k stands for k times the batch size."""
    found = []
    for size, its_twin in zip(one.shape, other.shape, strict=True):
        if size == its_twin:
            found.append(size)
            continue
        times = size // _BATCHES[0]
        if (size, its_twin) != (times * _BATCHES[0], times * _BATCHES[1]):
            raise TengenError("the network computes with the size of the batch in a way that ONNX does not know")
        found.append(-times)
    return tuple(found)
