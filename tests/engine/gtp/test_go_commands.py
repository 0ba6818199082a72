"""Go over GTP. The rules are checked against GNU Go, which is another program."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tengen.config.settings.match import PlaySettings
from tengen.engine.gtp.commands import make
from tengen.run.networks import FoundNetwork
from tests.helpers.gtp_dialogue import Controller
from tests.helpers.networks import QUICK, untrained
from tests.helpers.patience import eventually

GNUGO = shutil.which("gnugo") or shutil.which("/usr/games/gnugo")


def _stones(go: Controller) -> list[str]:
    """The rows of the board, from the top."""
    rows = go.ask("showboard").split("\n")
    return ["".join(row.split()[1:]) for row in rows if row.split()[0].isdigit()]


def test_boards_and_moves(go: Controller) -> None:
    assert go.ask("play black c3") == ""
    assert go.ask("play W D3") == ""
    assert go.ask("play b PASS") == ""
    assert go.ask("play w a1 and more words") == ""
    assert _stones(go) == [".....", ".....", "..XO.", ".....", "O...."]
    assert go.ask("clear_board") == ""
    assert _stones(go) == ["....."] * 5


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("play b", "syntax error"),
        ("play", "syntax error"),
        ("play green c3", "invalid color"),
        ("play b i3", "invalid coordinate"),
        ("play b f1", "invalid coordinate"),
        ("play b a6", "invalid coordinate"),
        ("play b a0", "invalid coordinate"),
        ("play b 33", "invalid coordinate"),
        ("play b résign", "invalid coordinate"),
        ("genmove", "syntax error"),
        ("genmove x", "invalid color"),
        ("boardsize", "syntax error"),
        ("boardsize nine", "syntax error"),
        ("boardsize -3", "syntax error"),
        ("boardsize 1", "unacceptable size"),
        ("boardsize 20", "unacceptable size"),
        ("boardsize 99999999999999", "syntax error"),
        ("komi", "syntax error"),
        ("komi lots", "syntax error"),
        ("komi nan", "syntax error"),
        ("undo", "cannot undo"),
        ("known_command", "syntax error"),
        ("final_status_list", "syntax error"),
        ("final_status_list sleeping", "syntax error"),
        ("fixed_handicap 2", "invalid number of stones"),  # a board of five has no places for them
        ("place_free_handicap 1", "invalid number of stones"),
        ("place_free_handicap 25", "invalid number of stones"),
        ("set_free_handicap A1", "bad vertex list"),
        ("set_free_handicap A1 A1", "bad vertex list"),
        ("set_free_handicap A1 pass", "bad vertex list"),
        ("set_free_handicap A1 Z9", "bad vertex list"),
        ("time_settings 1 2", "syntax error"),
        ("kgs-time_settings sundial", "unknown time system"),
        ("time_left b soon 1", "syntax error"),
        ("time_left b 10", "syntax error"),
        ("lz-analyze b 10 avoid b C3 1", "syntax error"),
        ("kata-analyze b ownership maybe", "syntax error"),
        ("kata-analyze ownership", "syntax error"),
        ("lz-analyze purple 10", "invalid color"),
        ("cgos-genmove_analyze sideways", "invalid color"),
        ("loadsgf", "syntax error"),
        ("loadsgf /nowhere/at/all.sgf", "cannot load file"),
        ("loadsgf /", "cannot load file"),
        ("kata-set-rules", "syntax error"),
        ("kata-set-rules martian", "unknown rules 'martian'"),
        ("kata-set-rules japanese", "scoring TERRITORY: Tengen's Go counts area, not territory"),
        ('kata-set-rules {"hasButton":true}', "hasButton true: Tengen's Go has no button"),
        ("kata-set-rule tax ALL", "tax ALL: "),
        ("kata-set-rule ko", "syntax error"),
        ("kata-set-rule komi 7", "unknown rule 'komi'"),
        ("no_such_command 1 2 3", "unknown command"),
        ("55", "55 unknown command"),
        ("GENMOVE b", "unknown command"),
    ],
)
def test_what_is_wrong_is_answered_and_changes_nothing(go: Controller, line: str, answer: str) -> None:
    assert go.fails(line).startswith(answer)
    assert _stones(go) == ["....."] * 5
    assert go.ask("genmove b")


def test_ids_comments_and_line_ends(go: Controller) -> None:
    go.send("# a comment")
    go.send("")
    go.send("\r")
    assert go.raw("42\tname # ignored\r") == "=42 Tengen"
    assert go.raw("7 what") == "?7 unknown command"
    assert go.ask("protocol_version") == "2"
    for name in go.ask("list_commands").split("\n"):
        assert go.ask(f"known_command {name}") == "true"
    assert go.ask("known_command fly") == "false"


def test_ko_suicide_and_occupied_points_are_illegal(go: Controller) -> None:
    for move in ("b B4", "b A3", "b B2", "w C4", "w D3", "w C2", "w B3"):
        go.ask(f"play {move}")
    go.ask("play b C3")  # takes B3
    before = _stones(go)
    assert before[2] == "X.XO."
    assert go.fails("play w B3") == "illegal move"
    assert go.fails("play w C3") == "illegal move"
    assert _stones(go) == before
    go.ask("clear_board")
    for move in ("b A2", "b B1"):
        go.ask(f"play {move}")
    assert go.fails("play w A1") == "illegal move"


def test_play_goes_on_after_two_passes(go: Controller) -> None:
    go.ask("play b C3")
    for _ in range(3):
        go.ask("play w pass")
        go.ask("play b pass")
    go.ask("play w B2")
    assert _stones(go) == [".....", ".....", "..X..", ".O...", "....."]
    go.ask("play b pass")
    go.ask("play w pass")
    assert go.ask("genmove b") != ""
    go.ask("play b pass")
    assert go.ask("final_score")[:2] in ("B+", "W+")


def test_a_pass_in_between_is_not_one_of_the_two_that_end_a_game(go: Controller) -> None:
    go.ask("play b c3")
    go.send("lz-analyze b 1")  # Black leads: if White had passed, a pass would win at once
    assert go.read_line() == "="
    passes = None
    while passes is None:
        passes = re.search(r"info move pass visits [1-9]\d* winrate (\d+)", go.read_line())
    assert 0 < int(passes[1]) < 10_000
    go.send("name")
    while go.read_line():
        pass
    assert go.answer() == "= Tengen"


def test_a_colour_may_move_twice_and_undo_takes_one_move_back(go: Controller) -> None:
    go.ask("play b A1")
    go.ask("play b B1")
    go.ask("play b C1")
    assert _stones(go)[4] == "XXX.."
    first = go.ask("genmove b")
    assert first in ("pass", "resign") or first[0] in "ABCDE"
    assert go.ask("genmove b")
    for expected in (None, "XXX..", "XX...", "X....", "....."):
        go.ask("undo")
        if expected is not None:
            assert _stones(go)[4] == expected
    assert go.fails("undo") == "cannot undo"


def test_reg_genmove_makes_no_move(go: Controller) -> None:
    go.ask("play b C3")
    for colour in ("w", "b"):
        assert go.ask(f"reg_genmove {colour}")
    assert _stones(go) == [".....", ".....", "..X..", ".....", "....."]
    go.ask("undo")
    assert go.fails("undo") == "cannot undo"


def test_komi_is_seen_and_stays(go: Controller) -> None:
    go.ask("komi 3.5")
    go.ask("clear_board")
    assert "komi: 3.5" in go.ask("showboard")
    go.ask("play b C3")
    go.ask("komi -2")
    assert "komi: -2" in go.ask("showboard")
    go.ask("undo")
    assert "komi: -2" in go.ask("showboard")
    go.ask("komi 1e300")  # GTP: whatever it is, it must be taken
    assert "komi: 400" in go.ask("showboard")


def test_handicap(go: Controller) -> None:
    go.ask("set_free_handicap A1 B2 C3")
    assert _stones(go) == [".....", ".....", "..X..", ".X...", "X...."]
    assert "to play: white" in go.ask("showboard")
    assert go.fails("set_free_handicap D4 E5") == "board not empty"
    assert go.fails("place_free_handicap 2") == "board not empty"
    assert go.fails("undo") == "cannot undo"
    go.ask("clear_board")
    placed = go.ask("place_free_handicap 4").split()
    assert len(set(placed)) == 4
    assert sum(row.count("X") for row in _stones(go)) == 4


def test_rules_are_those_of_the_network_until_others_are_set(go: Controller) -> None:
    before = json.loads(go.ask("kata-get-rules"))
    assert before == {
        "friendlyPassOk": True, "hasButton": False, "ko": "POSITIONAL", "scoring": "AREA", "suicide": False,
        "tax": "NONE", "whiteHandicapBonus": "0",
    }  # fmt: skip
    for move in ("b A1", "w A2", "w B2", "w C1"):
        go.ask(f"play {move}")
    assert go.fails("play b B1") == "illegal move"
    go.ask('kata-set-rules {"ko": "SIMPLE", "suicide": true}')  # spaces, too
    assert json.loads(go.ask("kata-get-rules")) == before | {
        "ko": "SIMPLE", "suicide": True, "friendlyPassOk": False,
    }  # fmt: skip
    assert _stones(go)[3:] == ["OO...", "X.O.."]  # the game goes on
    go.ask("play b B1")  # two stones, which take their own last liberty
    assert _stones(go)[3:] == ["OO...", "..O.."]
    assert go.ask("genmove w")
    go.ask("undo")
    own = 'kata-set-rules {"ko":"POSITIONAL","suicide":false}'
    assert go.fails(own) == "cannot change the rules: they forbid move 5, B1"
    assert json.loads(go.ask("kata-get-rules"))["suicide"] is True
    assert _stones(go)[3:] == ["OO...", "..O.."]
    go.ask("undo")
    assert _stones(go)[3:] == ["OO...", "X.O.."]
    go.ask(own)
    assert go.fails("play b B1") == "illegal move"
    for rows in (["OO...", "X...."], ["O....", "X...."], [".....", "X...."], [".....", "....."]):
        go.ask("undo")
        assert _stones(go)[3:] == rows


def test_handicap_stones_are_paid_for_where_the_rules_say_so(go: Controller) -> None:
    go.ask("set_free_handicap A1 B2 C3")
    for bonus, komi in (("N", "3.5"), ("N-1", "2.5"), ("0", "0.5")):
        go.ask(f"kata-set-rule whiteHandicapBonus {bonus}")
        assert f"komi: {komi}" in go.ask("showboard")
        assert go.ask("get_komi") == "0.5"
    go.ask("kata-set-rule whiteHandicapBonus N")
    go.ask("clear_board")
    assert "komi: 0.5" in go.ask("showboard")


def test_time_is_taken(go: Controller) -> None:
    go.ask("time_settings 60 0 0")
    go.ask("time_left b 1 0")
    assert go.ask("genmove b")
    go.ask("kgs-time_settings byoyomi 0 1 3")
    go.ask("time_left w 1 3")
    assert go.ask("genmove w")
    go.ask("time_left w 0 0")
    assert go.ask("genmove w")


def _info(line: str) -> dict[str, list[str]]:
    """{move: its words} of a line of lz-analyze."""
    found = {}
    for part in line.split("info ")[1:]:
        words = part.split()
        assert words[0] == "move"
        found[words[1]] = words
    return found


def test_lz_analyze_goes_on_until_the_next_line(go: Controller) -> None:
    go.send("3 lz-analyze b 5")
    assert go.read_line() == "=3"
    lines = [go.read_line() for _ in range(3)]
    for line in lines:
        for order, (move, words) in enumerate(_info(line).items()):
            keys = dict(zip(words[:14:2], words[1:14:2], strict=True))
            assert list(keys) == ["move", "visits", "winrate", "prior", "lcb", "order", "pv"]
            assert int(keys["order"]) == order
            assert keys["pv"] == move
            assert all(0 <= int(keys[key]) <= 10_000 for key in ("winrate", "prior", "lcb"))
    go.send("9 name")
    while line := go.read_line():  # the rest of the report, then the empty line that ends it
        assert line.startswith("info ")
    assert go.answer() == "=9 Tengen"
    # For the other colour the board is as it was afterwards.
    go.ask("play b C3")
    go.send("lz-analyze b 5")
    assert go.read_line() == "="
    assert _info(go.read_line())
    go.send("showboard")
    while go.read_line():
        pass
    assert "to play: white" in go.answer()


def test_kata_analyze_has_scores_and_owners(go: Controller) -> None:
    go.send("kata-analyze w 5 maxmoves 2 ownership true rootInfo true")
    assert go.read_line() == "="
    line = go.read_line()
    go.send("")
    while go.read_line():
        pass
    moves, _, rest = line.partition(" rootInfo ")
    root, _, owners = rest.partition(" ownership ")
    assert len(_info(moves)) == 2
    for words in _info(moves).values():
        keys = dict(zip(words[: words.index("pv") : 2], words[1 : words.index("pv") : 2], strict=True))
        assert {"visits", "winrate", "scoreLead", "scoreMean", "prior", "lcb", "utility", "order"} <= set(keys)
        assert 0 <= float(keys["winrate"]) <= 1
    assert dict(zip(root.split()[::2], root.split()[1::2], strict=True))["winrate"]
    numbers = np.array([float(word) for word in owners.split()])
    assert numbers.shape == (25,)
    assert np.abs(numbers).max() <= 1


def test_moves_with_a_report(go: Controller) -> None:
    for name in ("lz-genmove_analyze", "kata-genmove_analyze"):
        lines = go.raw(f"{name} b 1").split("\n")
        assert lines[0] == "="
        assert lines[1].startswith("info move ")
        best = next(iter(_info(lines[-2])))
        assert lines[-1] == f"play {best}"
    go.ask("clear_board")
    equal, report, move = go.raw("cgos-genmove_analyze b").split("\n")
    found = json.loads(report)
    assert equal == "="
    assert move == f"play {found['moves'][0]['move']}"
    assert 0 <= found["winrate"] <= 1
    assert len(found["ownership"]) == 25
    assert found["moves"][0]["visits"] <= found["visits"]
    assert isinstance(found["score"], float)


def test_loadsgf(go: Controller, tmp_path: Path) -> None:
    file = tmp_path / "game.sgf"
    file.write_text("(;GM[1]FF[4]SZ[5]KM[2.5]AB[aa];W[cc];B[dd];W[bb])")
    go.ask(f"loadsgf {file}")
    assert _stones(go) == ["X....", ".O...", "..O..", "...X.", "....."]
    assert "komi: 2.5" in go.ask("showboard")
    go.ask(f"loadsgf {file} 2")
    assert _stones(go) == ["X....", ".....", "..O..", ".....", "....."]
    go.ask("undo")
    assert _stones(go)[2] == "....."
    before = go.ask("showboard")
    for text in ("", "(;GM[1]SZ[5];B[cc];W[cc])", "(;GM[1]SZ[30])", "(;SZ[5];B[zz])", "(;GM[1]SZ[5]", "(;GM[2]SZ[5])"):
        file.write_text(text)
        assert go.fails(f"loadsgf {file}").startswith(("cannot load file", "unacceptable size")), text
        assert go.ask("showboard") == before


def test_the_score_and_the_dead_agree(go: Controller) -> None:
    for move in ("b C3", "w B2", "b C2", "w D4"):
        go.ask(f"play {move}")
    dead, alive = (go.ask(f"final_status_list {status}").split() for status in ("dead", "alive"))
    assert sorted(dead + alive) == ["B2", "C2", "C3", "D4"]
    assert go.ask("final_status_list seki") == ""
    go.ask("kata-set-rule friendlyPassOk false")  # then nothing on the board is dead
    assert go.ask("final_status_list dead") == ""
    assert len(go.ask("final_status_list alive").split()) == 4
    assert go.ask("final_score") == "W+0.5"
    go.ask("kata-set-rule friendlyPassOk true")
    assert go.ask("final_status_list dead").split() == dead
    # Without the dead stones the board is scored by area.
    go.ask("clear_board")
    for move in ("b C3", "w B2", "b C2", "w D4"):
        if move.split()[1] not in dead:
            go.ask(f"play {move}")
    sign, points = go.ask("final_score")[0], go.ask("final_score")[2:]
    assert sign in "BW"
    assert float(points) >= 0.5


@pytest.mark.slow
def test_other_sizes_are_played_and_come_back(go: Controller) -> None:
    go.ask("boardsize 7")
    assert go.ask("genmove b")
    go.ask("clear_board")
    assert sorted(go.ask("fixed_handicap 4").split()) == ["C3", "C5", "E3", "E5"]
    go.ask("boardsize 5")
    assert _stones(go) == ["....."] * 5


@pytest.mark.slow
def test_gives_up_only_after_some_moves_without_hope(go5: FoundNetwork) -> None:
    settings = PlaySettings(visits=2, resign=1.0)  # no chance is good enough
    commands = make(go5, settings, QUICK)
    moves = [commands.genmove(["b"]) for _ in range(3)]
    assert "resign" not in moves[:2]
    assert moves[2] == "resign"
    assert commands.reg_genmove(["b"]) != "resign"


@pytest.mark.slow
def test_ponders_while_it_waits(go5: FoundNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    play = PlaySettings(visits=4, ponder=True, resign=0)
    commands = make(go5, play, QUICK)
    blocks: list[int] = []
    search = commands.engine._one_block
    monkeypatch.setattr(commands.engine, "_one_block", lambda *how: (blocks.append(1), search(*how))[1])
    go = Controller(commands)
    go.ask("genmove b")
    begun = len(blocks)
    eventually(lambda: len(blocks) > begun + 12)
    assert go.ask("name") == "Tengen"
    go.end()
    assert commands.engine.think(visits=1).visits > 10  # of four, some were for another move


@pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")
def test_a_whole_game_against_gnu_go(go: Controller) -> None:
    """GNU Go keeps the board, too, and takes every move that we make; its score is ours."""
    assert GNUGO is not None
    options = ["--mode", "gtp", "--level", "1", "--chinese-rules", "--positional-superko", "--seed", "1"]
    process = subprocess.Popen([GNUGO, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def gnugo(line: str) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        while (more := process.stdout.readline()).strip():
            answer += more
        assert answer.startswith("="), f"{line}: {answer}"
        return answer[1:].strip()

    try:
        gnugo("boardsize 5")
        gnugo("komi 0.5")
        passes, moves = 0, 0
        while passes < 2 and moves < 120:
            black = moves % 2 == 0
            move = go.ask("genmove b") if black else gnugo("genmove w")
            if move.lower() == "resign":
                break
            (gnugo if black else go.ask)(f"play {'b' if black else 'w'} {move}")
            passes = passes + 1 if move.lower() == "pass" else 0
            moves += 1
            for colour, sign in (("black", "X"), ("white", "O")):
                theirs = sorted(gnugo(f"list_stones {colour}").split())
                rows = _stones(go)
                ours = sorted(
                    f"{'ABCDE'[c]}{5 - r}" for r, row in enumerate(rows) for c, cell in enumerate(row) if cell == sign
                )
                assert ours == theirs, f"after {move}"
        assert moves >= 2
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_networks_without_ownership_take_all_stones_as_alive(tmp_path: Path) -> None:
    found = untrained(tmp_path / "plain", "go", size=5, komi=0.5)
    commands = make(found, PlaySettings(visits=2), QUICK)
    commands.play(["b", "c3"])
    assert commands.commands["final_status_list"](["dead"]) == ""
    assert commands.commands["final_status_list"](["alive"]) == "C3"
    assert commands.final_score([]) == "B+24.5"
