"""The settings that a sweep varies, by their full names in the configuration, each a list of values or a range.

Names and limits come from the declaration of the configuration, so that mistakes are found before anything starts.
"""

import difflib
import itertools
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tengen import schema
from tengen.config import reader
from tengen.config.trainers import current_key
from tengen.errors import ConfigError
from tengen.run.metrics import is_number
from tengen.schema.declaration import NUMBERS, FlatSetting, Rule, expected, shape

Settings = dict[str, Any]  # value by full name, in plain data
MOST = 1000  # trials that a sweep may have: each is checked before the first begins
_DRAWS = 200  # attempts to draw settings that go together
_DIGITS = 4  # of a drawn number: more would be unreadable and meaningless
_FACTORS = (0.8, 1.25)
_ANEW = 0.25  # how often a perturbed setting is drawn anew instead


@dataclass(frozen=True)
class ValueChoice:
    """One of a list of values."""

    key: str
    values: tuple[Any, ...]

    def draw(self, source: random.Random) -> Any:
        return source.choice(self.values)

    def perturb(self, value: Any, source: random.Random) -> Any:
        """A neighbour in a list of numbers, otherwise any value."""
        if not all(is_number(each) for each in self.values) or value not in self.values:
            return self.draw(source)
        ordered = sorted(self.values)
        place = ordered.index(value) + source.choice((-1, 1))
        return ordered[min(max(place, 0), len(ordered) - 1)]


@dataclass(frozen=True)
class ValueRange:
    """A number from `low` to `high`. With `step`, it is a multiple of that; 0 allows any number."""

    key: str
    low: float
    high: float
    log: bool = False
    step: float = 0

    def draw(self, source: random.Random) -> Any:
        share = source.random()
        if self.log:
            return self.fit(self.low * (self.high / self.low) ** share)
        return self.fit(self.low + (self.high - self.low) * share)

    def perturb(self, value: Any, source: random.Random) -> Any:
        """A slightly different number, or sometimes a newly drawn one."""
        if source.random() < _ANEW:
            return self.draw(source)
        factor = source.choice(_FACTORS)
        moved = self.fit(value * factor)
        if moved == value and self.step:  # too small a number for a factor to change it
            moved = self.fit(value + math.copysign(self.step, factor - 1))
        return moved

    def fit(self, number: float) -> Any:
        """The nearest allowed number."""
        if not self.step:
            return min(max(float(f"{number:.{_DIGITS}g}"), self.low), self.high)
        first, last = math.ceil(self.low / self.step), math.floor(self.high / self.step)
        multiple = min(max(round(number / self.step), first), last) * self.step
        return int(multiple) if float(self.step).is_integer() else multiple


Axis = ValueChoice | ValueRange


@dataclass(frozen=True)
class Space:
    """All axes. `problems` returns what is wrong with a combination of settings."""

    axes: tuple[Axis, ...]
    problems: Callable[[Settings], Sequence[str]] = lambda settings: ()

    @property
    def size(self) -> int | None:
        """The number of combinations; None if one of the axes is a range."""
        if any(isinstance(axis, ValueRange) for axis in self.axes):
            return None
        return math.prod(len(axis.values) for axis in self.axes if isinstance(axis, ValueChoice))

    def all(self) -> Iterator[Settings]:
        """Every combination, the last setting changing fastest. Only for lists."""
        keys = [axis.key for axis in self.axes]
        for values in itertools.product(*(axis.values for axis in self.axes if isinstance(axis, ValueChoice))):
            yield dict(zip(keys, values, strict=True))

    def draw(self, count: int, source: random.Random) -> list[Settings]:
        """Draw `count` settings, all different if possible. ConfigError if hardly any are valid."""
        if self.size is not None and self.size <= MOST:
            every = list(self.all())
            source.shuffle(every)
            good = list(itertools.islice((each for each in every if not self.problems(each)), count))
            if not good:
                raise ConfigError(_together(self.problems(every[0])))
            return [good[number % len(good)] for number in range(count)]
        found: list[Settings] = []
        while len(found) < count:
            found.append(self._one(source, found))
        return found

    def perturb(self, settings: Settings, source: random.Random, kept: Iterable[str] = ()) -> Settings:
        """Valid settings near these, with those in `kept` unchanged; at worst the same ones."""
        fixed = set(kept)
        for _ in range(_DRAWS):
            moved = {
                axis.key: settings[axis.key] if axis.key in fixed else axis.perturb(settings[axis.key], source)
                for axis in self.axes
            }
            if not self.problems(moved):
                return moved
        return dict(settings)

    def _one(self, source: random.Random, others: Sequence[Settings]) -> Settings:
        problems: Sequence[str] = ()
        same = None
        for _ in range(_DRAWS):
            settings = {axis.key: axis.draw(source) for axis in self.axes}
            problems = self.problems(settings)
            if not problems and settings not in others:
                return settings
            same = settings if not problems else same
        if same is not None:
            return same
        raise ConfigError(_together(problems))


def restored(data: Sequence[Mapping[str, Any]], problems: Callable[[Settings], Sequence[str]]) -> Space:
    """The space of axes that `schema.to_dict` made plain."""
    axes = (
        ValueChoice(each["key"], tuple(each["values"])) if "values" in each else ValueRange(**each) for each in data
    )
    return Space(tuple(axes), problems)


