"""A JAX function as an ONNX graph.

The function is traced for two batches of different size. Whatever differs between the two depends on the batch, so that
the graph can say "the batch" there, for functions that were written without it in mind.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core
import numpy as np

from tengen.errors import TengenError
from tengen.interop.onnx import operations
from tengen.interop.onnx.graph import OnnxGraph, Tensor

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
    """The results of one equation."""
    key = next((key for key in _INLINED if key in equation.params), None)
    if key is not None and equation.primitive.name not in ("scan", "while"):
        inner, its_twin = (_closed(part.params[key]) for part in (equation, twin))
        return _run(graph, inner, its_twin, inputs)
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
        return [Tensor(name, shape, dtype, broadcast=all(_is_small(tensor, shape) for tensor in inputs))]
    found = operations.whole(graph, equation, inputs, outputs)
    return [Tensor(name, out.shape, out.dtype) for name, out in zip(found, outputs, strict=True)]


def _is_small(tensor: Tensor, shape: tuple[int, ...]) -> bool:
    return tensor.broadcast or tensor.shape != shape


def _closed(jaxpr: Any) -> Any:
    return jaxpr if hasattr(jaxpr, "consts") else jax.extend.core.ClosedJaxpr(jaxpr, ())


def _constant(value: Any, twin: Any = None) -> Tensor:
    array = np.asarray(value)
    if twin is not None and not np.array_equal(array, np.asarray(twin), equal_nan=array.dtype.kind == "f"):
        raise TengenError("the network computes with the size of the batch, so it cannot take any number of positions")
    return Tensor("", array.shape, array.dtype.name, array)


def _shape(one: Any, other: Any) -> tuple[int, ...]:
    """The shape in which -k is k times the batch."""
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
