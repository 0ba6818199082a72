import json
import os
import signal
from pathlib import Path

import pytest
import sgfmill.sgf

from tengen.analysis import review_output
from tengen.commands import main
from tengen.data.records.records import load_records
from tengen.run.signals import Stopping
from tests.helpers.networks import untrained
from tests.helpers.patience import eventually

MOVES = ("a1", "b1", "a2", "b2", "c3", "b3")


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(untrained(tmp_path_factory.mktemp("nets") / "noughts", "tic_tac_toe", heads=("moves_left",)).path)


@pytest.fixture
def game(tmp_path: Path) -> Path:
    lines = [f"{n} {(n - 1) % 2} {name} -" for n, name in enumerate(MOVES, 1)]
    head = ["tengen record 1", "game: tic_tac_toe", "options: {}", "ending: unknown", f"moves: {len(MOVES)}"]
    (tmp_path / "game.txt").write_text("\n".join([*head, *lines]) + "\n")
    return tmp_path / "game.txt"


def test_a_game_is_reviewed_and_written_beside_itself(net: str, game: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", net, str(game), "--visits", "300", "--json", str(game.with_name("r.json"))]) == 0
    said = capsys.readouterr()
    assert "move 5: x c3 loses" in said.out
    assert "move 6 of 6: b3 +1.000" in said.err
    names = {path.name for path in game.parent.iterdir()}
    assert names == {"game.txt", "game.reviewed.txt", "game.reviewed.svg", "r.json"}
    (record,) = load_records(game.with_name("game.reviewed.txt"))
    assert record.actions == load_records(game)[0].actions
    assert record.values[-1] == 1.0
    told = json.loads(game.with_name("r.json").read_text())
    assert told["complete"]
    assert [each["move"] for each in told["moves"]] == list(MOVES)
    assert told["moves"][4]["best"] == "a3"


@pytest.mark.slow
def test_json_on_standard_output_is_alone_there(net: str, game: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", net, str(game), "--visits", "20", "--json", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)["moves"]) == 6


def test_what_was_reviewed_before_ctrl_c_is_written(net: str, game: Path, monkeypatch, capsys) -> None:
    told, made = review_output.progress, []

    class Known(Stopping):
        def __enter__(self) -> Stopping:
            made.append(self)
            return super().__enter__()

    def interrupting(each, total: int) -> str:
        if each.number == 2:
            os.kill(os.getpid(), signal.SIGINT)
            eventually(lambda: made[0].asked)  # a thread of its own hears it
        return told(each, total)

    monkeypatch.setattr(review_output, "progress", interrupting)
    monkeypatch.setattr("tengen.run.signals.Stopping", Known)
    out = game.with_name("half.txt")
    assert main(["review", net, str(game), "--visits", "300", "--out", str(out)]) == 130
    said = capsys.readouterr()
    assert "stopped after 2 of 6 moves" in said.out
    assert "stopping" in said.err
    (record,) = load_records(out)
    assert len(record.actions) == 6
    assert [value is None for value in record.values] == [False] * 2 + [True] * 4


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["nothing.txt"], "nothing.txt: cannot be read"),
        (["bad.txt"], "bad.txt: a game of go, and the network plays tic_tac_toe"),
        (["none.txt"], "none.txt: the file is neither SGF"),
        (["empty.txt"], "empty.txt: there are no moves to review"),
        (["good.txt", "--out", "good.txt"], "that is the game itself"),
        (["good.txt", "--plot", "a.jpg"], "pictures are SVG or PNG"),
        (["good.txt", "--visits", "0"], "visits: expected"),
    ],
)
def test_what_is_wrong_is_said(
    net: str, game: Path, words: list[str], expected: str, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(game.parent)
    Path("good.txt").write_text(game.read_text())
    Path("bad.txt").write_text("(;GM[1])")
    Path("none.txt").write_text("once upon a time")
    Path("empty.txt").write_text("tengen record 1\ngame: tic_tac_toe\noptions: {}\nending: unknown\nmoves: 0\n")
    assert main(["review", net, *words]) == 2
    assert expected in capsys.readouterr().err
    assert {path.name for path in game.parent.iterdir()} == {
        "game.txt", "good.txt", "bad.txt", "none.txt", "empty.txt",
    }  # fmt: skip


@pytest.mark.slow
def test_a_game_of_go_with_handicap_from_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = untrained(tmp_path / "net", "go", heads=("ownership", "score"), size=7, komi=7.0).path
    game = tmp_path / "game.sgf"
    game.write_text(
        "(;GM[1]FF[4]SZ[5]KM[0.5]RU[Japanese]PB[a]PW[b]HA[2]AB[bb][dd];W[cc]C[hm];B[bc];W[cb];W[bd](;B[];W[])(;B[aa]))"
    )
    assert main(["review", str(net), str(game), "--visits", "30", "--plot", str(tmp_path / "plot.png")]) == 0
    assert "Black (a): 3 moves" in capsys.readouterr().out
    reviewed = sgfmill.sgf.Sgf_game.from_bytes((tmp_path / "game.reviewed.sgf").read_bytes())
    assert (reviewed.get_size(), reviewed.get_komi(), reviewed.get_handicap()) == (5, 0.5, None)
    moves = reviewed.get_main_sequence()[1:]
    assert [node.get_move()[0] for node in moves] == ["w", "b", "w", "b", "w", "b", "w"]
    assert moves[0].get("C").endswith("hm")
    assert moves[-1].get("C").startswith("value ")  # the game is over: White's result by area
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
