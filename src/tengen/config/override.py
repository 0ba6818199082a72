"""Settings changed from the command line: `--set game.size=9`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tengen import redact, schema
from tengen.config import reader
from tengen.errors import ConfigError
from tengen.schema import Path, dotted, quote

_LONGEST = 100
T = TypeVar("T")


@dataclass(frozen=True)
class Override:
    """One `--set`: the key that it names, the value for it, and how it was written."""

    path: Path
    value: Any
    place: str


def read_overrides(texts: Iterable[str]) -> tuple[list[Override], list[str]]:
    """The overrides in these texts, and a message for each problem with the texts themselves."""
    found: dict[Path, Override] = {}
    problems: list[str] = []
    for text in texts:
        shown = redact.hide(text)
        place = f"--set {shown if shown.isprintable() and len(shown) <= _LONGEST else quote(shown)}"
        key, equals, value_text = text.partition("=")
        path = tuple(part.strip() for part in key.split("."))
        if not equals or not all(path):
            problems.append(f"expected section.key=value ({place})")
            continue
        value = reader.parse(value_text)
        problems.extend(f"{dotted(path)}: {problem.message} ({place})" for problem in value.problems)
        if path in found:
            problems.append(f"{dotted(path)}: given twice ({found[path].place}, {place})")
        elif not value.problems:
            found[path] = Override(path, value.data, place)
    return list(found.values()), problems


def apply(override: Override, data: dict[str, Any]) -> str | None:
    """Put the value into `data`; returns a message if that is impossible. Unknown keys are found by later checks."""
    *sections, key = override.path
    here: Any = data
    for depth, name in enumerate(sections, start=1):
        here = here.setdefault(name, {})
        if not isinstance(here, dict):
            section = dotted(override.path[:depth])
            return f"{dotted(override.path)}: {section} is not a section ({override.place})"
    if here.get(key) and isinstance(here[key], dict):
        keys = ", ".join(dotted((*override.path, inner)) for inner in here[key])
        return f"{dotted(override.path)}: a section cannot be set as a whole, only {keys} ({override.place})"
    here[key] = override.value
    return None


def with_values(config: T, values: Mapping[Path, Any]) -> T:
    """The configuration with other values of some settings. ConfigError if they do not fit together."""
    data = schema.to_dict(config)
    for path, value in values.items():
        apply(Override(path, value, ""), data)
    found, problems = schema.check(type(config), data)
    if found is None:
        raise ConfigError([f"{dotted(path)}: {message}" for path, message in problems])
    return found
