"""Messages as lines, and back. Any line gives a message or a ProtocolError that names the problem.

line = encode(StopTraining())                # b'{"type": "stop_training", "payload": {}}\n'
decode(line) == StopTraining()
"""

import json
import math
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from tengen.errors import TengenError
from tengen.protocol.messages import TYPES
from tengen.schema import quote, unknown

LONGEST = 4 * 2**20
"""Bytes of a line, at most."""


class ProtocolError(TengenError):
    """A line is not a message."""


def encode(message: Any) -> bytes:
    """A message as a line. Numbers that are not finite become null."""
    name = next(name for name, kind in TYPES.items() if kind is type(message))
    return (
        json.dumps({"type": name, "payload": _plain(message)}, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    )


def decode(line: bytes | str) -> Any:
    """The message in a line."""
    if len(line) > LONGEST:
        raise ProtocolError(f"a line of {len(line):,} bytes; expected at most {LONGEST:,}")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"no JSON: {error}: {quote(_start(line))}") from None
    if not isinstance(found, dict) or set(found) - {"type", "payload"} or not isinstance(found.get("type"), str):
        raise ProtocolError(f'expected {{"type": ..., "payload": {{...}}}}, got {quote(_start(line))}')
    kind = TYPES.get(found["type"])
    if kind is None:
        raise ProtocolError(unknown("type", found["type"], list(TYPES)))
    return _read(kind, found.get("payload", {}), found["type"])


def _start(line: bytes | str) -> str:
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    return text[:80].strip()


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, value: Any, where: str) -> Any:
    """The value as that type. ProtocolError names the place."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(get_args(kind), value, where)
    if origin is Literal:
        if value not in get_args(kind) or type(value) is not str:
            raise ProtocolError(f"{where}: expected one of {', '.join(get_args(kind))}, got {quote(value)}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise ProtocolError(f"{where}: expected a list, got {quote(value)}")
        return tuple(_read(get_args(kind)[0], inner, f"{where}[{i}]") for i, inner in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise ProtocolError(f"{where}: expected an object, got {quote(value)}")
        return {key: _read(get_args(kind)[1], inner, f"{where}.{key}") for key, inner in value.items()}
    if is_dataclass(kind) and isinstance(kind, type):
        return _payload(kind, value, where)
    return _scalar(kind, value, where)


def _one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """Only `X | None` is used."""
    if value is None and type(None) in kinds:
        return None
    return _read(next(kind for kind in kinds if kind is not type(None)), value, where)


def _scalar(kind: Any, value: Any, where: str) -> Any:
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    good = type(value) is kind or (kind is float and type(value) is int)
    if not good:
        raise ProtocolError(f"{where}: expected {words.get(kind, kind)}, got {quote(value)}")
    try:
        return float(value) if kind is float else value
    except OverflowError:
        raise ProtocolError(f"{where}: expected a number, got one that is too large") from None


def _payload(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ProtocolError(f"{where}: expected an object, got {quote(value)}")
    known = {each.name: each for each in fields(kind)}
    for name in value:
        if name not in known:
            raise ProtocolError(f"{where}: {unknown('field', name, list(known))}")
    given = {}
    for name, each in known.items():
        if name in value:
            given[name] = _read(_hints(kind)[name], value[name], f"{where}.{name}")
        elif each.default is MISSING and each.default_factory is MISSING:
            raise ProtocolError(f"{where}: {name} is missing")
    return kind(**given)
