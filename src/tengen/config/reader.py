"""YAML text as plain data, with the line of every key and item; and settings of the command line (`--set`).

A subset of YAML on purpose, so that nothing is guessed and every value stands where it applies. Words and numbers are
those of YAML 1.2 (`no` is a word, `010` is not eight, `1e-3` is a number, a date is text); anchors, aliases, merge
keys, tags and further documents are refused with a message. PyYAML supplies events, not a tree: reading stops at the
first one that goes too deep.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import yaml

from tengen import redact, schema
from tengen.errors import ConfigError
from tengen.schema import Path, dotted, quote

_MAX_DEPTH = 20

_WORDS = {"true": True, "false": False, "null": None}
_PLAIN = {
    **{form: value for word, value in _WORDS.items() for form in (word, word.title(), word.upper())},
    **{"": None, "~": None, ".nan": math.nan, ".inf": math.inf, "-.inf": -math.inf},
}
# Python refuses to read whole numbers of thousands of digits; as a float such a number is infinite.
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,299})")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class ReadProblem:
    """Something that is not YAML, or YAML that a configuration does not use. Lines count from 1."""

    path: Path
    message: str
    line: int


@dataclass
class Document:
    """The content of a text.

    `data` is made of dict, list, str, int, float, bool and None. `unread` holds the paths whose value could not be
    read: `data` is meaningless there, and further problems are not reported.
    """

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[ReadProblem] = field(default_factory=list)
    unread: set[Path] = field(default_factory=set)


class _Unreadable(Exception):
    """The text cannot be read any further: a message, and the line."""


def parse(text: str) -> Document:
    """Read one YAML value. Problems with the text are in `problems` of the result."""
    document = Document()
    try:
        _Reader(_events(text), document).read()
    except _Unreadable as stop:
        document.problems.append(ReadProblem((), *stop.args))
        document.unread.add(())
    return document


def plain(text: str) -> Any:
    """The value of an unquoted scalar."""
    if text in _PLAIN:
        return _PLAIN[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


class _Reader:
    def __init__(self, events: Iterator[Any], document: Document) -> None:
        self._events = events
        self._document = document

    def read(self) -> None:
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return
        self._document.data = self._value(next(self._events), ())
        next(self._events)  # the end of the document
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise _Unreadable("expected one YAML document, but a second one starts here", _line(event))

    def _value(self, event: Any, path: Path) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._refuse(path, f"the alias {quote(event.anchor)} is not supported, write the value", event)
        if event.anchor is not None:
            self._note(path, f"the anchor {quote(event.anchor)} is not supported, leave it out", event)
        if event.tag is not None:
            self._refuse(path, f"the tag {quote(event.tag)} is not supported, leave it out", event)
        if isinstance(event, yaml.ScalarEvent):
            return plain(event.value) if event.implicit[0] else event.value
        if len(path) >= _MAX_DEPTH:
            raise _Unreadable(f"nested more than {_MAX_DEPTH} levels deep", _line(event))
        return self._mapping(path) if isinstance(event, yaml.MappingStartEvent) else self._sequence(path)

    def _sequence(self, path: Path) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item_path = (*path, len(items))
            self._document.lines.setdefault(item_path, _line(event))
            items.append(self._value(event, item_path))
        return items

    def _mapping(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._value(event, (*path, "?"))  # a key may itself be a tree, as deep as it likes
            key_path = (*path, key if isinstance(key, str) else quote(key))
            first_line = self._document.lines.setdefault(key_path, _line(event))
            value = self._value(next(self._events), key_path)
            if not isinstance(key, str):
                self._note(path, f"expected a name before the colon, got {quote(key)}", event)
            elif key == "<<" and event.implicit[0]:
                self._note(key_path, "merging with << is not supported, write the keys", event)
            elif key in found:
                self._note(key_path, f"given twice, first on line {first_line}", event)
            else:
                found[key] = value
        return found

    def _refuse(self, path: Path, message: str, event: Any) -> None:
        self._note(path, message, event)
        self._document.unread.add(path)

    def _note(self, path: Path, message: str, event: Any) -> None:
        self._document.problems.append(ReadProblem(path, message, _line(event)))


def _line(event: Any) -> int:
    return event.start_mark.line + 1


def _events(text: str) -> Iterator[Any]:
    """PyYAML's events; every way in which it can fail becomes _Unreadable."""
    try:
        yield from yaml.parse(text, Loader=yaml.SafeLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _Unreadable(f"the character U+{ord(text[error.position]):04X} is not allowed in YAML", line) from None
    except yaml.MarkedYAMLError as error:
        _raise_marked(error)
    except (ValueError, OverflowError):  # PyYAML does not guard chr() against "\UFFFFFFFF"
        raise _Unreadable("not valid YAML: an escape sequence that is no character", text.count("\n") + 1) from None


def _raise_marked(error: yaml.MarkedYAMLError) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    if error.problem and r"'\t'" in error.problem:
        raise _Unreadable("a tab where YAML expects spaces", line) from None
    begun = error.context_mark.line + 1 if error.context_mark else line
    context = f" {error.context}" if error.context else ""
    since = f" that begins on line {begun}" if begun != line else ""
    raise _Unreadable(f"not valid YAML: {error.problem}{context}{since}", line) from None


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
        if not value_text.strip():
            problems.append(f"{dotted(path)}: expected a value, or null for none ({place})")
            continue
        value = parse(value_text)
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
