"""Declare settings once: type, allowed values and a one-line explanation, side by side.

    @dataclass(frozen=True)
    class GoOptions:
        size: int = setting(9, "points along one side", low=2, high=19)

The same declaration serves a game's options (`from_options`: defaults apply) and a section of the
configuration (`check`: every key must be there). Both find every problem, not only the first, and say what
was expected.

Annotations that are understood: int, float, bool, str, Literal[...], T | None, tuple[T, ...], and dataclasses
declared in the same way. The limits of a tuple apply to each of its items. A class may define
`check_together(self) -> Iterable[tuple[str, str]]`, giving (key, message) for rules across its settings, where
a key inside one of its sections is `section.key`; it is asked only when each of them is good by itself.
"""

from tengen.schema.checking import Problem, check, from_options
from tengen.schema.declaration import REQUIRED, Described, describe, setting, values, variant
from tengen.schema.words import Path, dotted, in_quotes, quote, unknown

__all__ = [
    "REQUIRED",
    "Described",
    "Path",
    "Problem",
    "check",
    "describe",
    "dotted",
    "from_options",
    "in_quotes",
    "quote",
    "setting",
    "unknown",
    "values",
    "variant",
]
