"""JAX's operations as ONNX's: one function, or a line of a table, for each.

A function takes the graph, the equation and its inputs, and returns the names of the results. In shapes, -k is k times
the batch (`graph.Tensor`).
"""

import math
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tengen.errors import TengenError
from tengen.interop.onnx.graph import OnnxGraph, Tensor, type_number

Operation = Callable[[OnnxGraph, Any, Sequence[Tensor], Sequence[Tensor]], Sequence[str]]

# Operations on each number; both sides broadcast, so nothing needs its whole shape.
ELEMENTWISE: Mapping[str, str] = {
    "abs": "Abs", "add": "Add", "add_any": "Add", "and": "And", "ceil": "Ceil", "copy": "Identity", "cos": "Cos",
    "div": "Div", "eq": "Equal", "erf": "Erf", "exp": "Exp", "floor": "Floor", "ge": "GreaterOrEqual", "gt": "Greater",
    "le": "LessOrEqual", "log": "Log", "logistic": "Sigmoid", "lt": "Less", "max": "Max", "min": "Min", "mul": "Mul",
    "neg": "Neg", "not": "Not", "or": "Or", "pow": "Pow", "round": "Round", "sign": "Sign", "sin": "Sin",
    "sqrt": "Sqrt", "stop_gradient": "Identity", "sub": "Sub", "tan": "Tan", "tanh": "Tanh", "xor": "Xor",
}  # fmt: skip
_REDUCTIONS = {"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin",
               "reduce_prod": "ReduceProd"}  # fmt: skip
_ON_BOOLS = {"and", "or", "not", "xor"}
_END = 2**31 - 1


def elementwise(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor]) -> str | None:
    """The result of an operation on each number, or None if the operation is another one."""
    name = equation.primitive.name
    if name in ELEMENTWISE and not (name in _ON_BOOLS and inputs[0].dtype != "bool"):
        return graph.node(ELEMENTWISE[name], inputs)
    like = equation.outvars[0].aval.dtype.name
    match name:
        case "ne":
            return graph.node("Not", [graph.node("Equal", inputs)])
        case "rsqrt":
            return graph.node("Reciprocal", [graph.node("Sqrt", inputs)])
        case "square":
            return graph.node("Mul", [inputs[0], inputs[0]])
        case "integer_pow":
            return graph.node("Pow", [inputs[0], _number(graph, equation.params["y"], like)])
        case "log1p":
            return graph.node("Log", [graph.node("Add", [inputs[0], _number(graph, 1, like)])])
        case "expm1":
            return graph.node("Sub", [graph.node("Exp", inputs), _number(graph, 1, like)])
        case "exp2":
            return graph.node("Pow", [_number(graph, 2, like), inputs[0]])
        case "erfc":
            return graph.node("Sub", [_number(graph, 1, like), graph.node("Erf", inputs)])
        case "clamp":
            low, x, high = inputs
            return graph.node("Min", [graph.node("Max", [x, low]), high])
        case "select_n" if len(inputs) == 3 and inputs[0].dtype == "bool":
            return graph.node("Where", [inputs[0], inputs[2], inputs[1]])
        case "convert_element_type" | "reduce_precision":
            return graph.node("Cast", inputs, to=type_number(like))
    return None


