"""How a setting is declared, its declaration in words, and the wording of messages about settings."""

import dataclasses
import difflib
import functools
import json
import numbers
import re
import reprlib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from tengen import redact

Path = tuple[str | int, ...]

_QUOTE_LENGTH = 40
_NAME_LENGTH = 60
# JSON leaves these as they are, though they cannot be printed or break a line.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
REQUIRED: Final = dataclasses.MISSING
"""The default of a setting that has none."""

KeyNames = Mapping[Path, str | None]
"""The keys of settings whose names in files are not those of their fields, by the path of the fields; None: no key."""
_NO_NAMES: Final[KeyNames] = types.MappingProxyType({})

NUMBERS: Final = (int, float, numbers.Real)
"""The kinds of numbers that can be declared; Real is `int | float`."""
_METADATA = "tengen.schema"
Change = Literal["now", "start"]
"""When another value of a setting takes effect in a run that exists: while it runs, or when it is started again."""


@dataclass(frozen=True)
class Rule:
    """What a setting is for, and the values it allows beyond its type."""

    help: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] | None = None
    multiple_of: float | None = None
    pattern: str | None = None
    words: str | None = None
    before: Any = ...
    change: Change | None = None
    fixed: str = ""


@dataclass(frozen=True)
class Variant:
    """Settings in the same mapping that depend on the value of the setting `by`."""

    by: str
    class_of: Callable[[str], type]


class Declared(NamedTuple):
    """One setting, a field of a class. `default` is REQUIRED where there is none."""

    name: str
    shape: "Shape"
    rule: Any  # a Rule, or a Variant
    default: Any
    inside: KeyNames = _NO_NAMES  # of the settings of a section

    @property
    def expected(self) -> str:
        """What its value must be, in words."""
        return expected(self.shape, self.rule)

    @property
    def help(self) -> str:
        return self.rule.help


def setting(
    default: Any,
    help: str = "",
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Iterable[Any] | None = None,
    multiple_of: float | None = None,
    pattern: str | None = None,
    words: str | None = None,
    before: Any = ...,
    change: Change | None = None,
    fixed: str = "",
) -> Any:
    """A dataclass field with its one-line explanation and its limits (both ends included).

    `pattern` is a regular expression for a whole text, and `words` describes it in messages. `before` is for a setting
    that is newer than others of its section: the value that applies to files written before it existed.

    `change` is when another value takes effect in a run that exists. On a section it holds for all settings inside; if
    one of those declares another `change`, the later of the two counts. With `fixed`, or without either, a run keeps
    the value for ever; `fixed` is the reason for users, and what they can do instead.
    """
    if change not in (None, *typing.get_args(Change)):
        raise ValueError(f"change: expected one of {', '.join(typing.get_args(Change))}, or None, got {change!r}")
    allowed = None if choices is None else tuple(choices)
    rule = Rule(help, low, high, allowed, multiple_of, pattern, words, before, change, fixed)
    return dataclasses.field(default=default, metadata={_METADATA: rule})


def variant(by: str, class_of: Callable[[str], type]) -> Any:
    """A dataclass field for the settings that go with one value of the setting `by`, declared before it.

    `class_of` returns the dataclass that declares them, or raises ValueError for an unknown value. Their keys are
    written next to `by`, not one level below: `game: {name: go, size: 9, komi: 7.0}`.
    """
    return dataclasses.field(metadata={_METADATA: Variant(by, class_of)})


@functools.cache
def declared(cls: type) -> tuple[Declared, ...]:
    """Every field of `cls`, in order. One without `setting` allows all values of its type."""
    hints = typing.get_type_hints(cls)
    found = []
    for field in dataclasses.fields(cls):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        found.append(Declared(field.name, shape(hints[field.name]), field.metadata.get(_METADATA) or Rule(), default))
    return tuple(found)


