import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.engine.gtp.protocol import Command, failure, parse, success


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("name\n", Command("", "name", [])),
        ("12 name", Command("12", "name", [])),
        ("  007\tplay \x01b\t D4\x7f # comment\r\n", Command("007", "play", ["b", "D4"])),
        ("play b D4#c", Command("", "play", ["b", "D4"])),
        ("12", Command("12", "", [])),
        ("12name", Command("", "12name", [])),
        ("12 34", Command("12", "34", [])),
        ("", None),
        (" \t\r\n", None),
        ("# only words", None),
        ("\x00\x02\n", None),
    ],
)
def test_lines_as_the_specification_has_them(line: str, command: Command | None) -> None:
    assert parse(line) == command


def test_answers_end_with_one_empty_line_and_have_none_inside() -> None:
    assert success(Command("7", "x", []), "A1") == "=7 A1\n\n"
    assert success(Command("", "x", [])) == "=\n\n"
    assert success(Command("", "x", []), "\nboard\n\n  row \n") == "=\nboard\n  row\n\n"
    assert failure(Command("3", "x", []), "no\tway\r") == "?3 noway\n\n"


@given(st.text())
def test_any_text_is_answered_in_form(text: str) -> None:
    for line in text.split("\n"):
        command = parse(line)
        assert command is None or not any(" " in part for part in (command.id, command.name, *command.arguments))
    answer = success(Command("", "x", []), text)
    assert answer.startswith("=")
    assert answer.endswith("\n\n")
    assert "\n\n" not in answer[:-1]