def whole(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    """The results of any other operation. Raises TengenError for those that are not supported."""
    name = equation.primitive.name
    if name in _REDUCTIONS:
        axes = graph.constant(np.array(equation.params["axes"], np.int64))
        return [graph.node(_REDUCTIONS[name], [graph.expanded(inputs[0]), axes], keepdims=0)]
    found = _OPERATIONS.get(name)
    if found is None:
        raise TengenError(f"the network uses JAX's operation {name}, which the export to ONNX does not know")
    return found(graph, equation, [_whole(graph, tensor) for tensor in inputs], outputs)


def reshaped(graph: OnnxGraph, tensor: Tensor | str, shape: tuple[int, ...]) -> str:
    """The tensor with another shape."""
    unknown = [size for size in shape if size < 0]
    target = tuple(max(size, -1) for size in shape)
    known = len(unknown) <= 1 and 0 not in shape
    return graph.node("Reshape", [tensor, graph.constant(np.array(target, np.int64)) if known else graph.shape(shape)])


def _whole(graph: OnnxGraph, tensor: Tensor) -> Tensor:
    return Tensor(graph.expanded(tensor), tensor.shape, tensor.dtype) if tensor.broadcast else tensor


def _number(graph: OnnxGraph, value: float, dtype: str) -> str:
    return graph.constant(np.array(value, dtype))


def _reshape(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    return [reshaped(graph, inputs[0], outputs[0].shape)]


def _transpose(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    return [graph.node("Transpose", inputs, perm=equation.params["permutation"])]


def _concatenate(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    return [graph.node("Concat", inputs, axis=equation.params["dimension"])]


def _stack(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    axis, shape = equation.params["axis"], outputs[0].shape
    parts = [reshaped(graph, tensor, (*shape[:axis], 1, *shape[axis + 1 :])) for tensor in inputs]
    return [graph.node("Concat", parts, axis=axis)]


def _slice(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    starts, ends = equation.params["start_indices"], equation.params["limit_indices"]
    steps = equation.params["strides"] or (1,) * len(starts)
    sizes = equation.invars[0].aval.shape
    cut = [axis for axis, (low, high, step) in enumerate(zip(starts, ends, steps, strict=True))
           if (low, high, step) != (0, sizes[axis], 1)]  # fmt: skip
    _check_axes("slice", inputs[0], cut)
    return [_sliced(graph, inputs[0], *([part[axis] for axis in cut] for part in (starts, ends, steps)), axes=cut)]


def _split(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    axis, sizes = equation.params["axis"], equation.params["sizes"]
    _check_axes("split", inputs[0], [axis])
    ends = np.cumsum(sizes)
    return [_sliced(graph, inputs[0], [int(end - size)], [int(end)], [1], axes=[axis])
            for end, size in zip(ends, sizes, strict=True)]  # fmt: skip


def _reverse(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    axes = list(equation.params["dimensions"])
    return [_sliced(graph, inputs[0], [-1] * len(axes), [-_END] * len(axes), [-1] * len(axes), axes=axes)]


def _sliced(
    graph: OnnxGraph,
    tensor: Tensor,
    starts: Sequence[int],
    ends: Sequence[int],
    steps: Sequence[int],
    axes: Sequence[int],
) -> str:
    numbers = [graph.constant(np.array(part, np.int64)) for part in (starts, ends, axes, steps)]
    return graph.node("Slice", [tensor, *numbers])


def _pad(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    low, high, inner = zip(*equation.params["padding_config"], strict=True)
    if any(inner):
        raise TengenError("the network pads between numbers, which the export to ONNX does not know")
    x, value = inputs
    pads = graph.constant(np.array([*low, *high], np.int64))
    if x.dtype != "bool":
        return [graph.node("Pad", [x, pads, value])]
    numbers = [graph.node("Cast", [tensor], to=type_number("int32")) for tensor in (x, value)]
    return [graph.node("Cast", [graph.node("Pad", [numbers[0], pads, numbers[1]])], to=type_number("bool"))]


def _iota(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    shape, axis, like = outputs[0].shape, equation.params["dimension"], outputs[0].dtype
    _check_axes("iota", outputs[0], [axis])
    line = np.arange(shape[axis]).astype(like).reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return [graph.node("Expand", [graph.constant(line), graph.shape(shape)])]


def _any_or_all(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    kind = "ReduceMin" if equation.primitive.name == "reduce_and" else "ReduceMax"
    numbers = graph.node("Cast", inputs, to=type_number("int32"))
    axes = graph.constant(np.array(equation.params["axes"], np.int64))
    return [graph.node("Cast", [graph.node(kind, [numbers, axes], keepdims=0)], to=type_number("bool"))]


def _argument(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    kind = "ArgMax" if equation.primitive.name == "argmax" else "ArgMin"
    found = graph.node(kind, inputs, axis=equation.params["axes"][0], keepdims=0)
    return [graph.node("Cast", [found], to=type_number(outputs[0].dtype))]


def _cumulative(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    axis = graph.constant(np.array(equation.params["axis"], np.int64))
    return [graph.node("CumSum", [inputs[0], axis], reverse=int(equation.params["reverse"]))]


def _product(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    """A product of matrices: as MatMul if it is a dense layer, else as Einsum."""
    (left, right), (left_batch, right_batch) = equation.params["dimension_numbers"]
    x, y = inputs
    if not left_batch and len(y.shape) == 2 and tuple(left) == (len(x.shape) - 1,) and tuple(right) == (0,):
        return [graph.node("MatMul", inputs)]
    letters = iter(string.ascii_lowercase)
    names = ["" for _ in x.shape], ["" for _ in y.shape]
    for one, other in zip([*left_batch, *left], [*right_batch, *right], strict=True):
        names[0][one] = names[1][other] = next(letters)
    for side in names:
        side[:] = [name or next(letters) for name in side]
    bound = {names[0][axis] for axis in (*left_batch, *left)}
    out = [names[0][axis] for axis in left_batch] + [name for side in names for name in side if name not in bound]
    return [graph.node("Einsum", inputs, equation=f"{''.join(names[0])},{''.join(names[1])}->{''.join(out)}")]


def _convolution(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    params, numbers = equation.params, equation.params["dimension_numbers"]
    if params["batch_group_count"] != 1 or set(params["lhs_dilation"]) != {1}:
        raise TengenError("the network uses a kind of convolution that the export to ONNX does not know")
    x = graph.node("Transpose", [inputs[0]], perm=numbers.lhs_spec)
    kernel = inputs[1]
    if kernel.constant is not None:
        weights = graph.constant(kernel.constant.transpose(numbers.rhs_spec))
    else:
        weights = graph.node("Transpose", [kernel], perm=numbers.rhs_spec)
    low, high = zip(*params["padding"], strict=True)
    found = graph.node(
        "Conv",
        [x, weights],
        group=params["feature_group_count"],
        strides=params["window_strides"],
        dilations=params["rhs_dilation"],
        pads=[*low, *high],
    )
    return [graph.node("Transpose", [found], perm=np.argsort(numbers.out_spec).tolist())]


def _gather(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    """Indexing along one axis, x[..., indices]."""
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    x, indices = inputs
    shape = equation.invars[0].aval.shape
    axes = numbers.start_index_map
    whole = all(size == shape[axis] for axis, size in enumerate(sizes) if axis not in axes)
    if len(axes) != 1 or numbers.collapsed_slice_dims != axes or numbers.operand_batching_dims or not whole:
        raise TengenError("the network indexes along several axes, which the export to ONNX does not know")
    found = graph.node("Gather", [x, reshaped(graph, indices, indices.shape[:-1])], axis=axes[0])
    inserted = len(indices.shape) - 1
    came = [*range(axes[0]), *range(axes[0] + inserted, len(shape) - 1 + inserted)]  # axes of x, without the indexed
    order, rest = [-1] * len(outputs[0].shape), iter(range(axes[0], axes[0] + inserted))
    for axis, place in zip(came, numbers.offset_dims, strict=True):
        order[place] = axis
    order = [next(rest) if axis < 0 else axis for axis in order]
    return [found if order == sorted(order) else graph.node("Transpose", [found], perm=order)]


def _check_axes(what: str, tensor: Tensor, axes: Sequence[int]) -> None:
    if any(tensor.shape[axis] < 0 for axis in axes):
        raise TengenError(f"the network mixes the positions of a batch ({what}), so it cannot take any number of them")


def spread(graph: OnnxGraph, equation: Any, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """broadcast_in_dim: only axes of size 1 are inserted; whatever needs the whole shape expands it."""
    kept = equation.params["broadcast_dimensions"]
    given = dict(zip(kept, tensor.shape, strict=True))
    small = tuple(given.get(axis, 1) for axis in range(len(shape)))
    if tensor.constant is not None:
        constant = tensor.constant
        sizes = dict(zip(kept, constant.shape, strict=True))
        data = constant.reshape([sizes.get(axis, 1) for axis in range(len(shape))])
        return Tensor("", shape, tensor.dtype, data, broadcast=data.shape != shape)
    if math.prod(small) == math.prod(tensor.shape) and small == tensor.shape and not tensor.broadcast:
        return Tensor(tensor.name, shape, tensor.dtype, broadcast=small != shape)
    source = graph.expanded(tensor)
    return Tensor(reshaped(graph, source, small), shape, tensor.dtype, broadcast=small != shape)


_OPERATIONS: Mapping[str, Operation] = {
    "argmax": _argument,
    "argmin": _argument,
    "concatenate": _concatenate,
    "conv_general_dilated": _convolution,
    "cumsum": _cumulative,
    "dot_general": _product,
    "expand_dims": _reshape,
    "gather": _gather,
    "iota": _iota,
    "pad": _pad,
    "reduce_and": _any_or_all,
    "reduce_or": _any_or_all,
    "reshape": _reshape,
    "rev": _reverse,
    "slice": _slice,
    "split": _split,
    "stack": _stack,
    "squeeze": _reshape,
    "transpose": _transpose,
}