def describe(cls: type) -> list[Declared]:
    """The settings of `cls` in order, without those of its variants, which depend on a value."""
    return [setting for setting in declared(cls) if isinstance(setting.rule, Rule)]


def before(cls: type) -> dict[str, Any]:
    """The settings of `cls` that are newer than others, each with the value for files from before it existed."""
    return {setting.name: setting.rule.before for setting in describe(cls) if setting.rule.before is not ...}


class Retired(NamedTuple):
    """A setting that was removed."""

    inactive: Any  # the value at which it did nothing
    why: str  # it was removed


def retired_keys(cls: type) -> Mapping[str, Retired]:
    """The keys of the settings that were removed from the section `cls`. A setting may be called `retired`, too."""
    found = getattr(cls, "retired", None)
    return found if isinstance(found, Mapping) else {}


def retired(
    cls: type, data: object, path: Path = (), names: KeyNames | None = None
) -> Iterator[tuple[Path, Any, Retired]]:
    """Every setting in `data` that was removed from `cls` or one of its sections: path, value, and what it was.

    Options of variants, such as those of a game, cannot be retired.
    """
    if not isinstance(data, Mapping):
        return
    yield from (((*path, key), data[key], gone) for key, gone in retired_keys(cls).items() if key in data)
    names = key_names(cls, data) if names is None else names
    for section in (setting for setting in describe(cls) if setting.shape.section):
        if (key := names.get((section.name,), section.name)) is not None:
            yield from retired(section.shape.kind, data.get(key), (*path, key), below(names, section.name))


def key_names(cls: type, source: Any) -> KeyNames:
    """The keys that a classmethod `key_names` of `cls` gives for `source`: its data or an instance."""
    named: Callable[[Any], KeyNames] | None = getattr(cls, "key_names", None)
    return named(source) if named else _NO_NAMES


def values(instance: Any, names: KeyNames | None = None) -> Iterator[tuple[Declared, Any]]:
    """Every setting of `instance` with its value, those of a variant among the others.

    `names` of a section inside another one are `Declared.inside`.
    """
    names = key_names(type(instance), instance) if names is None else names
    for field in declared(type(instance)):
        value, key = getattr(instance, field.name), names.get((field.name,), field.name)
        if isinstance(field.rule, Variant):
            yield from values(value)
        elif key is not None:
            yield field._replace(name=key, inside=below(names, field.name)), value


def to_dict(instance: Any, names: KeyNames | None = None) -> dict[str, Any]:
    """The settings as plain data, with the keys that files have. `check` undoes it."""
    return {setting.name: _plain(value, setting.inside) for setting, value in values(instance, names)}


def _plain(value: Any, names: KeyNames) -> Any:
    if isinstance(value, tuple):
        return [_plain(item, _NO_NAMES) for item in value]
    return to_dict(value, names) if dataclasses.is_dataclass(value) else value


def below(names: KeyNames, *section: str | int) -> KeyNames:
    """The names of the keys inside the section at a path."""
    depth = len(section)
    return {path[depth:]: key for path, key in names.items() if path[:depth] == section and len(path) > depth}


class FlatSetting(NamedTuple):
    path: Path
    value: Any
    rule: Rule
    shape: "Shape"


def flat(
    instance: Any, path: Path = (), rule: Rule | None = None, names: KeyNames | None = None
) -> Iterator[FlatSetting]:
    """Every setting of `instance` and of its sections, with its value; the rule has the `change` that holds for it."""
    above = rule or Rule()
    for setting, value in values(instance, names):
        own, here = setting.rule, (*path, setting.name)
        change = "start" if "start" in (own.change, above.change) else own.change or above.change
        own = dataclasses.replace(own, change=None if own.fixed else change, fixed=own.fixed or above.fixed)
        if dataclasses.is_dataclass(value):
            yield from flat(value, here, own, setting.inside)
        else:
            yield FlatSetting(here, value, own, setting.shape)


