"""JAX's operations as ONNX's: one function, or a line of a table, for each.

A function takes the equation and returns the names of its results. In shapes, -k is k times the batch (`graph.Tensor`).
"""

import math
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tengen.errors import TengenError
from tengen.interop.onnx.graph import OnnxGraph, Tensor, type_number

# Operations on each number; both sides broadcast, so nothing needs its whole shape.
ELEMENTWISE: Mapping[str, str] = {
    "abs": "Abs", "add": "Add", "add_any": "Add", "and": "And", "ceil": "Ceil", "copy": "Identity", "cos": "Cos",
    "div": "Div", "eq": "Equal", "erf": "Erf", "exp": "Exp", "floor": "Floor", "ge": "GreaterOrEqual", "gt": "Greater",
    "le": "LessOrEqual", "log": "Log", "logistic": "Sigmoid", "lt": "Less", "max": "Max", "min": "Min", "mul": "Mul",
    "neg": "Neg", "not": "Not", "or": "Or", "pow": "Pow", "round": "Round", "sign": "Sign", "sin": "Sin",
    "sqrt": "Sqrt", "stop_gradient": "Identity", "sub": "Sub", "tan": "Tan", "tanh": "Tanh", "xor": "Xor",
}  # fmt: skip
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


@dataclass(frozen=True)
class _Equation:
    """An equation of JAX's, with tensors that have their whole shapes."""

    graph: OnnxGraph
    jax: Any
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]

    def __getitem__(self, name: Any) -> Any:
        return self.jax.params[name]

    @property
    def name(self) -> str:
        return self.jax.primitive.name

    def node(self, kind: str, *inputs: Tensor | str, **attributes: Any) -> str:
        """An operation on these inputs, or on those of the equation."""
        return self.graph.node(kind, inputs or self.inputs, **attributes)

    def numbers(self, values: Any) -> str:
        """Whole numbers as a constant."""
        return self.graph.constant(np.array(values, np.int64))

    def check_axes(self, tensor: Tensor, axes: Sequence[int]) -> None:
        if any(tensor.shape[axis] < 0 for axis in axes):
            raise TengenError(
                f"the network mixes the positions of a batch ({self.name}), so it cannot be exported for batches of "
                "any size"
            )


def whole(graph: OnnxGraph, equation: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Sequence[str]:
    """The results of any other operation. Raises TengenError for those that are not supported."""
    expanded = [Tensor(graph.expanded(each), each.shape, each.dtype) if each.broadcast else each for each in inputs]
    found = _Equation(graph, equation, expanded, outputs)
    if found.name not in _OPERATIONS:
        raise TengenError(f"the network uses JAX's operation {found.name}, which the export to ONNX does not know")
    results = _OPERATIONS[found.name](found)
    return [results] if isinstance(results, str) else results


def reshaped(graph: OnnxGraph, tensor: Tensor | str, shape: tuple[int, ...]) -> str:
    unknown = [size for size in shape if size < 0]
    target = tuple(max(size, -1) for size in shape)
    known = len(unknown) <= 1 and 0 not in shape
    return graph.node("Reshape", [tensor, graph.constant(np.array(target, np.int64)) if known else graph.shape(shape)])


def _number(graph: OnnxGraph, value: float, dtype: str) -> str:
    return graph.constant(np.array(value, dtype))


def _reshape(at: _Equation) -> str:
    return reshaped(at.graph, at.inputs[0], at.outputs[0].shape)


def _reduced(kind: str) -> Callable[[_Equation], str]:
    return lambda at: at.node(kind, at.inputs[0], at.numbers(at["axes"]), keepdims=0)


def _any_or_all(kind: str) -> Callable[[_Equation], str]:
    def found(at: _Equation) -> str:
        reduced = at.node(kind, at.node("Cast", to=type_number("int32")), at.numbers(at["axes"]), keepdims=0)
        return at.node("Cast", reduced, to=type_number("bool"))

    return found


def _argument(kind: str) -> Callable[[_Equation], str]:
    def found(at: _Equation) -> str:
        return at.node("Cast", at.node(kind, axis=at["axes"][0], keepdims=0), to=type_number(at.outputs[0].dtype))

    return found


def _stack(at: _Equation) -> str:
    axis, shape = at["axis"], at.outputs[0].shape
    parts = [reshaped(at.graph, tensor, (*shape[:axis], 1, *shape[axis + 1 :])) for tensor in at.inputs]
    return at.node("Concat", *parts, axis=axis)


def _slice(at: _Equation) -> str:
    starts, ends = at["start_indices"], at["limit_indices"]
    steps = at["strides"] or (1,) * len(starts)
    sizes = at.jax.invars[0].aval.shape
    cut = [axis for axis, (low, high, step) in enumerate(zip(starts, ends, steps, strict=True))
           if (low, high, step) != (0, sizes[axis], 1)]  # fmt: skip
    at.check_axes(at.inputs[0], cut)
    return _sliced(at, *([part[axis] for axis in cut] for part in (starts, ends, steps)), axes=cut)


def _split(at: _Equation) -> Sequence[str]:
    axis, sizes = at["axis"], at["sizes"]
    at.check_axes(at.inputs[0], [axis])
    ends = np.cumsum(sizes)
    return [_sliced(at, [int(end - size)], [int(end)], [1], [axis]) for end, size in zip(ends, sizes, strict=True)]


def _reverse(at: _Equation) -> str:
    axes = list(at["dimensions"])
    return _sliced(at, [-1] * len(axes), [-_END] * len(axes), [-1] * len(axes), axes)


def _sliced(
    at: _Equation, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int], axes: Sequence[int]
) -> str:
    return at.node("Slice", at.inputs[0], *map(at.numbers, (starts, ends, axes, steps)))


