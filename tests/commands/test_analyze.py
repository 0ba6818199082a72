import json
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from tengen.commands import main
from tests.helpers.networks import untrained


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(untrained(tmp_path_factory.mktemp("nets") / "noughts", "tic_tac_toe", heads=("moves_left",)).path)


def test_everything_at_once(net: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: str(tmp_path / name) for name in ("a.json", "a.svg", "tree.json")}
    words = ["--json", files["a.json"], "--picture", files["a.svg"], "--dump-tree", files["tree.json"]]
    assert main(["analyze", net, "--position", "a1 b1 a2 b2", "--visits", "60", *words]) == 0
    out = capsys.readouterr().out
    assert "x to play after 4 moves" in out
    assert all(f"written: {path}" in out for path in files.values())
    told = json.loads((tmp_path / "a.json").read_text())
    assert told["search"]["visits"] == 60
    assert told["search"]["candidates"][0]["move"] == "a3"
    assert json.loads((tmp_path / "tree.json").read_text())["children"][0]["move"] == "a3"
    assert xml.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    assert len(list(tmp_path.iterdir())) == 3


def test_json_on_standard_output_is_alone_there(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", net, "--visits", "0", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["position"]["moves"] == []


def test_a_game_and_a_number_of_a_move(net: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game = tmp_path / "game.txt"
    game.write_text(
        "tengen record 1\ngame: tic_tac_toe\noptions: {}\nending: unknown\nmoves: 3\n1 0 a1 -\n2 1 b1 -\n3 0 a2 -\n"
    )
    assert main(["analyze", net, "--game", str(game), "--move", "2", "--visits", "0"]) == 0
    assert "x to play after 2 moves (last: b1)" in capsys.readouterr().out
    assert main(["analyze", net, "--sgf", str(game), "--position", "b2", "--visits", "0"]) == 0
    assert "x to play after 4 moves (last: b2)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--move", "3"], "--move: of which game"),
        (["--sgf", "nothing.sgf"], "nothing.sgf: cannot be read"),
        (["--position", "a1 a1"], "--position: move 2: tic_tac_toe: a1: that move is not legal here"),
        (["--picture", "a.gif"], "a.gif: pictures are SVG or PNG"),
        (["--picture", "no/where/a.svg"], "there is no folder"),
        (["--visits", "0", "--dump-tree", "t.json"], "there is no tree"),
        (["--visits", "-3"], "visits"),
        (["--seconds", "soon"], "--seconds"),
        (["--seconds", "nan"], "seconds"),
        (["--seconds", "0"], "seconds"),
        (["--precision", "float8"], "precision"),
        (["--show", "policy,smell"], "expected some of policy,visits,ownership,line, got 'smell'"),
        (["--set", "komi=5"], "komi"),
    ],
)
def test_what_is_wrong_is_said(
    net: str, words: list[str], expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["analyze", net, *words]) == 2
    assert expected in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_no_such_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err
