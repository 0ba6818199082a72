"""JSON files and texts as frozen dataclasses."""

import dataclasses
import json
from pathlib import Path
from typing import Any, TypeVar

from tengen import files
from tengen.errors import OptionError
from tengen.schema.checking import from_data

T = TypeVar("T")


def from_json(cls: type[T], text: str | bytes, what: str = "", *, strict: bool = False) -> T:
    """`cls` from JSON, as `from_data`. Raises OptionError, which is a ValueError, naming `what`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{what}: not valid JSON: {error}" if what else f"not valid JSON: {error}") from None
    return from_data(cls, data, what, strict=strict)


def read_json(cls: type[T], path: Path, limit: int | None = None) -> T:
    """`cls` from a JSON file, whose keys may be more than those of `cls`. Raises FileError or OptionError."""
    return from_json(cls, files.read_bytes(path, limit), str(path))


def write_json(path: Path, content: Any, indent: int | None = 1) -> None:
    """Write a dataclass, mapping or list as JSON. Raises FileError, and ValueError for numbers that are not finite."""
    data = (
        dataclasses.asdict(content) if dataclasses.is_dataclass(content) and not isinstance(content, type) else content
    )
    files.write_bytes(path, json.dumps(data, indent=indent, allow_nan=False).encode() + b"\n")