def expected(found: "Shape", rule: Rule | None = None, names: KeyNames = _NO_NAMES) -> str:
    """What a value must be, to follow the word "expected"; `names` are those of the keys of a section."""
    kind = found.kind
    if found.optional:
        return f"{expected(found._replace(optional=False), rule, names)} or null"
    if kind is Any:
        return "any value"
    if found.container == "mapping":
        return "a mapping"
    if found.container == "tuple":
        kinds = [expected(shape(item), rule) for item in found.items or (found.item,)]
        if len(set(kinds)) > 1:
            return f"a list of {len(kinds)}: {', '.join(kinds)}"
        return f"a list{f' of {len(found.items)}' if found.items else ''}, each item {kinds[0]}"
    if found.section:
        fields = declared(kind)
        keys = [
            names.get((d.name,), d.name) if isinstance(d.rule, Rule) else f"those of its {d.rule.by}" for d in fields
        ]
        keys = [key for key in keys if key is not None]
        return f"a section with the keys {', '.join(keys)}" if keys else "an empty section"
    allowed = found.choices or (rule.choices if rule else None)
    if allowed is not None:
        return f"one of {', '.join(c if isinstance(c, str) else quote(c) for c in allowed)}"
    if kind is bool:
        return "true or false"
    if kind is str:
        return rule.words or "text" if rule else "text"
    if kind in NUMBERS:
        return " or ".join((_number(kind, rule), *found.words))
    raise TypeError(f"a setting cannot be declared as {kind}")


def _alternatives(annotation: Any) -> tuple[Any, bool, tuple[str, ...]]:
    """T, whether None is allowed too, and which words are, for an annotation `T | Literal["auto"] | None`."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation, False, ()
    args = typing.get_args(annotation)
    kinds = [arg for arg in args if arg is not types.NoneType]
    words: tuple[str, ...] = ()
    if kinds[:2] == [int, float]:
        kinds[:2] = [numbers.Real]
    if len(kinds) == 2 and kinds[0] in NUMBERS and typing.get_origin(kinds[1]) is Literal:
        words = typing.get_args(kinds.pop())
    if len(kinds) != 1:
        raise TypeError(f"a setting cannot be declared as {annotation}")
    return kinds[0], types.NoneType in args, words


class Shape(NamedTuple):
    """The structure of an annotation."""

    kind: Any  # the annotation without None
    optional: bool
    section: bool  # a dataclass
    item: Any = None  # T of tuple[T, ...] or dict[str, T]
    items: tuple[Any, ...] | None = None  # A and B of tuple[A, B]
    container: Literal["tuple", "mapping"] | None = None
    choices: tuple[Any, ...] | None = None  # of a Literal
    words: tuple[str, ...] = ()  # that may stand for a number: `int | Literal["auto"]`


@functools.cache
def shape(annotation: Any) -> Shape:
    """The structure of an annotation. TypeError if no setting can be declared so."""
    kind, optional, words = _alternatives(annotation)
    found = Shape(kind, optional, dataclasses.is_dataclass(kind), words=words)
    args = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        return found._replace(choices=args)
    if typing.get_origin(kind) in (dict, Mapping):
        return found._replace(container="mapping", item=args[1])
    if typing.get_origin(kind) is not tuple:
        return found
    if args[-1] is Ellipsis:
        return found._replace(container="tuple", item=args[0])
    return found._replace(container="tuple", items=args)


def _number(annotation: Any, rule: Rule | None) -> str:
    noun = "a whole number" if annotation is int else "a number"
    if rule is None:
        return noun
    if rule.multiple_of is not None:
        noun = f"a multiple of {rule.multiple_of}"
    if rule.low is not None and rule.high is not None:
        return f"{noun} from {rule.low} to {rule.high}"
    if rule.low is not None:
        return f"{noun} of at least {rule.low}"
    return noun if rule.high is None else f"{noun} of at most {rule.high}"


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
