"""Games other than Go over GTP."""

import pytest

from tengen.config.settings.match import PlaySettings
from tengen.engine.gtp.commands import GtpCommands, make
from tengen.run.networks import FoundNetwork
from tests.helpers.gtp_dialogue import Controller
from tests.helpers.networks import QUICK, untrained


@pytest.fixture(scope="module")
def commands(noughts: FoundNetwork) -> GtpCommands:
    return make(noughts, PlaySettings(visits=40, resign=0), QUICK)


def test_a_game_from_beginning_to_end(commands: GtpCommands) -> None:
    talk = Controller(commands)
    talk.ask("boardsize 3")
    assert talk.fails("final_score").startswith("cannot score")
    for move in ("b a1", "w a2", "first b1", "second b2"):
        talk.ask(f"play {move}")
    assert talk.fails("play w c1") == "it is black's turn"
    assert talk.fails("play b a1") == "illegal move"
    assert talk.fails("play b z9").startswith("invalid move")
    assert talk.fails("genmove w") == "it is black's turn"
    assert talk.ask("reg_genmove b") == "c1"
    assert talk.ask("genmove b") == "c1"  # three in a row
    assert talk.ask("final_score") == "B+1"
    assert talk.fails("play w c3") == "the game is over"
    assert talk.fails("genmove w") == "the game is over"
    assert talk.fails("lz-analyze w 10") == "the game is over"
    assert "1 x x x" in talk.ask("showboard")
    talk.ask("undo")
    assert "to play: x" in talk.ask("showboard")
    talk.ask("clear_board")
    assert talk.fails("undo") == "cannot undo"
    talk.end()


def test_what_the_game_does_not_have(commands: GtpCommands) -> None:
    talk = Controller(commands)
    assert talk.fails("komi 7") == "tic_tac_toe has no komi"
    assert talk.fails("boardsize 4") == "unacceptable size"
    for name in ("fixed_handicap 2", "loadsgf x", "final_status_list dead"):
        assert talk.fails(name) == "unknown command"
        assert talk.ask(f"known_command {name.split()[0]}") == "false"
    talk.end()


def test_reports_use_the_names_of_the_game(commands: GtpCommands) -> None:
    talk = Controller(commands)
    talk.ask("clear_board")
    lines = talk.raw("kata-genmove_analyze 1 ownership true").split("\n")
    assert lines[1].startswith("info move ")
    assert "scoreLead" not in lines[1]  # nothing to say about scores
    assert "ownership" not in lines[1]
    assert lines[-1].split()[1] in ("a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3")
    talk.end()


@pytest.mark.slow
def test_names_that_depend_on_the_player(tmp_path) -> None:
    found = untrained(tmp_path / "points", "hironaka", "mlp1x8")
    commands = make(found, PlaySettings(visits=8), QUICK)
    assert commands.genmove(["b"]).startswith("{")
    assert commands.genmove(["w"]) in ("0", "1", "2")
    with pytest.raises(Exception, match="black's turn"):
        commands.play(["w", "0"])


@pytest.mark.slow
def test_other_sizes_where_the_network_fits(tmp_path) -> None:
    found = untrained(tmp_path / "hex", "hex", size=4)
    commands = make(found, PlaySettings(visits=8), QUICK)
    commands.boardsize(["5"])
    assert commands.game.options.size == 5
    assert commands.genmove(["b"])
    with pytest.raises(Exception, match="unacceptable size"):
        commands.boardsize(["99"])
    assert commands.game.options.size == 5
