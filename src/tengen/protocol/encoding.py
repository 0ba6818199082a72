"""Messages as lines, and back. Any line gives a message or a ProtocolError that names the problem.

line = encode(StopTraining())                # b'{"type": "stop_training", "payload": {}}\n'
decode(line) == StopTraining()
"""

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

from tengen import schema
from tengen.errors import OptionError, TengenError
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
    try:
        return schema.from_data(kind, found.get("payload", {}), found["type"], strict=True, noun="field")
    except OptionError as error:
        raise ProtocolError(str(error)) from None


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
