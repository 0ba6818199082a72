import xml.etree.ElementTree as xml

import jax
import numpy as np
import pytest

from play.looking.made import elements, make, state_after
from tengen.play.looking import bars
from tengen.play.looking.board import EMPTY, board_of, has_board, place_of, player_name
from tengen.play.looking.board_picture import Layers, draw

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
    svg = draw(board, Layers())
    for player, names in enumerate(expected):
        there = {board.columns[column] + board.rows[row] for row, column in np.argwhere(board.stones == player)}
        assert there == set(names.split())
        assert len(elements(svg, f"stone p{player}")) == len(names.split())


def test_stones_are_at_the_crossings_that_are_named_beside_them() -> None:
    game = make("go", size=5)
    svg = draw(board_of(game, state_after(game, "B2 E5")), Layers())
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
    svg = draw(board, Layers(heat=np.array([0.3, 0.6, 0.05, 0.001, 0, 0, 0, 0, 0.02])))
    cells = elements(svg, "heat")
    strength = [float(cell.get("fill-opacity", 0)) for cell in cells]
    assert len(cells) == 3
    assert strength[0] > strength[1] > strength[2] > 0
    assert [each.text for each in elements(svg, "chance")] == ["60%", "5%", "2%"]


def test_the_expected_line_is_numbered_and_discs_fall_on_each_other() -> None:
    game = make("connect_four")
    board = board_of(game, state_after(game, "4"))
    svg = draw(board, Layers(line=[(1, 3), (0, 3), (1, 0)]))
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
    svg = draw(board, Layers(line=[(0, 4), (1, 25), (0, 4), (1, 0)]))
    assert [each.text for each in elements(svg, "number")] == ["1", "4"]


def test_ownership_shows_whose_and_how_surely() -> None:
    game = make("go", size=5)
    board = board_of(game, game.init(jax.random.key(0)))
    ownership = np.zeros((5, 5))
    ownership[0, :3] = 1.0, -1.0, 0.25
    svg = draw(board, Layers(ownership=ownership))
    black, white = elements(svg, "owner p0"), elements(svg, "owner p1")
    assert (len(black), len(white)) == (2, 1)
    assert float(black[0].get("width", 0)) == pytest.approx(2 * float(black[1].get("width", 0)), abs=0.02)


def test_the_last_move_is_marked_on_its_own_stone() -> None:
    game = make("connect_four")
    svg = draw(board_of(game, state_after(game, "4 4")), Layers(last=3))
    (mark,) = elements(svg, "last")
    (stone,) = elements(svg, "stone p1")
    assert (mark.get("cx"), mark.get("cy")) == (stone.get("cx"), stone.get("cy"))


def test_words_that_mean_something_in_xml_stay_words() -> None:
    game = make("tic_tac_toe")
    words = 'a <b> & "c" \x00\x1b ]]> end'
    root = xml.fromstring(draw(board_of(game, game.init(jax.random.key(0))), Layers(), [words], words))
    assert any("<b> &" in (each.text or "") for each in root.iter())


def test_hexagons_touch_and_edges_have_the_colours_of_the_players() -> None:
    game = make("hex", size=3)
    svg = draw(board_of(game, game.init(jax.random.key(0))), Layers())
    assert len(elements(svg, "ground")) == 9
    assert len({each.get("stroke") for each in elements(svg, "edge")}) == 2


def test_games_without_a_board_say_so() -> None:
    game = make("hironaka")
    assert not has_board(game)
    with pytest.raises(ValueError, match="hironaka has no board"):
        board_of(game, None)
    assert player_name(game, 1) == "agent"
    assert EMPTY not in (0, 1)


def test_bars_are_as_long_as_what_they_stand_for() -> None:
    svg = bars.draw([bars.Bar("{0,1}", 0.5, 0.8), bars.Bar("{0,2}", 0.25, 0.2)], ["a position"])
    first, second = (float(each.get("width", 0)) for each in elements(svg, "prior"))
    assert first == pytest.approx(2 * second)
    assert [each.text for each in elements(svg, "name")] == ["{0,1}", "{0,2}"]
    assert len(elements(svg, "visits")) == 2
    assert not elements(bars.draw([bars.Bar("a", 1.0, None)]), "visits")
