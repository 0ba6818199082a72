import dataclasses
import xml.etree.ElementTree as xml

import jax
import numpy as np
import pytest

from tengen.analysis.board_picture import EMPTY, PictureLayers, board_of, draw, has_board, place_of, player_name
from tengen.analysis.report import Bar, draw_bars
from tests.helpers.analyses import elements, make, state_after

# Options, moves, and where the stones of both lie then, worked out by hand.
POSITIONS = {
    "go": ({"size": 5}, "B2 B1 A1 C2 pass A2", ("B2", "B1 A2 C2")),
    "othello": ({}, "d3 c3", ("d3 e4 d5", "c3 d4 e5")),
    "hex": ({"size": 4}, "a1 b2 c3 d4 a2", ("a1 c3 a2", "b2 d4")),
    "connect_four": ({}, "4 4 4 1 7", ("41 43 71", "42 11")),
    "tic_tac_toe": ({}, "a1 b2 c3", ("a1 c3", "b2")),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_every_stone_of_the_position_is_drawn_where_it_lies(name: str) -> None:
    options, moves, expected = POSITIONS[name]
    game = make(name, **options)
    board = board_of(game, state_after(game, moves))
    svg = draw(board, PictureLayers())
    for player, names in enumerate(expected):
        there = {board.columns[column] + board.rows[row] for row, column in np.argwhere(board.stones == player)}
        assert there == set(names.split())
        assert len(elements(svg, f"stone p{player}")) == len(names.split())


def test_stones_are_at_the_crossings_that_are_named_beside_them() -> None:
    game = make("go", size=5)
    svg = draw(board_of(game, state_after(game, "B2 E5")), PictureLayers())
    names = {(each.text, round(float(each.get("x", 0)))) for each in elements(svg, "coordinate")}
    heights = {each.text: float(each.get("y", 0)) for each in elements(svg, "coordinate")}
    (black,), (white,) = elements(svg, "stone p0"), elements(svg, "stone p1")
    assert ("B", round(float(black.get("cx", 0)))) in names
    assert ("E", round(float(white.get("cx", 0)))) in names
    assert abs(float(black.get("cy", 0)) - heights["2"]) < 8
    assert abs(float(white.get("cy", 0)) - heights["5"]) < 8


def test_names_of_columns_and_rows_are_those_of_the_moves() -> None:
    for name, (options, *_) in POSITIONS.items():
        game = make(name, **options)
        state = game.init(jax.random.key(0))
        board = board_of(game, state)
        for action in range(game.num_actions):
            place = place_of(board, action)
            if place is None:
                continue
            row, column = place
            expected = board.columns[column] + ("" if name == "connect_four" else board.rows[row])
            assert game.action_name(state, action) == expected


def test_likely_moves_are_stronger_and_full_places_are_left_alone() -> None:
    game = make("tic_tac_toe")
    board = board_of(game, state_after(game, "a1"))
    svg = draw(board, PictureLayers(heat=np.array([0.3, 0.6, 0.05, 0.001, 0, 0, 0, 0, 0.02])))
    cells = elements(svg, "heat")
    strength = [float(cell.get("fill-opacity", 0)) for cell in cells]
    assert len(cells) == 3
    assert strength[0] > strength[1] > strength[2] > 0
    assert [each.text for each in elements(svg, "chance")] == ["60%", "5%", "2%"]


def test_the_expected_line_is_numbered_and_discs_fall_on_each_other() -> None:
    game = make("connect_four")
    board = board_of(game, state_after(game, "4"))
    svg = draw(board, PictureLayers(line=[(1, 3), (0, 3), (1, 0)]))
    discs = elements(svg, "expected")
    assert [each.get("class") for each in discs] == ["expected p1", "expected p0", "expected p1"]
    assert [each.text for each in elements(svg, "number")] == ["1", "2", "3"]
    (stone,) = elements(svg, "stone")
    heights = [float(each.get("cy", 0)) for each in (stone, *discs)]
    assert heights[0] > heights[1] > heights[2]
    assert heights[3] == heights[0]


def test_a_pass_and_a_second_stone_on_the_same_point_have_no_number() -> None:
    game = make("go", size=5)
    board = board_of(game, game.init(jax.random.key(0)))
    svg = draw(board, PictureLayers(line=[(0, 4), (1, 25), (0, 4), (1, 0)]))
    assert [each.text for each in elements(svg, "number")] == ["1", "4"]


def test_ownership_shows_whose_and_how_surely() -> None:
    game = make("go", size=5)
    board = board_of(game, game.init(jax.random.key(0)))
    ownership = np.zeros((5, 5))
    ownership[0, :3] = 1.0, -1.0, 0.25
    svg = draw(board, PictureLayers(ownership=ownership))
    black, white = elements(svg, "owner p0"), elements(svg, "owner p1")
    assert (len(black), len(white)) == (2, 1)
    assert float(black[0].get("width", 0)) == pytest.approx(2 * float(black[1].get("width", 0)), abs=0.02)


Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""


def box(each: xml.Element) -> Box:
    """Of a rectangle, a circle or a text; letters are at most this wide and about this high."""

    def number(name: str) -> float:
        return float(each.get(name, 0))

    if each.tag.endswith("rect"):
        return number("x"), number("y"), number("x") + number("width"), number("y") + number("height")
    if each.tag.endswith("circle"):
        x, y, radius = number("cx"), number("cy"), number("r")
        return x - radius, y - radius, x + radius, y + radius
    size, letters = number("font-size"), each.text or ""
    width = size * (0.64 * len(letters) + (0.31 if "%" in letters else 0) - (0.32 if "." in letters else 0))
    return number("x") - width / 2, number("y") - 0.73 * size, number("x") + width / 2, number("y")


def inside(inner: Box, outer: Box) -> bool:
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def apart(one: Box, other: Box) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def middle(each: xml.Element) -> tuple[float, float]:
    left, top, right, bottom = box(each)
    return (left + right) / 2, (top + bottom) / 2


@pytest.mark.parametrize(("name", "options"), [("go", {"size": 5}), ("hex", {"size": 4})])
def test_squares_of_ownership_are_centred_on_their_points(name: str, options: dict[str, int]) -> None:
    game = make(name, **options)
    board = board_of(game, game.init(jax.random.key(0)))
    stones = np.arange(board.stones.size).reshape(board.shape) % 2  # a stone on every point, to know where it is
    board = dataclasses.replace(board, stones=stones)
    ownership = np.where(stones == 0, 0.9, -0.3)
    svg = draw(board, PictureLayers(ownership=ownership))
    for player in (0, 1):
        points = [middle(each) for each in elements(svg, f"stone p{player}")]
        squares = [middle(each) for each in elements(svg, f"owner p{player}")]
        assert len(points) > 5
        np.testing.assert_allclose(squares, points, atol=0.02)


@pytest.mark.parametrize("owned", [False, True])
def test_percentages_hide_lines_and_stars_and_are_clear_of_squares(owned: bool) -> None:
    game = make("go", size=9)
    board = board_of(game, state_after(game, "E5"))
    heat, ownership = np.zeros(82), np.full((9, 9), -1.0)
    heat[[2 * 9 + 2, 2 * 9 + 6, 8, 77]] = 0.55, 0.0073, 0.25, 0.12
    line = [(1, 6 * 9 + 2)]
    svg = draw(board, PictureLayers(heat, ownership if owned else None, line, last=40))
    plates, chances = elements(svg, "plate"), elements(svg, "chance")
    assert [each.text for each in chances] == ["25%", "55%", "0.7%", "12%"]
    for plate, chance in zip(plates, chances, strict=True):
        assert inside(box(chance), box(plate)), chance.text
    kinds = [each.get("class") for each in xml.fromstring(svg).iter()]
    assert kinds.index("plate") > kinds.index("star")  # painted over it
    stars = [box(each) for each in elements(svg, "star")]
    assert len(stars) == 5
    for chance in chances:
        (plate,) = (each for each in plates if inside(box(chance), box(each)))
        for star in stars:
            assert apart(star, box(chance)) or inside(star, box(plate)), chance.text
    squares = [box(each) for each in elements(svg, "owner")]
    assert len(squares) == (81 if owned else 0)
    for words in (*chances, *elements(svg, "number")):
        assert all(apart(box(words), square) for square in squares), words.text
    (ring,) = elements(svg, "last")
    x, y = middle(ring)
    for left, top, right, bottom in squares:
        if (left + right) / 2 == pytest.approx(x) and (top + bottom) / 2 == pytest.approx(y):
            assert float(ring.get("r", 0)) - 1 > np.hypot(right - left, bottom - top) / 2


def test_the_last_move_is_marked_on_its_own_stone() -> None:
    game = make("connect_four")
    svg = draw(board_of(game, state_after(game, "4 4")), PictureLayers(last=3))
    (mark,) = elements(svg, "last")
    (stone,) = elements(svg, "stone p1")
    assert (mark.get("cx"), mark.get("cy")) == (stone.get("cx"), stone.get("cy"))


def test_words_that_mean_something_in_xml_stay_words() -> None:
    game = make("tic_tac_toe")
    words = 'a <b> & "c" \x00\x1b ]]> end'
    root = xml.fromstring(draw(board_of(game, game.init(jax.random.key(0))), PictureLayers(), [words], words))
    assert any("<b> &" in (each.text or "") for each in root.iter())


def test_hexagons_touch_and_edges_have_the_colours_of_the_players() -> None:
    game = make("hex", size=3)
    svg = draw(board_of(game, game.init(jax.random.key(0))), PictureLayers())
    assert len(elements(svg, "ground")) == 9
    assert len({each.get("stroke") for each in elements(svg, "edge")}) == 2


def test_games_of_users_are_drawn_if_they_say_how() -> None:
    game = make("tests.helpers.every_target:EveryTarget")
    board = board_of(game, game.from_text("  a b c\n1 x . .\n2 . o .\n3 . . .\nto play: x"))
    assert board.kind == "marks"
    assert (board.columns, board.rows) == (("a", "b", "c"), ("1", "2", "3"))
    assert board.stones.tolist() == [[0, EMPTY, EMPTY], [EMPTY, 1, EMPTY], [EMPTY] * 3]


def test_games_without_a_board_say_so() -> None:
    game = make("hironaka")
    assert not has_board(game)
    with pytest.raises(ValueError, match="hironaka has no board"):
        board_of(game, None)
    assert player_name(game, 1) == "agent"
    assert EMPTY not in (0, 1)


def test_bars_are_as_long_as_what_they_stand_for() -> None:
    svg = draw_bars([Bar("{0,1}", 0.5, 0.8), Bar("{0,2}", 0.25, 0.2)], ["a position"])
    first, second = (float(each.get("width", 0)) for each in elements(svg, "prior"))
    assert first == pytest.approx(2 * second)
    assert [each.text for each in elements(svg, "name")] == ["{0,1}", "{0,2}"]
    assert len(elements(svg, "visits")) == 2
    assert not elements(draw_bars([Bar("a", 1.0, None)]), "visits")
