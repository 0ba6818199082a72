"""Loads and checks a configuration: a file, a shipped name or a dictionary, and overrides from the command line."""

import copy
import functools
import inspect
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tengen import importing, schema
from tengen.config import reader, source
from tengen.config.reader import Override, apply, read_overrides
from tengen.config.sections import Config
from tengen.config.trainers import DQNConfig, TrainerConfig, rename_roles
from tengen.errors import ConfigError, OptionError

T = TypeVar("T")


KINDS: dict[str, type[TrainerConfig]] = {"dqn": DQNConfig}
"""Values of the key `trainer`. Without that key a configuration is a `Config`, for self-play."""


def load(config: str | Path, overrides: Iterable[str] = ()) -> Config:
    """A configuration of self-play: a file or a shipped name, with `section.key=value` overrides.

    Raises ConfigError with every problem, in the order of the file and then of the overrides.
    """
    found = load_any(config, overrides)
    if not isinstance(found, Config):
        problem = f"of the trainer {found.trainer}, which `tengen run` runs; expected a configuration of self-play"
        raise ConfigError([f"{config}: {problem}"])
    return found


def load_any(config: str | Path, overrides: Iterable[str] = ()) -> Config | TrainerConfig:
    """As `load`, for the kind that the key `trainer` names."""
    found = _find(config)
    return _load_any(found, _read_sections(found.text, Config), list(overrides))


def load_as(cls: type[T], config: str | Path, overrides: Iterable[str] = ()) -> T:
    """As `load`, for the kind `cls`: a frozen dataclass of settings, such as your own `TrainerConfig`."""
    found = _find(config)
    return _load(cls, found, _read_sections(found.text, cls), overrides)


def from_dict(data: Mapping[str, Any], overrides: Iterable[str] = (), cls: type | None = None) -> Any:
    """A configuration from a dictionary with the keys of a YAML file, checked in the same way. `to_dict` undoes it.

    The kind is `cls`, or the one that the key `trainer` names.
    """
    if not isinstance(data, Mapping):
        raise ConfigError([f"expected a dictionary with the sections of a configuration, got {schema.quote(data)}"])
    found, document = source.ConfigSource("in the dictionary", ""), reader.Document(copy.deepcopy(dict(data)))
    if cls is not None:
        return _load(cls, found, document, overrides)
    return _load_any(found, document, list(overrides))


def _find(config: str | Path) -> source.ConfigSource:
    """The text. What it names as package.module:Class may lie beside it, or where the modules of its run did."""
    found = source.find(config)
    if source.is_path(config):
        importing.add_folders([*importing.read_folders(found.text), Path(config).parent])
    return found


def _load_any(found: source.ConfigSource, document: reader.Document, overrides: list[str]) -> Any:
    chosen = [o for o in read_overrides(overrides)[0] if o.path == ("trainer",)]
    if not chosen and "trainer" not in document.data:
        return _load(Config, found, document, overrides)
    name = chosen[0].value if chosen else document.data["trainer"]
    place = _Places(found.label, document, chosen).of(("trainer",)).words
    return _load(_config_class(name, place), found, document, overrides)


def _config_class(name: Any, place: str) -> type[TrainerConfig]:
    if isinstance(name, str) and name in KINDS:
        return KINDS[name]
    if not importing.is_reference(name):
        words = schema.unknown("trainer", str(name), [*KINDS, "package.module:Class for your own"])
        raise ConfigError([f"trainer: {words} ({place})"])
    try:
        found = importing.load(name, "a trainer")
    except OptionError as error:
        raise ConfigError([f"trainer: {error} ({place})"]) from error
    kind, defined = getattr(found, "Config", None), importing.where(found)
    if not (isinstance(kind, type) and issubclass(kind, TrainerConfig) and hasattr(found, "_train")):
        raise ConfigError([f"trainer: {name}: expected a class derived from tengen.train.Trainer ({defined}; {place})"])
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise ConfigError([f"trainer: {name}: has no method {missing} ({defined}; {place})"])
    return kind


