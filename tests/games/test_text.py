"""Boards as text: what is printed by hand, what is read back, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.games.text import GO_LETTERS, check_counts, parse_grid, player_number, point_name, render_grid

TEXT = """   a b c
 9 . x .
10 o . x
to play: x
note: a: b"""
CELLS = [[".", "x", "."], ["o", ".", "x"]]
NOTES = {"to play": "x", "note": "a: b"}


def parse(text: str) -> tuple[list[list[str]], dict[str, str]]:
    return parse_grid(text, (2, 3), ".xo", ("to play", "note"), "a game")


def test_by_hand() -> None:
    assert render_grid(CELLS, "abc", ["9", "10"], NOTES) == TEXT
    assert parse(TEXT) == (CELLS, NOTES)


def test_boards_of_hexagons_lean() -> None:
    lines = render_grid(CELLS, "abc", "12", {}, slant=1).splitlines()
    assert lines == ["  a b c", "1 . x .", " 2 o . x"]


def test_blank_lines_and_spaces_do_not_matter() -> None:
    assert parse("\n" + TEXT.replace("\n", "  \n\n") + "\n\n") == (CELLS, NOTES)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" 9 . x .\n", "", "expected a row name and 3 of . x o, got 'to play: x'"),
        (TEXT, "", "expected a line of column names and 2 rows, got 0 lines"),
        (TEXT, "a\nb", "expected a line of column names and 2 rows, got 2 lines"),
        (". x .", ". x", "got ' 9 . x'"),
        (". x .", ". x . .", "got ' 9 . x . .'"),
        (". x .", ". X .", "got ' 9 . X .'"),
        (". x .", ". xo .", "got ' 9 . xo .'"),
        ("to play: x", "to play x", "expected one of the notes to play, note, got 'to play x'"),
        ("note:", "notes:", "expected one of the notes to play, note, got 'notes: a: b'"),
        ("to play: x\n", "", "the note 'to play' is missing"),
        ("to play: x", "to play: x\nto play: o", "the note 'to play' appears twice"),
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^a game: ") as error:
        parse(TEXT.replace(old, new))
    assert message in str(error.value)


@given(
    st.lists(st.lists(st.sampled_from(".xo"), min_size=3, max_size=3), min_size=2, max_size=2),
    st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), max_size=9),
    st.integers(0, 2),
)
def test_what_is_printed_can_be_read(cells: list[list[str]], note: str, slant: int) -> None:
    text = render_grid(cells, "abc", "12", {"to play": "x", "note": note}, slant)
    assert parse(text) == (cells, {"to play": "x", "note": note})


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text)
    except ValueError as error:
        assert str(error).startswith("a game: ")  # noqa: PT017


def test_player_number() -> None:
    assert player_number({"to play": "light"}, ("dark", "light"), "othello") == 1
    with pytest.raises(ValueError, match=r"^othello: to play: expected dark or light, got 'grey'$"):
        player_number({"to play": "grey"}, ("dark", "light"), "othello")


def test_check_counts() -> None:
    for first, second, turn in ((0, 0, 0), (1, 0, 1), (4, 4, 0), (5, 4, 1)):
        check_counts(first, second, turn, "a game")
    for first, second, turn in ((0, 0, 1), (1, 0, 0), (0, 1, 0), (5, 3, 0), (5, 3, 1)):
        with pytest.raises(ValueError, match=f"^a game: {first} and {second} stones do not fit whose turn it is$"):
            check_counts(first, second, turn, "a game")


def test_names_of_points() -> None:
    assert [point_name(point, 8) for point in (0, 7, 8, 63)] == ["a1", "h1", "a2", "h8"]
    assert len(GO_LETTERS) == 25
    assert "I" not in GO_LETTERS
