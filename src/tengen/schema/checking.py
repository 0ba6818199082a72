"""From plain data or JSON to the dataclass that declares it, or to a list of everything that is wrong with the data."""

import dataclasses
import json
import math
import numbers
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from tengen import files
from tengen.errors import OptionError
from tengen.schema.declaration import (
    NUMBERS,
    REQUIRED,
    Path,
    Rule,
    Shape,
    Variant,
    below,
    declared,
    describe,
    dotted,
    expected,
    key_names,
    quote,
    retired_keys,
    shape,
    unknown,
)

T = TypeVar("T")


class Problem(NamedTuple):
    path: Path
    message: str


def check(cls: type[T], data: object, path: Path = (), *, old: bool = False) -> tuple[T | None, list[Problem]]:
    """Build `cls` from plain data with every key; None if there are problems.

    `old` data may lack newer settings, those that are declared with `before`.
    """
    checker = _Checker("key", old)
    instance = checker.section(cls, data, path)
    return (None if checker.problems else instance), checker.problems


def from_options(cls: type[T], options: Mapping[str, object], what: str) -> T:
    """Build `cls` from keyword options, with the declared defaults for those left out.

    Raises OptionError, which is a ValueError, naming `what` and listing every problem.
    """
    # Defaults are checked as well: they are a user's, if the class is that of a user's game.
    defaults = {setting.name: setting.default for setting in describe(cls) if setting.default is not REQUIRED}
    return from_data(cls, {**defaults, **options}, what, strict=True, noun="option")


def from_data(cls: type[T], data: object, what: str = "", *, strict: bool = False, noun: str = "key") -> T:
    """Build `cls`, a dataclass or a type such as dict[str, Any], from the data of a file or a message.

    The declared defaults apply to keys left out. Unknown keys are ignored unless `strict`. Raises OptionError naming
    `what` and listing every problem.
    """
    return _Checker(noun, defaults=True, strict=strict).result(cls, data, what)


