import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.engine.gtp.protocol import GtpCommand, failure, parse, success


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("name\n", GtpCommand("", "name", [])),
        ("12 name", GtpCommand("12", "name", [])),
        ("  007\tplay \x01b\t D4\x7f # comment\r\n", GtpCommand("007", "play", ["b", "D4"])),
        ("play b D4#c", GtpCommand("", "play", ["b", "D4"])),
        ("12", GtpCommand("12", "", [])),
        ("12name", GtpCommand("", "12name", [])),
        ("12 34", GtpCommand("12", "34", [])),
        ("", None),
        (" \t\r\n", None),
        ("# only words", None),
        ("\x00\x02\n", None),
    ],
)
def test_lines_as_the_specification_has_them(line: str, command: GtpCommand | None) -> None:
    assert parse(line) == command


def test_answers_end_with_one_empty_line_and_have_none_inside() -> None:
    assert success(GtpCommand("7", "x", []), "A1") == "=7 A1\n\n"
    assert success(GtpCommand("", "x", [])) == "=\n\n"
    assert success(GtpCommand("", "x", []), "\nboard\n\n  row \n") == "=\nboard\n  row\n\n"
    assert failure(GtpCommand("3", "x", []), "no\tway\r") == "?3 noway\n\n"


@given(st.text())
def test_any_text_is_answered_in_form(text: str) -> None:
    for line in text.split("\n"):
        command = parse(line)
        assert command is None or not any(" " in part for part in (command.id, command.name, *command.arguments))
    answer = success(GtpCommand("", "x", []), text)
    assert answer.startswith("=")
    assert answer.endswith("\n\n")
    assert "\n\n" not in answer[:-1]
