"""Checks declared shapes and types: of arguments and results with beartype, and of the fields of pytrees among them.

Arrays may be NumPy's: what a function computes on a device also works on the host. beartype does not look into named
tuples, and JAX makes pytrees of other things than arrays, so their fields are checked where functions take or return
them and not where they are made.
"""

import functools
import inspect
import operator
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

import jax
import jaxtyping
import numpy as np
from beartype import BeartypeConf, beartype

_CONFIGURATION = BeartypeConf(is_pep484_tower=True)  # a whole number is a float


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The type checker for `jaxtyping.install_import_hook`."""
    if function.__qualname__ == "Tree.__init__":
        return function

    @functools.cache
    def prepared() -> tuple[dict[str, Any], inspect.Signature, Callable[..., Any]]:
        """Made at the first call, because it takes time and most tests call few functions."""
        hints = function.__annotations__ = {name: _loosened(hint) for name, hint in function.__annotations__.items()}
        return hints, inspect.signature(function), beartype(conf=_CONFIGURATION)(function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        hints, signature, check = prepared()
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            check_fields(value, hints.get(name, Any))
        result = check(*args, **kwargs)
        check_fields(result, hints.get("return", Any))
        return result

    return wrapper


def check_fields(value: Any, hint: Any) -> None:
    """TypeError if a field of a named tuple or a search tree does not have the declared shape and type."""
    if hint is Any:
        return
    fields = getattr(type(value), "__annotations__", {})
    if hasattr(value, "_fields"):
        for name, inner in fields.items():
            check_fields(getattr(value, name), inner)
    elif isinstance(value, tuple) and len(get_args(hint)) == len(value):
        for item, inner in zip(value, get_args(hint), strict=True):
            check_fields(item, inner)
    if not (hasattr(value, "_fields") or type(value).__name__ == "Tree"):
        return
    with jaxtyping.jaxtyped("context"):  # pyright: ignore[reportGeneralTypeIssues]
        for name, hint in _array_fields(type(value)):
            found = getattr(value, name)
            if not isinstance(found, hint):
                shown = f"{found.dtype}{list(found.shape)}" if hasattr(found, "shape") else repr(found)
                raise TypeError(f"{type(value).__name__}.{name}: expected {hint}, got {shown}")


@functools.cache
def _array_fields(cls: type) -> list[tuple[str, Any]]:
    """The fields with a declared shape."""
    fields = getattr(cls, "__annotations__", {}).items()
    return [(name, _loosened(hint)) for name, hint in fields if any(map(_is_shaped, get_args(hint) or [hint]))]


def _is_shaped(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray)


def _loosened(hint: Any) -> Any:
    """The same declaration for arrays of any library. Words (`Literal`) are for the functions themselves to refuse."""
    if hint is jax.Array:
        return jax.Array | jax.ShapeDtypeStruct | np.ndarray | np.generic
    if _is_shaped(hint):
        return hint.dtype[Any, hint.dim_str]
    kind, inner = get_origin(hint), tuple(map(_loosened, get_args(hint)))
    if kind in (Union, types.UnionType):
        return functools.reduce(operator.or_, inner)
    if kind in (tuple, dict):
        return types.GenericAlias(kind, inner)
    return Any if kind is Literal else hint