def _load(cls: type[T], found: source.ConfigSource, document: reader.Document, overrides: Iterable[str]) -> T:
    applied, override_problems = _override(cls, document, overrides)
    places = _Places(found.label, document, applied)
    for path, value, gone in _guarded(cls, lambda: list(schema.retired(cls, document.data))):
        key, place = schema.dotted(path), places.of(path).words
        if any(override.path == path for override in applied):
            override_problems.append(f"{key}: was removed, because {gone.why} ({place})")
        elif value != gone.inactive:
            _note(f"{key}: was removed, because {gone.why}; {schema.quote(value)} has no effect ({place})")
    instance, problems = _guarded(cls, lambda: schema.check(cls, document.data, old=found.is_of_a_run))
    lines = [_line(p.path, p.message, places.in_file(p.line)) for p in document.problems]
    problems = [p for p in problems if not _is_unread(p.path, document)]
    lines += [_line(p.path, p.message, places.of(p.path)) for p in problems]
    if instance is None or lines or override_problems:
        raise ConfigError([text for _, text in sorted(lines, key=lambda line: line[0])] + override_problems)
    return instance


@functools.cache  # a process may load the same file several times
def _note(text: str) -> None:
    """Tell the user; on standard error, unless the program that uses Tengen has its own logging."""
    logging.getLogger("tengen").warning(text)


def _guarded(cls: type, function: Callable[[], T]) -> T:
    """ConfigError if a class of the user's declares its settings wrongly, or its own checks fail."""
    if cls.__module__.startswith("tengen."):
        return function()
    try:
        return function()
    except Exception as error:
        place = importing.place_of(error) or importing.where(cls)
        raise ConfigError([f"{cls.__name__}: {type(error).__name__}: {error} ({place})"]) from error


@dataclass(frozen=True)
class _Place:
    """Where a problem is: `order` sorts the places of the file before those of the command line."""

    order: tuple[int, float]
    words: str


@dataclass(frozen=True)
class _Places:
    """Finds the place where a key can be changed."""

    label: str
    document: reader.Document
    overrides: Sequence[Override]

    def in_file(self, line: int) -> _Place:
        return _Place((0, line), f"{self.label}, line {line}")

    def of(self, path: schema.Path) -> _Place:
        """The place of the key itself or, if it is missing, of what it is missing from."""
        for length in range(len(path), 0, -1):
            start = path[:length]
            line = self.document.lines.get(start)
            for index, override in enumerate(self.overrides):
                # One that sets a key below `start` has made `start` itself, unless the file did.
                if override.path == start or (line is None and override.path[:length] == start):
                    return _Place((1, index), override.place)
            if line is not None:
                return self.in_file(line)
        return _Place((0, math.inf), self.label)


def _read_sections(text: str, cls: type) -> reader.Document:
    """The document in `text`, with a mapping at the top, whatever the text holds."""
    document = reader.parse(text)
    if isinstance(document.data, dict):
        return document
    if not document.problems:
        sections = ", ".join(section.name for section in schema.describe(cls))
        found = "nothing" if document.data is None else schema.quote(document.data)
        message = f"expected the sections {sections}, found {found}"
        document.problems.append(reader.ReadProblem((), message, 1))
    document.data = {}
    document.unread.add(())
    return document


def _override(cls: type, document: reader.Document, texts: Iterable[str]) -> tuple[list[Override], list[str]]:
    """Change the document's data; returns the overrides that were applied, and problems with the others."""
    overrides, problems = read_overrides(texts)
    if issubclass(cls, TrainerConfig):
        overrides = rename_roles(cls, document, overrides)
    applied: list[Override] = []
    for override in overrides:
        refusal = apply(override, document.data)
        if refusal is None:
            applied.append(override)
        else:
            problems.append(refusal)
    return applied, problems


def _is_unread(path: schema.Path, document: reader.Document) -> bool:
    """Whether the value at `path` is part of something unreadable, which is reported already."""
    return any(path[:length] in document.unread for length in range(len(path) + 1))


def _line(path: schema.Path, message: str, place: _Place) -> tuple[tuple[int, float], str]:
    key = f"{schema.dotted(path)}: " if path else ""
    return place.order, f"{key}{message} ({place.words})"
