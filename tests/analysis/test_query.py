from pathlib import Path

import numpy as np
import pytest

from tengen import nets
from tengen.analysis import query
from tengen.errors import TengenError
from tengen.nets.saving import NetworkFile

GO = NetworkFile(nets.spec("b1c8"), "go", 1, {"size": 5, "komi": 7.0, "ko": "positional", "suicide": False}, {})
THREE = NetworkFile(nets.spec("b1c8"), "tic_tac_toe", 1, {}, {})


def _read(tmp_path: Path, content: str, saved: NetworkFile = GO, name: str = "game.sgf", **rest: object) -> query.Query:
    (tmp_path / name).write_text(content)
    return query.read_game(tmp_path / name, saved, **rest)


def _stones(found: query.Query) -> str:
    return found.game.render(found.states()[-1])


def test_an_sgf_brings_its_komi_and_its_handicap_stones(tmp_path: Path) -> None:
    found = _read(tmp_path, "(;GM[1]SZ[5]KM[0.5]HA[2]AB[bb][dd];W[cc];B[aa])")
    assert found.game.options.komi == 0.5
    assert found.game.options.ko == "positional"  # as the network knows it
    board = _stones(found.until(1))
    assert [board.count(sign) for sign in "XO"] == [2, 1]
    assert "to play: black" in board
    assert "komi: 0.5" in board


def test_komi_that_is_not_said_is_the_networks(tmp_path: Path) -> None:
    found = _read(tmp_path, "(;SZ[5]AB[bb];W[cc])", NetworkFile(GO.spec, "go", 1, {**GO.options, "komi": 3.5}, {}))
    assert "komi: 3.5" in _stones(found)
    found = _read(tmp_path, "(;SZ[5]AB[bb];W[cc])", options={"komi": 9.5})
    assert "komi: 9.5" in _stones(found)


def test_komi_that_is_none_is_told(tmp_path: Path) -> None:
    found = _read(tmp_path, "(;SZ[5]KM[6,5];B[cc])")  # as many countries write it
    assert found.game.options.komi == 6.5
    assert not found.remarks
    for komi in ("375", "3.75", "nan", "much"):
        found = _read(tmp_path, f"(;SZ[5]KM[{komi}];B[cc])")
        assert found.game.options.komi == 7
        (remark,) = found.remarks
        assert f"with komi 7: the file says '{komi}'" in remark
    found = _read(tmp_path, "(;SZ[5]KM[375];B[cc])", options={"komi": 7.5})
    assert found.game.options.komi == 7.5
    assert not found.remarks


def test_the_position_after_so_many_moves(tmp_path: Path) -> None:
    found = _read(tmp_path, "(;SZ[5];B[cc];W[dd];B[bb])")
    assert [len(found.until(number).record.actions) for number in (0, 2, None)] == [0, 2, 3]
    with pytest.raises(TengenError, match=r"--move 4: the game has 3 moves, expected 0 .the start. to 3"):
        found.until(4)
    # What comes after the position that was asked for does not matter.
    assert len(_read(tmp_path, "(;SZ[5];B[cc];W[dd];B[cc])", until=2).record.actions) == 2


def test_moves_may_follow_the_game_or_the_start(tmp_path: Path) -> None:
    found = _read(tmp_path, "(;SZ[5];B[cc])").then("d4 pass A1")
    assert [int(action) for action in found.record.actions] == [12, 8, 25, 20]
    fresh = query.new_game(THREE).then("a1 b2")
    assert fresh.record.actions == (0, 4)
    assert np.asarray(fresh.states()[-1].stones).tolist() == [1, 16]


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ("a1 a1", "--position: move 2: tic_tac_toe: a1: that move is not legal here"),
        ("a1 z9", "--position: move 2: tic_tac_toe: no move is called 'z9'; names look like"),
        ("a1 b1 a2 b2 a3 b3", "--position: move 6: tic_tac_toe: .*(over|no move)"),
    ],
)
def test_a_move_that_cannot_be_made_is_named_with_its_number(moves: str, words: str) -> None:
    with pytest.raises(TengenError, match=words):
        query.new_game(THREE).then(moves)


