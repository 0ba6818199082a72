"""Games as the page draws them."""

from types import SimpleNamespace
from typing import Any

import pytest

from tengen import games
from tengen.data.records.records import Record, RecordError
from tengen.games.chess import Chess
from tengen.web import frames
from tests.helpers.web_runs import HOSTILE, record


def last_cells(found: dict[str, Any]) -> str:
    """The board at the end, from the start and the changes, as the page makes it."""
    cells = list(found["start"]["cells"])
    for move in found["moves"]:
        for at in range(0, len(move["set"]), 2):
            cells[move["set"][at]] = move["set"][at + 1]
    return "".join(cells)


def test_a_game_of_tic_tac_toe() -> None:
    found = frames.play_through(record())
    assert found["start"]["kind"] == "marks"
    assert found["start"]["cells"] == "." * 9
    assert last_cells(found) == "xxxoo...."
    assert [move["name"] for move in found["moves"]] == ["a1", "a2", "b1", "b2", "c1"]
    assert [move["player"] for move in found["moves"]] == [0, 1, 0, 1, 0]
    assert [move.get("value") for move in found["moves"]] == [None, -0.1, 0.1, -0.1, 0.1]  # all for player 0
    assert [move["place"] for move in found["moves"]][:2] == [[0], [3]]
    assert found["players"] == ["first", HOSTILE]
    assert found["result"] == 1.0


def test_variations_begin_where_they_leave_the_game() -> None:
    lines = [(0, 4, 8), (0, 3, 1, 4, 2), (0, 3), (0, 3, 0), (0, 3, 2, 2), (0, 4, 8), (0, 3, 2)]
    found = frames.play_through(record(), lines)["variations"]
    # Lines of the game itself are none; one with a move that is not legal ends before that move.
    assert [(one["ply"], [move["name"] for move in one["moves"]]) for one in found] == [(1, ["b2", "c3"]), (2, ["c1"])]
    assert [(move["player"], move["set"]) for move in found[0]["moves"]] == [(1, [4, "o"]), (0, [8, "x"])]
    assert frames.play_through(record())["variations"] == []


def test_how_far_the_winner_was_behind() -> None:
    behind = record(values=(None, 0.8, -0.6, 0.1, 0.9))  # the first player won, at -0.8 after the second move
    assert frames.play_through(behind)["swing"] == 0.8
    assert frames.play_through(record(result=None))["swing"] == 0.0


def test_a_move_that_is_not_legal() -> None:
    with pytest.raises(RecordError, match="move 2: a1 is not legal here"):
        frames.play_through(record(actions=(0, 0)))


def test_points_of_hironaka() -> None:
    game = games.make("hironaka", dimension=2, max_points=3)
    found = frames.draw_position(game, game.from_text("points:\n  3 1\n  1 3\n  -\nchosen: {0,1}\nmoves: 1"))
    assert found == {"kind": "hironaka", "points": [[3.0, 1.0], [1.0, 3.0]], "chosen": [0, 1]}


def printed(text: str) -> Any:
    """A game of another library, of which only the text is known."""
    return SimpleNamespace(
        drawn_as=None, name="other", render=lambda state: text, action_name=lambda state, action: "e2e4"
    )


def test_chess_has_pieces_and_moves_have_two_squares() -> None:
    game = printed("to play: 0\nfen: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1")
    found = frames.draw_position(game, None)
    assert (found["kind"], found["cells"][:8], found["cells"][60]) == ("chess", "rnbqkbnr", "K")
    assert frames.place_on(game, None, 0) == [52, 36]


def test_seats_have_the_colours_of_the_stones() -> None:
    game = games.make("hex", size=3)
    assert [frames.seat_name(game, player) for player in (0, 1)] == ["x (red)", "o (blue)"]
    assert frames.seat_name(games.make("go", size=3), 1) == "White"


def test_other_games_are_text() -> None:
    assert frames.draw_position(printed("some board"), None) == {"kind": "text", "text": "some board"}
    assert frames.place_on(printed("some board"), None, 0) is None


def test_a_move_that_puts_no_stone_has_no_place() -> None:
    found = frames.play_through(Record("go", {"size": 3}, (4, 9)))
    assert (found["moves"][0]["place"], "place" in found["moves"][1]) == ([4], False)


def test_moves_of_chess_are_in_algebraic_notation(monkeypatch: pytest.MonkeyPatch) -> None:
    game = games.make("minichess")
    monkeypatch.setattr(Chess, "line", lambda self, state, actions: [f"N{action}" for action in actions])
    assert frames.move_names(game, ["position", "after"], [3, 4]) == ["N3", "N4"]  # `line` compiles: stubbed
    assert frames.move_names(printed(""), ["position"], [3]) == ["e2e4"]
