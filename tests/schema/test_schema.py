"""One declaration serves options and configuration sections, and every problem is found and worded."""

from collections.abc import Iterator
from dataclasses import dataclass, make_dataclass
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.errors import OptionError
from tengen.schema import (
    REQUIRED,
    Retired,
    check,
    describe,
    from_data,
    from_options,
    quote,
    retired,
    setting,
    to_dict,
    values,
    variant,
)


@dataclass(frozen=True)
class Options:
    size: int = setting(9, "points along one side", low=2, high=19)
    komi: float = setting(7.0, "points for White", low=-100, high=100, multiple_of=0.5)
    ko: Literal["simple", "positional"] = setting("simple", "which repetitions are forbidden")
    suicide: bool = setting(False, "whether suicide is allowed")
    limit: int | None = setting(None, "moves until the game ends", low=1)
    widths: tuple[int, ...] = setting((8, 16), "channels of each block", low=8, multiple_of=8)
    name: str = setting("x", "what it is called", pattern="[a-z]+", words="small letters")
    level: int = setting(1, "how hard", choices=(1, 3))

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.limit is not None and self.limit < self.size:
            yield "limit", f"expected at least size, which is {self.size}, got {self.limit}"


@dataclass(frozen=True)
class Inner:
    rate: float = setting(REQUIRED, "how fast", low=0)


@dataclass(frozen=True)
class Outer:
    inner: Inner = setting(REQUIRED, "a section")
    maybe: Inner | None = setting(REQUIRED, "a section that may be left out")


@dataclass(frozen=True)
class Round:
    radius: int = setting(1, "from the middle to the rim")


@dataclass(frozen=True)
class Flat:
    pass


def shape_class(name: str) -> type:
    if name not in ("round", "flat"):
        raise ValueError(f"no shape is called {name}")
    return Round if name == "round" else Flat


@dataclass(frozen=True)
class Shape:
    kind: str = setting(REQUIRED, "which shape")
    options: Any = variant("kind", shape_class)


@dataclass(frozen=True)
class Newer:
    """A version of `Outer` from which settings were removed."""

    retired: ClassVar = {"gone": Retired(0, "nobody used it")}
    inner: "NewerInner" = setting(REQUIRED, "a section")
    maybe: Inner | None = setting(REQUIRED, "a section that may be left out")


@dataclass(frozen=True)
class NewerInner:
    retired: ClassVar = {"loss": Retired(None, "it made things worse")}
    rate: float = setting(REQUIRED, "how fast", low=0)


GOOD = {
    "size": 9,
    "komi": 7,
    "ko": "simple",
    "suicide": True,
    "limit": None,
    "widths": [8, 64],
    "name": "x",
    "level": 3,
}


def problems(cls: type, data: object) -> list[str]:
    """What `check` says, one `path: message` per problem."""
    instance, found = check(cls, data)
    assert (instance is None) == bool(found)
    return [f"{'.'.join(map(str, p.path))}: {p.message}" for p in found]


