"""The wording of messages about settings."""

import difflib
import json
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tengen import redact

Path = tuple[str | int, ...]

_QUOTE_LENGTH = 40
_NAME_LENGTH = 60
# JSON leaves these as they are, though they cannot be printed or break a line.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def dotted(path: Path) -> str:
    """A path the way people write it: `net.heads[1].name`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{_short(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def leaves(data: Mapping[str, Any], prefix: str = "", between: str = ".") -> Iterator[tuple[str, Any]]:
    """Every value in nested mappings, named by all its keys: `goal.steps`."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{key}{between}", between)
        else:
            yield f"{prefix}{key}", value


def unknown(noun: str, name: str, known: Iterable[str]) -> str:
    """A message about an unknown name: the one that was probably meant, or else all known names."""
    names = list(known)
    near = difflib.get_close_matches(name[:_NAME_LENGTH], names, n=1)
    if near:
        return f"unknown {noun}, did you mean {near[0]}?"
    expected = f"expected one of {', '.join(names)}" if names else "none is expected here"
    return f"unknown {noun}, {expected}"


def in_quotes(text: str) -> str:
    """Text in double quotes, on one line, with the escapes that JSON and YAML share."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def quote(value: object) -> str:
    """A value as it would be written in a configuration, shortened if it is long, without passwords in addresses."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        value = redact.hide(value)
        cut = value if len(value) <= _QUOTE_LENGTH else value[: _QUOTE_LENGTH - 3] + "..."
        return in_quotes(cut)
    if isinstance(value, int) and value.bit_length() > 128:  # str() of a huge number is slow, or refused
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence):
        return "a list"
    return reprlib.repr(value)


def _short(name: str) -> str:
    """A key on one line and not too long, whatever it contains."""
    printable = name if name.isprintable() else json.dumps(name)
    return printable if len(printable) <= _NAME_LENGTH else printable[: _NAME_LENGTH - 3] + "..."