def _pad(at: _Equation) -> str:
    low, high, inner = zip(*at["padding_config"], strict=True)
    if any(inner):
        raise TengenError("the network pads between numbers, which the export to ONNX does not know")
    x, value = at.inputs
    pads = at.numbers([*low, *high])
    if x.dtype != "bool":
        return at.node("Pad", x, pads, value)
    padded, filling = (at.node("Cast", tensor, to=type_number("int32")) for tensor in (x, value))
    return at.node("Cast", at.node("Pad", padded, pads, filling), to=type_number("bool"))


def _iota(at: _Equation) -> str:
    shape, axis, like = at.outputs[0].shape, at["dimension"], at.outputs[0].dtype
    at.check_axes(at.outputs[0], [axis])
    line = np.arange(shape[axis]).astype(like).reshape([-1 if place == axis else 1 for place in range(len(shape))])
    return at.node("Expand", at.graph.constant(line), at.graph.shape(shape))


def _product(at: _Equation) -> str:
    """A product of matrices: as MatMul if it is a dense layer, else as Einsum."""
    (left, right), (left_batch, right_batch) = at["dimension_numbers"]
    x, y = at.inputs
    if not left_batch and len(y.shape) == 2 and tuple(left) == (len(x.shape) - 1,) and tuple(right) == (0,):
        return at.node("MatMul")
    letters = iter(string.ascii_lowercase)
    names = ["" for _ in x.shape], ["" for _ in y.shape]
    for one, other in zip([*left_batch, *left], [*right_batch, *right], strict=True):
        names[0][one] = names[1][other] = next(letters)
    for side in names:
        side[:] = [name or next(letters) for name in side]
    bound = {names[0][axis] for axis in (*left_batch, *left)}
    out = [names[0][axis] for axis in left_batch] + [name for side in names for name in side if name not in bound]
    return at.node("Einsum", equation=f"{''.join(names[0])},{''.join(names[1])}->{''.join(out)}")


def _convolution(at: _Equation) -> str:
    numbers, kernel = at["dimension_numbers"], at.inputs[1]
    if at["batch_group_count"] != 1 or set(at["lhs_dilation"]) != {1}:
        raise TengenError("the network uses a kind of convolution that the export to ONNX does not know")
    x = at.node("Transpose", at.inputs[0], perm=numbers.lhs_spec)
    if kernel.constant is not None:
        weights = at.graph.constant(kernel.constant.transpose(numbers.rhs_spec))
    else:
        weights = at.node("Transpose", kernel, perm=numbers.rhs_spec)
    low, high = zip(*at["padding"], strict=True)
    strides, dilations = at["window_strides"], at["rhs_dilation"]
    more = {"group": at["feature_group_count"], "strides": strides, "dilations": dilations, "pads": [*low, *high]}
    return at.node("Transpose", at.node("Conv", x, weights, **more), perm=np.argsort(numbers.out_spec).tolist())


def _gather(at: _Equation) -> str:
    """Indexing along one axis, x[..., indices]."""
    numbers, sizes = at["dimension_numbers"], at["slice_sizes"]
    x, indices = at.inputs
    shape = at.jax.invars[0].aval.shape
    axes = numbers.start_index_map
    whole = all(size == shape[axis] for axis, size in enumerate(sizes) if axis not in axes)
    if len(axes) != 1 or numbers.collapsed_slice_dims != axes or numbers.operand_batching_dims or not whole:
        raise TengenError("the network indexes along several axes, which the export to ONNX does not know")
    found = at.node("Gather", x, reshaped(at.graph, indices, indices.shape[:-1]), axis=axes[0])
    inserted = len(indices.shape) - 1
    came = [*range(axes[0]), *range(axes[0] + inserted, len(shape) - 1 + inserted)]  # axes of x, without the indexed
    order, rest = [-1] * len(at.outputs[0].shape), iter(range(axes[0], axes[0] + inserted))
    for axis, place in zip(came, numbers.offset_dims, strict=True):
        order[place] = axis
    order = [next(rest) if axis < 0 else axis for axis in order]
    return found if order == sorted(order) else at.node("Transpose", found, perm=order)


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


_OPERATIONS: Mapping[str, Callable[[_Equation], str | Sequence[str]]] = {
    "argmax": _argument("ArgMax"),
    "argmin": _argument("ArgMin"),
    "concatenate": lambda at: at.node("Concat", axis=at["dimension"]),
    "conv_general_dilated": _convolution,
    "cumsum": lambda at: at.node("CumSum", at.inputs[0], at.numbers(at["axis"]), reverse=int(at["reverse"])),
    "dot_general": _product,
    "expand_dims": _reshape,
    "gather": _gather,
    "iota": _iota,
    "pad": _pad,
    "reduce_and": _any_or_all("ReduceMin"),
    "reduce_max": _reduced("ReduceMax"),
    "reduce_min": _reduced("ReduceMin"),
    "reduce_or": _any_or_all("ReduceMax"),
    "reduce_prod": _reduced("ReduceProd"),
    "reduce_sum": _reduced("ReduceSum"),
    "reshape": _reshape,
    "rev": _reverse,
    "slice": _slice,
    "split": _split,
    "stack": _stack,
    "squeeze": _reshape,
    "transpose": lambda at: at.node("Transpose", perm=at["permutation"]),
}