def test_good_data_becomes_the_declared_types() -> None:
    instance, found = check(Options, GOOD)
    assert found == []
    assert instance == Options(9, 7.0, "simple", True, None, (8, 64), "x", 3)
    assert isinstance(instance, Options)
    assert isinstance(instance.komi, float)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("size", "many", 'expected a whole number from 2 to 19, got "many"'),
        ("size", 1, "expected a whole number from 2 to 19, got 1"),
        ("size", 20, "expected a whole number from 2 to 19, got 20"),
        ("size", 9.0, "expected a whole number from 2 to 19, got 9.0"),
        ("size", True, "expected a whole number from 2 to 19, got true"),
        ("size", None, "expected a whole number from 2 to 19, got null"),
        ("size", {}, "expected a whole number from 2 to 19, got a mapping"),
        ("komi", 0.3, "expected a multiple of 0.5 from -100 to 100, got 0.3"),
        ("komi", float("nan"), "expected a multiple of 0.5 from -100 to 100, got nan"),
        ("komi", float("inf"), "expected a multiple of 0.5 from -100 to 100, got inf"),
        ("komi", 10**400, "expected a multiple of 0.5 from -100 to 100, got a whole number of 1329 bits"),
        ("ko", "super", 'expected one of simple, positional, got "super"'),
        ("suicide", 1, "expected true or false, got 1"),
        ("limit", 0, "expected a whole number of at least 1 or null, got 0"),
        ("widths", 8, "expected a list, each item a multiple of 8 of at least 8, got 8"),
        ("widths", "88", 'expected a list, each item a multiple of 8 of at least 8, got "88"'),
        ("name", "X1", 'expected small letters, got "X1"'),
        ("name", "x\n", 'expected small letters, got "x\\n"'),
        ("level", 2, "expected one of 1, 3, got 2"),
        ("level", True, "expected one of 1, 3, got true"),
        ("level", [], "expected one of 1, 3, got a list"),
        ("limit", 5, "expected at least size, which is 9, got 5"),
    ],
)
def test_a_bad_value_is_named_with_what_was_expected(key: str, value: object, message: str) -> None:
    assert problems(Options, GOOD | {key: value}) == [f"{key}: {message}"]


def test_items_of_a_list_are_checked_one_by_one() -> None:
    assert problems(Options, GOOD | {"widths": [8, 9, 16, "x"]}) == [
        "widths.1: expected a multiple of 8 of at least 8, got 9",
        'widths.3: expected a multiple of 8 of at least 8, got "x"',
    ]


def test_every_key_must_be_there_though_it_has_a_default() -> None:
    without = {key: value for key, value in GOOD.items() if key not in ("size", "suicide")}
    assert problems(Options, without) == [
        "size: missing, expected a whole number from 2 to 19",
        "suicide: missing, expected true or false",
    ]


def test_an_unknown_key_is_told_the_nearest_or_all() -> None:
    assert problems(Options, GOOD | {"komy": 1}) == ["komy: unknown key, did you mean komi?"]
    everything = "size, komi, ko, suicide, limit, widths, name, level"
    assert problems(Options, GOOD | {"zzz": 1}) == [f"zzz: unknown key, expected one of {everything}"]


def test_rules_across_settings_wait_for_the_settings() -> None:
    assert problems(Options, GOOD | {"limit": 5, "komi": "x"}) == [
        'komi: expected a multiple of 0.5 from -100 to 100, got "x"'
    ]


def test_sections_within_sections() -> None:
    assert check(Outer, {"inner": {"rate": 1}, "maybe": None})[0] == Outer(Inner(1.0), None)
    assert check(Outer, {"inner": {"rate": 1}, "maybe": {"rate": 2}})[0] == Outer(Inner(1.0), Inner(2.0))
    assert problems(Outer, {"inner": [], "maybe": {"rat": 1}}) == [
        "inner: expected a section with the keys rate, got a list",
        "maybe.rate: missing, expected a number of at least 0",
        "maybe.rat: unknown key, did you mean rate?",
    ]
    assert problems(Outer, None) == [": expected a section with the keys inner, maybe, got null"]


def test_settings_of_a_variant_stand_beside_its_name() -> None:
    instance, _ = check(Shape, {"kind": "round", "radius": 2})
    assert instance == Shape("round", Round(2))
    assert [(d.name, value) for d, value in values(instance)] == [("kind", "round"), ("radius", 2)]
    assert check(Shape, {"kind": "flat"})[0] == Shape("flat", Flat())


def test_problems_of_a_variant() -> None:
    assert problems(Shape, {"kind": "flat", "radius": 2}) == ["radius: unknown key, expected one of kind"]
    assert problems(Shape, {"kind": "round"}) == ["radius: missing (needed by round), expected a whole number"]
    # Nothing can be said about the other keys while nobody knows which they should be.
    assert problems(Shape, {"kind": "bent", "radius": 2}) == ["kind: no shape is called bent"]
    assert problems(Shape, {"kind": 3, "radius": 2}) == ["kind: expected text, got 3"]
    assert problems(Shape, {"radius": 2}) == ["kind: missing, expected text"]
    assert problems(Shape, 1) == [": expected a section with the keys kind, those of its kind, got 1"]