def test_a_game_that_its_players_rules_allowed_is_played_by_these(tmp_path: Path) -> None:
    # Two kos at opposite edges; both are taken by both, and the first position is there again.
    kos = "AB[aa][bb][ca][ae][bd]AW[da][cb][de][cd][be]PL[B]"
    found = _read(tmp_path, f"(;SZ[5]{kos};B[ce];W[ba];B[];W[be];B[ca])")
    assert found.game.options.ko == "simple"
    assert found.remarks == ("under simple ko: the game repeats a position, which positional ko forbids",)
    assert _stones(found).split("to play")[0] == _stones(found.until(0)).split("to play")[0]
    assert _read(tmp_path, f"(;SZ[5]{kos};B[ce];W[ba];B[];W[be])").remarks == ()
    # Two stones played to their death.
    found = _read(tmp_path, "(;SZ[5]AB[aa]AW[ba][bb][ac]PL[B];B[ab])")
    assert found.game.options.suicide
    assert "X" not in _stones(found)


def test_more_moves_than_the_network_plays_are_no_end(tmp_path: Path) -> None:
    saved = NetworkFile(GO.spec, "go", 1, {**GO.options, "max_moves": 2}, {})
    found = _read(tmp_path, "(;SZ[5];B[aa];W[bb];B[cc])", saved)
    assert found.game.max_moves == 3 + 2
    assert not bool(found.game.is_over(found.states()[-1]))


def test_which_of_several_games(tmp_path: Path) -> None:
    two = "(;SZ[5];B[aa])(;SZ[5];B[bb];W[cc])"
    assert len(_read(tmp_path, two).record.actions) == 1
    second = _read(tmp_path, two, which=2)
    assert len(second.record.actions) == 2
    assert "game 2 of 2" in second.remarks[0]
    with pytest.raises(TengenError, match="--which 3: the file has 2 games"):
        _read(tmp_path, two, which=3)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "an empty file is neither SGF"),
        ("hello", "the file is neither SGF"),
        ("(;SZ[5];B[aa]", "cut short"),
        ("(;SZ[5];B[aa];W[aa])", "move 2: A5 is not legal here"),
        ("(;SZ[5];B[zz])", "expected a point of a 5x5 board"),
        ("(;GM[2]SZ[8])", "expected a game of Go"),
        ("(;SZ[5]AB[aa]AW[ab][ba];B[cc])", "have no liberty"),
        ("(;SZ[5];B[aa];W[];B[];W[bb])", "move 4: B4 is not legal here after the game was over"),
    ],
)
def test_garbage_is_named_with_its_file(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(TengenError, match=words) as caught:
        _read(tmp_path, content)
    assert "game.sgf" in str(caught.value)


def test_other_games_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="a game of go, and the network plays tic_tac_toe"):
        _read(tmp_path, "(;SZ[5];B[aa])", THREE)
    with pytest.raises(TengenError, match="nothing.sgf: cannot be read: No such file"):
        query.read_game(tmp_path / "nothing.sgf", GO)


def test_text_records_of_any_game(tmp_path: Path) -> None:
    record = "tengen record 1\ngame: tic_tac_toe\noptions: {}\nending: unknown\nmoves: 2\n1 0 b2 -\n2 1 a1 -\n"
    assert _read(tmp_path, record, THREE, "game.txt").record.actions == (4, 0)
    with pytest.raises(TengenError, match=r"game\.txt: .*no move is called 'q7'"):
        _read(tmp_path, record.replace("a1", "q7"), THREE, "game.txt")


def test_options_of_the_command_line() -> None:
    assert query.parse_options(["komi=6.5", "size=7"]) == {"komi": 6.5, "size": 7}
    assert query.new_game(GO, {"size": 7, "komi": 6.5}).game.options.size == 7
    for texts, words in ((["komi"], "expected section.key=value"), (["a.b=1"], "an option of the game")):
        with pytest.raises(TengenError, match=words):
            query.parse_options(texts)
    with pytest.raises(TengenError, match="komi"):
        query.new_game(GO, {"komi": 6.3})
    with pytest.raises(TengenError, match="colour"):
        query.new_game(GO, {"colour": 1})
