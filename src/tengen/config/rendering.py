"""A configuration as complete YAML, every key with its explanation beside it.

`load` reads back exactly what was rendered.
"""

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

from tengen import schema
from tengen.config import reader

HEADER = "# A complete Tengen configuration: every key must be here, nothing is filled in behind your back."
# The explanation of a longer entry stands above it, so that it does not run off the screen.
_WIDEST_ENTRY = 40
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_ .,+()/-]|:(?=[A-Za-z0-9]))*(?<! )")


def render(config: Any) -> str:
    """The configuration as commented YAML, ending in a newline."""
    return "\n".join([HEADER, *_lines(config, "")]) + "\n"


def render_value(value: Any) -> str:
    if isinstance(value, str) and _PLAIN_TEXT.fullmatch(value) and reader.plain(value) == value:
        return value
    return _flow(value)


def _lines(section: Any, indent: str, names: schema.KeyNames | None = None) -> Iterator[str]:
    """The settings of `section`, explanations in one column."""
    found = schema.values(section, names)
    entries = [(setting, value, _entry(indent, setting.name, value)) for setting, value in found]
    width = max((len(entry) for _, _, entry in entries if len(entry) <= _WIDEST_ENTRY), default=0)
    for setting, value, entry in entries:
        comment = f"# {setting.help}: {setting.expected}"
        if dataclasses.is_dataclass(value):
            yield from ("", f"{indent}# {setting.help}", entry, *_lines(value, indent + "  ", setting.inside))
        elif len(entry) <= _WIDEST_ENTRY:
            yield f"{entry:{width}}  {comment}"
        else:
            yield from (f"{indent}{comment}", entry)


def _entry(indent: str, name: str, value: Any) -> str:
    return f"{indent}{name}:" if dataclasses.is_dataclass(value) else f"{indent}{name}: {render_value(value)}"


def _flow(value: Any) -> str:
    if dataclasses.is_dataclass(value):
        return f"{{{', '.join(f'{setting.name}: {_flow(v)}' for setting, v in schema.values(value))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{schema.in_quotes(str(key))}: {_flow(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_flow(item) for item in value)}]"
    return schema.in_quotes(value) if isinstance(value, str) else json.dumps(value)