def test_settings_that_were_removed_are_passed_over() -> None:
    data = {"gone": 5, "inner": {"loss": 2, "rate": 1}, "maybe": None}
    assert check(Newer, data) == (Newer(NewerInner(1.0), None), [])
    assert to_dict(Newer(NewerInner(1.0), None)) == {"inner": {"rate": 1.0}, "maybe": None}
    assert list(retired(Newer, data)) == [
        (("gone",), 5, Retired(0, "nobody used it")),
        (("inner", "loss"), 2, Retired(None, "it made things worse")),
    ]
    assert list(retired(Newer, {"inner": 3})) == list(retired(Newer, None)) == []
    assert problems(Newer, data | {"gon": 1}) == ["gon: unknown key, expected one of inner, maybe"]


def test_options_fill_in_defaults() -> None:
    assert from_options(Options, {}, "go") == Options()
    assert from_options(Options, {"size": 5, "widths": (8,)}, "go") == Options(size=5, widths=(8,))


def test_bad_options_are_one_error_with_all_problems() -> None:
    with pytest.raises(OptionError) as caught:
        from_options(Options, {"size": 25, "komy": 3}, "go")
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == (
        "go: size: expected a whole number from 2 to 19, got 25; komy: unknown option, did you mean komi?"
    )
    with pytest.raises(OptionError, match="flat: size: unknown option, none is expected here"):
        from_options(Flat, {"size": 1}, "flat")


def test_describe_says_what_a_listing_needs() -> None:
    size, *_, level = describe(Options)
    found = (size.name, size.expected, size.default, size.help)
    assert found == ("size", "a whole number from 2 to 19", 9, "points along one side")
    assert level.expected == "one of 1, 3"
    assert describe(Inner)[0].default is REQUIRED


@pytest.mark.parametrize("annotation", [list, int | str, tuple[bytes, str], bytes])
def test_a_declaration_that_is_not_understood_is_a_mistake_in_the_program(annotation: Any) -> None:
    wrong = make_dataclass("Wrong", [("key", annotation, setting(None, "of a type that no file can hold"))])
    with pytest.raises(TypeError, match="cannot be declared as"):
        [each.expected for each in describe(wrong)]


def test_text_that_no_file_can_hold_is_refused() -> None:
    assert problems(Shape, {"kind": "\ud800"})[0].startswith("kind: expected text, got")


@given(st.text())
def test_quotes_are_short_and_on_one_line(text: str) -> None:
    assert len(quote(text)) <= 6 * 40 + 2  # an escaped character takes six
    assert "\n" not in quote(text)


_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["size", "komi", "ko", "widths", "limit", "other"]), _plain) | _plain)
def test_whatever_the_data_check_answers(data: object) -> None:
    instance, found = check(Options, data)
    assert (instance is None) == bool(found)
    check(Shape, data)


@dataclass(frozen=True)
class Mixed:
    result: tuple[str, int] = setting(("a", 1), "a name and a count")
    budget: int | float = setting(1, "a number that stays what it is", low=0)


def test_lists_of_different_items_and_numbers_of_either_kind() -> None:
    whole, half = from_data(Mixed, {"result": ["b", 2], "budget": 2}), from_data(Mixed, {"budget": 0.5})
    assert (whole, type(whole.budget), half.budget) == (Mixed(("b", 2), 2), int, 0.5)
    for bad in (["b"], ["b", 2, 3], [1, 2], ["b", 0.5], "b2"):
        with pytest.raises(OptionError, match="result"):
            from_data(Mixed, {"result": bad})
    expected = "result: expected a list of 2: text, a whole number, got a list; budget: expected a number of at least 0"
    with pytest.raises(OptionError, match=expected):
        from_data(Mixed, {"result": [], "budget": -1})
    with pytest.raises(OptionError, match="budget"):
        from_data(Mixed, {"budget": True})
