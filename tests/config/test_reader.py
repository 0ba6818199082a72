"""YAML is read without guessing, and without a way to hang or crash the reader."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.config.reader import parse


def problems(text: str) -> list[tuple[str, int]]:
    return [(problem.message, problem.line) for problem in parse(text).problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9", 9),
        ("-3", -3),
        ("7.0", 7.0),
        (".5", 0.5),
        ("1e-3", 1e-3),
        ("1E5", 1e5),
        ("-2.5e+3", -2500.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("-.inf", -math.inf),
        ('"9"', "9"),
        ("'true'", "true"),
        ("no", "no"),
        ("on", "on"),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("pgx:chess", "pgx:chess"),
        ("[1, a, {b: 2}]", [1, "a", {"b": 2}]),
        ("|\n two\n lines\n", "two\nlines\n"),
        ("9" * 5000, math.inf),
    ],
)
def test_values(text: str, value: Any) -> None:
    document = parse(f"key: {text}")
    assert document.problems == []
    assert document.data == {"key": value}
    assert type(document.data["key"]) is type(value)


def test_every_key_and_item_has_its_line() -> None:
    document = parse("# comment\na:\n  b: 1\n  c:\n    - x\n    - y\nd: 2\n")
    assert document.lines == {
        ("a",): 2,
        ("a", "b"): 3,
        ("a", "c"): 4,
        ("a", "c", 0): 5,
        ("a", "c", 1): 6,
        ("d",): 7,
    }


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a: 1\nb: 2\na: 3", "given twice, first on line 1", 3),
        ("a: &x 1", 'the anchor "x" is not supported, leave it out', 1),
        ("a: 1\nb: *x", 'the alias "x" is not supported, write the value', 2),
        ("a: !!set {b}", 'the tag "tag:yaml.org,2002:set" is not supported, leave it out', 1),
        ("<<: {a: 1}", "merging with << is not supported, write the keys", 1),
        ("1: a", "expected a name before the colon, got 1", 1),
        ("a: 1\n[b]: a", "expected a name before the colon, got a list", 2),
        ("a: 1\n---\nb: 2", "expected one YAML document, but a second one starts here", 2),
        ("a: 1\nb: \0", "the character U+0000 is not allowed in YAML", 2),
        ("a:\n\tb: 1", "a tab where YAML expects spaces", 2),
        ("a: b: c", "not valid YAML: mapping values are not allowed here", 1),
        ('a: "\\UFFFFFFFF"', "not valid YAML: an escape sequence that is no character", 1),
        (
            "a: {b\n",
            "not valid YAML: expected ',' or '}', but got '<stream end>' while parsing a flow mapping that "
            "begins on line 1",
            2,
        ),
        ("[" * 100_000, "nested more than 20 levels deep", 1),
        ("{" * 100_000, "nested more than 20 levels deep", 1),
        ("? " * 10_000, "nested more than 20 levels deep", 1),
    ],
)
def test_what_is_refused(text: str, message: str, line: int) -> None:
    assert (message, line) in problems(text)


def test_the_first_of_two_values_is_kept() -> None:
    assert parse("a: 1\na: 2").data == {"a": 1}


def test_aliases_that_grow_or_go_round_are_only_counted() -> None:
    bomb = "a0: &a0 x\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(30))
    assert len(problems(bomb)) == 31 + 60
    assert len(problems("a: &a [*a]")) == 2


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_nothing(text: str) -> None:
    document = parse(text)
    assert document.data is None
    assert document.problems == []


@given(st.text() | st.text(alphabet="ab:-?[]{}&*!|>'\"%@#,\\U0 \n\t"))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    for problem in parse(text).problems:
        assert problem.message
        assert 1 <= problem.line <= len(text) + 1
