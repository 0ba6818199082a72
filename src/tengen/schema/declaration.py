"""How a setting is declared, and its declaration in words."""

import dataclasses
import functools
import numbers
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from tengen.schema.words import Path, quote

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
    """One field of a class that declares settings."""

    name: str
    shape: "Shape"
    rule: Rule | Variant
    default: Any


class Described(NamedTuple):
    """A setting in words, for listings and comments. `default` is REQUIRED where there is none."""

    name: str
    expected: str
    default: Any
    help: str
    inside: KeyNames = _NO_NAMES  # of the settings of a section


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


def describe(cls: type) -> list[Described]:
    """The settings of `cls` in order, without those of its variants, which depend on a value."""
    return [_in_words(d, d.rule) for d in declared(cls) if isinstance(d.rule, Rule)]


def before(cls: type) -> dict[str, Any]:
    """The settings of `cls` that are newer than others, each with the value for files from before it existed."""
    rules = ((field.name, field.rule) for field in declared(cls))
    return {name: rule.before for name, rule in rules if isinstance(rule, Rule) and rule.before is not ...}


def key_names(cls: type, source: Any) -> KeyNames:
    """The keys that a classmethod `key_names` of `cls` gives for `source`: its data or an instance."""
    named: Callable[[Any], KeyNames] | None = getattr(cls, "key_names", None)
    return named(source) if named else _NO_NAMES


def values(instance: Any, names: KeyNames | None = None) -> Iterator[tuple[Described, Any]]:
    """Every setting of `instance` with its value, those of a variant among the others.

    `names` of a section inside another one are `Described.inside`.
    """
    names = key_names(type(instance), instance) if names is None else names
    for field in declared(type(instance)):
        value, key = getattr(instance, field.name), names.get((field.name,), field.name)
        if isinstance(field.rule, Variant):
            yield from values(value)
        elif key is not None:
            yield _in_words(field, field.rule)._replace(name=key, inside=below(names, field.name)), value


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
    """A setting of a whole tree of sections."""

    path: Path
    value: Any
    rule: Rule
    shape: "Shape"


def flat(
    instance: Any, path: Path = (), rule: Rule | None = None, names: KeyNames | None = None
) -> Iterator[FlatSetting]:
    """Every setting of `instance` and of its sections, with its value; the rule has the `change` that holds for it."""
    above, names = rule or Rule(), key_names(type(instance), instance) if names is None else names
    for field in declared(type(instance)):
        value = getattr(instance, field.name)
        if isinstance(field.rule, Variant):
            yield from flat(value, path, above)
            continue
        if (key := names.get((field.name,), field.name)) is None:
            continue
        own, here = field.rule, (*path, key)
        change = "start" if "start" in (own.change, above.change) else own.change or above.change
        change = None if own.fixed else change
        own = dataclasses.replace(own, change=change, fixed=own.fixed or above.fixed)
        if dataclasses.is_dataclass(value):
            yield from flat(value, here, own, below(names, field.name))
        else:
            yield FlatSetting(here, value, own, field.shape)


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


def _in_words(field: Declared, rule: Rule) -> Described:
    return Described(field.name, expected(field.shape, rule), field.default, rule.help)


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