def parse(grids: Iterable[str], randoms: Iterable[str], config: Any) -> tuple[Axis, ...]:
    """The axes from the command line. ConfigError lists every problem."""
    known = {".".join(map(str, each.path)): each for each in schema.flat(config)}
    axes: dict[str, Axis] = {}
    problems: list[str] = []
    for option, text in [*(("--grid", text) for text in grids), *(("--random", text) for text in randoms)]:
        place = f"({option} {text})"
        try:
            axis = _axis(text, option, known, config)
        except _Wrong as wrong:
            problems.append(f"{wrong} {place}")
            continue
        if axis.key in axes:
            problems.append(f"{axis.key}: given twice {place}")
        axes[axis.key] = axis
    if not axes and not problems:
        problems.append("nothing to vary: give --grid KEY=VALUE,VALUE or --random KEY=LOW..HIGH at least once")
    if problems:
        raise ConfigError(problems)
    return tuple(axes.values())


def override(key: str, value: Any) -> str:
    """A setting in the form of `--set`; JSON is valid YAML."""
    return f"{key}={json.dumps(value, ensure_ascii=False)}"


class _Wrong(Exception):
    """What is wrong with one option, in words."""


def _axis(text: str, option: str, known: Mapping[str, FlatSetting], config: Any) -> Axis:
    written, equals, values = text.partition("=")
    if not equals or not written.strip() or not values.strip():
        raise _Wrong(f"expected {option} section.key=values")
    key = _key(".".join(map(str, current_key(config, tuple(written.strip().split("."))))), known)
    if key.startswith("goal."):
        raise _Wrong(f"{key}: the length of a trial is set by --minutes, --steps, --games or --rows")
    low, dots, rest = values.partition("..")
    if not dots:
        return _choice(key, values)
    if option == "--grid":
        raise _Wrong(f"{key}: --grid takes a list of values; for a range write --random {text}")
    high, _, scale = rest.partition(":")
    if scale not in ("", "log"):
        raise _Wrong(f"{key}: expected LOW..HIGH or LOW..HIGH:log, got :{scale}")
    # An option that has no declaration is of the kind of the ends of its range.
    kind = int if all(isinstance(reader.plain(end.strip()), int) for end in (low, high)) else float
    return _range(key, low, high, bool(scale), known.get(key) or FlatSetting((), None, Rule(), shape(kind)))


def _choice(key: str, text: str) -> ValueChoice:
    found = reader.parse(f"[{text}]")
    if found.problems:
        raise _Wrong(f"{key}: {found.problems[0].message}")
    values = tuple(found.data)
    for number, value in enumerate(values):
        if value in values[:number]:
            raise _Wrong(f"{key}: {schema.quote(value)} is given twice")
    return ValueChoice(key, values)


def _range(key: str, low: str, high: str, log: bool, known: FlatSetting) -> ValueRange:
    kind, rule, wanted = known.shape.kind, known.rule, expected(known.shape._replace(optional=False), known.rule)
    ends = reader.plain(low.strip()), reader.plain(high.strip())
    if kind not in NUMBERS:
        raise _Wrong(f"{key}: is not a number but {wanted}; write a list of values")
    if not all(is_number(end) and math.isfinite(end) for end in ends):
        raise _Wrong(f"{key}: expected LOW..HIGH, two numbers, got {schema.quote(f'{low}..{high}')}")
    if not ends[0] < ends[1]:
        raise _Wrong(f"{key}: expected LOW..HIGH with the lower number first, got {low}..{high}")
    if log and ends[0] <= 0:
        raise _Wrong(f"{key}: a logarithmic range must begin above 0, not at {low}")
    if (rule.low is not None and ends[0] < rule.low) or (rule.high is not None and ends[1] > rule.high):
        raise _Wrong(f"{key}: expected {wanted}, got {low}..{high}")
    step = rule.multiple_of or (1 if kind is int else 0)
    if step and math.ceil(ends[0] / step) > math.floor(ends[1] / step):
        raise _Wrong(f"{key}: there is no {wanted} in {low}..{high}")
    return ValueRange(key, *ends, log=log, step=step)


def _key(written: str, known: Mapping[str, FlatSetting]) -> str:
    """The full name of a setting: as written, or the only one that the text abbreviates."""
    section, _, last = written.rpartition(".")
    if written in known or (section in known and known[section].shape.container == "mapping"):
        return written  # a setting, or one of the options of a user's network
    below = [key for key in known if key.startswith(f"{section}.")] if section else list(known)
    ends = {key: key.rpartition(".")[2] for key in below}
    initials = {key: "".join(word[:1] for word in end.split("_")) for key, end in ends.items() if "_" in end}
    short = [key for key in below if last in (ends[key], initials.get(key))]  # lr for learning_rate
    if len(short) == 1:
        return short[0]
    if any(key.startswith(f"{written}.") for key in known):
        raise _Wrong(f"{written}: is a section, expected one of {', '.join(k for k in known if k.startswith(written))}")
    if short:
        raise _Wrong(f"{written}: could be any of {', '.join(short)}; write one of them")
    if not below:
        section, below = "", list(known)
    names = {key.rpartition(".")[2]: key for key in reversed(below)}
    if near := difflib.get_close_matches(last, names, n=1):
        raise _Wrong(f"{written}: unknown key, did you mean {names[near[0]]}?")
    depth = section.count(".") + 1 if section else 0
    shown = dict.fromkeys(".".join(key.split(".")[: depth + 1]) for key in below)
    raise _Wrong(f"{written}: {schema.unknown('key', '', shown)}")


def _together(problems: Sequence[str]) -> list[str]:
    return [*problems, "no settings were found that go together; narrow the ranges, or change others with --set"]
