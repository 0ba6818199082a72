"""Settings and records declared once: type, allowed values and a one-line explanation, side by side.

    @dataclass(frozen=True)
    class GoOptions:
        size: int = setting(9, "points along one side", low=2, high=19)

The same declaration serves the options of a game (`from_options`: defaults apply), a section of the configuration
(`check`: every key must be there), and files and messages in JSON (`from_json`, `read_json`). All of them find every
problem, not only the first, and say what was expected.

Supported annotations: int, float, int | float, bool, str, Literal[...], T | None, tuple[T, ...], tuple[A, B],
dict[str, T], Any, dataclasses declared in the same way, and a word instead of a number: int | Literal["auto"].
Limits apply to each item of a tuple.
A class may define `check_together(self) -> Iterable[tuple[str, str]]`, giving (key, message) for rules across its
settings; a key inside one of its sections is `section.key`. It is called only when each setting is valid by itself. A
class attribute `moved` maps keys of earlier versions to `section.key`, where those settings are now. A classmethod
`key_names(source)` gives the keys (`KeyNames`) of settings that files do not call by the names of their fields.
"""

from tengen.schema.checking import Problem, check, from_data, from_json, from_options, read_json, write_json
from tengen.schema.declaration import (
    REQUIRED,
    Declared,
    KeyNames,
    Rule,
    before,
    describe,
    flat,
    key_names,
    setting,
    to_dict,
    values,
    variant,
)
from tengen.schema.words import Path, dotted, in_quotes, leaves, quote, unknown

__all__ = [
    "REQUIRED",
    "Declared",
    "KeyNames",
    "Path",
    "Problem",
    "Rule",
    "before",
    "check",
    "describe",
    "dotted",
    "flat",
    "from_data",
    "from_json",
    "from_options",
    "in_quotes",
    "key_names",
    "leaves",
    "quote",
    "read_json",
    "setting",
    "to_dict",
    "unknown",
    "values",
    "variant",
    "write_json",
]