def from_json(
    cls: type[T], text: str | bytes, what: str = "", *, strict: bool = False, version: int | None = None
) -> T:
    """`cls` from JSON, as `from_data`; with a `version`, from an object that has it as `schema`.

    Raises OptionError, which is a ValueError, naming `what`.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{what}: not valid JSON: {error}" if what else f"not valid JSON: {error}") from None
    if version is not None and (not isinstance(data, dict) or repr(data.pop("schema", None)) != str(version)):
        raise OptionError(f"{f'{what}: ' if what else ''}expected an object of schema {version}")
    return from_data(cls, data, what, strict=strict)


def read_json(cls: type[T], path: pathlib.Path, limit: int | None = None) -> T:
    """`cls` from a JSON file, whose keys may be more than those of `cls`. Raises FileError or OptionError."""
    return from_json(cls, files.read_bytes(path, limit), str(path))


def write_json(path: pathlib.Path, content: Any, indent: int | None = 1) -> None:
    """Write a dataclass, mapping or list as JSON. Raises FileError, and ValueError for numbers that are not finite."""
    data = (
        dataclasses.asdict(content) if dataclasses.is_dataclass(content) and not isinstance(content, type) else content
    )
    files.write_bytes(path, json.dumps(data, indent=indent, allow_nan=False).encode() + b"\n")


@dataclass(frozen=True)
class _Checker:
    """Collects the problems of one tree of data. `noun` is what its keys are called."""

    noun: str
    old: bool = False
    defaults: bool = False  # apply to missing keys
    strict: bool = True  # unknown keys are problems
    problems: list[Problem] = field(default_factory=list)
    names: dict[Path, str | None] = field(default_factory=dict)  # `KeyNames` of the whole tree

    def result(self, cls: type[T], data: object, what: str) -> T:
        """`cls`, or OptionError with all problems."""
        instance = self._value(shape(cls), Rule(), data, ())
        if self.problems:
            listed = "; ".join(f"{dotted(path)}: {message}" if path else message for path, message in self.problems)
            raise OptionError(f"{what}: {listed}" if what else listed)
        return instance

    def section(self, cls: type[T], data: object, path: Path) -> T | None:
        """`cls` from a mapping with exactly its keys; None if something is wrong."""
        if not isinstance(data, Mapping):
            self._report(path, f"expected {expected(shape(cls), None, below(self.names, *path))}, got {quote(data)}")
            return None
        self.names.update({(*path, *inner): key for inner, key in key_names(cls, data).items()})
        instance, known = self._fields(cls, data, path)
        if known is not None and self.strict:
            moved = _moved(cls)
            new = all(name in _mapping(data.get(section)) for section, name in moved.values())
            for key in data:
                if key in moved:
                    if new or not self.old:
                        self._report((*path, str(key)), f"is now {dotted((*path, *moved[key]))}")
                elif key not in known and key not in retired_keys(cls):
                    self._report((*path, str(key)), unknown(self.noun, str(key), known))
        return instance

    def _fields(
        self, cls: type[T], data: Mapping[Any, object], path: Path, owner: str = ""
    ) -> tuple[T | None, list[str] | None]:
        """`cls` from its keys in `data`, and its known keys: None if they depend on a bad value."""
        before = len(self.problems)
        data = _in_place(cls, data) if self.old else data
        found: dict[str, Any] = {}
        known: list[str] = []
        all_known = True
        for name, kind, rule, default, _ in declared(cls):
            if isinstance(rule, Variant):
                found[name], inner = self._variant(rule, found.get(rule.by), data, path)
                known += inner or []
                all_known = all_known and inner is not None
                continue
            key = self.names.get((*path, name), name)
            if key is None:
                found[name] = None
                continue
            known.append(key)
            if key in data:
                found[name] = self._value(kind, rule, data[key], (*path, key))
            elif self.old and rule.before is not ...:
                found[name] = rule.before
            elif not self.defaults or default is REQUIRED:
                wanted = expected(kind, rule, below(self.names, *path, name))
                self._report((*path, key), f"missing{owner}, expected {wanted}")
        instance = None
        if len(self.problems) == before:
            instance = cls(**found)
            self._together(instance, path)
        return instance, known if all_known else None

    def _together(self, instance: object, path: Path) -> None:
        rules: Callable[[], Iterable[tuple[str, str]]] | None = getattr(instance, "check_together", None)
        if rules is not None:
            for key, message in rules():
                where = path
                for part in key.split("."):
                    where = (*where, self.names.get((*where, part)) or part)
                self._report(where, message)

    def _variant(
        self, rule: Variant, chosen: str | None, data: Mapping[Any, object], path: Path
    ) -> tuple[Any, list[str] | None]:
        if chosen is None:  # it was bad itself, and that has been reported
            return None, None
        try:
            cls = rule.class_of(chosen)
        except ValueError as error:
            self._report((*path, rule.by), str(error))
            return None, None
        return self._fields(cls, data, path, owner=f" (needed by {chosen})")

    def _value(self, found: Shape, rule: Rule, value: object, path: Path) -> Any:
        """`value` as its declared type; None, with the problems reported, if it is not that."""
        kind = found.kind
        if kind is Any or (found.optional and value is None) or (isinstance(value, str) and value in found.words):
            return value
        if found.section:
            return self.section(kind, value, path)
        if found.container == "mapping" and isinstance(value, Mapping):
            if found.item is Any:
                return dict(value)
            inner = shape(found.item)
            return {str(key): self._value(inner, rule, v, (*path, str(key))) for key, v in value.items()}
        if found.container == "tuple" and isinstance(value, list | tuple):
            items = [found.item] * len(value) if found.items is None else found.items
            if len(items) == len(value):
                numbered = enumerate(zip(map(shape, items), value, strict=True))
                return tuple(self._value(inner, rule, v, (*path, i)) for i, (inner, v) in numbered)
        good = None if found.container else _scalar(found, rule, value)
        if good is None:
            self._report(path, f"expected {expected(found, rule)}, got {quote(value)}")
        return good

    def _report(self, path: Path, message: str) -> None:
        self.problems.append(Problem(path, message))


def _moved(cls: type) -> dict[str, tuple[str, str]]:
    """Keys that a section had in earlier versions, and where their settings are now: (section, key) in it."""
    return {old: (new.partition(".")[0], new.partition(".")[2]) for old, new in getattr(cls, "moved", {}).items()}


def _in_place(cls: type, data: Mapping[Any, object]) -> Mapping[Any, object]:
    """The data of an earlier version, with the settings that have moved in their new place."""
    found = dict(data)
    for old, (section, key) in _moved(cls).items():
        if old in data:
            found[section] = {key: data[old], **_mapping(found.get(section))}
    return found


def _mapping(data: object) -> Mapping[Any, object]:
    return data if isinstance(data, Mapping) else {}


def _scalar(found: Shape, rule: Rule, value: object) -> Any | None:
    """`value` as a scalar of that shape within its limits, or None."""
    kind, allowed = found.kind, found.choices or rule.choices
    if allowed is not None:
        # 1 == True in Python, but nobody who may write 1 may write true.
        return next((choice for choice in allowed if type(choice) is type(value) and choice == value), None)
    if kind is bool:
        return value if isinstance(value, bool) else None
    if kind is str:
        return value if isinstance(value, str) and _is_good_text(value, rule) else None
    number = _number(kind, value) if kind in NUMBERS else None
    return number if number is not None and _is_within(number, rule) else None


def _number(kind: Any, value: object) -> float | None:
    """`value` as an int or float, if it is a finite number of that kind and not a bool."""
    if isinstance(value, bool):
        return None
    if kind is int or (kind is numbers.Real and isinstance(value, numbers.Integral)):
        return int(value) if isinstance(value, numbers.Integral) else None
    try:
        number = float(value) if isinstance(value, numbers.Real) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _is_within(number: float, rule: Rule) -> bool:
    if rule.low is not None and number < rule.low:
        return False
    if rule.high is not None and number > rule.high:
        return False
    if rule.multiple_of is None:
        return True
    if isinstance(number, int) and isinstance(rule.multiple_of, int):
        return number % rule.multiple_of == 0
    return abs(math.remainder(number, rule.multiple_of)) < 1e-9 * rule.multiple_of


def _is_good_text(text: str, rule: Rule) -> bool:
    # Half of a surrogate pair is no character: it cannot be written to a file.
    if any("\ud800" <= character <= "\udfff" for character in text):
        return False
    return rule.pattern is None or re.fullmatch(rule.pattern, text) is not None
