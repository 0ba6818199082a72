"""`tengen rate` as a person uses it."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest
from flax import nnx

from tengen import games, match, nets
from tengen.commands import main
from tengen.match.results import MatchResult
from tengen.nets import saving
from tests.helpers.foreign_engines import GNUGO
from tests.helpers.patience import LONG

MAKE = functools.cache(games.make)


@pytest.fixture(autouse=True)
def one_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled for a game is used again by the next command."""
    monkeypatch.setattr(games, "make", MAKE)


def rate(*words: object) -> int:
    return main(["rate", *map(str, words)])


def make_run(folder: Path, count: int = 2, game: str = "tic_tac_toe", **options: object) -> Path:
    made = MAKE(game, **options)
    for number in range(1, count + 1):
        net = nets.build(nets.spec("b1c8"), made, nnx.Rngs(number))
        saving.save(net, folder / "models" / f"n{number}", made, {"samples": number, "step": number, "seconds": 1.0})
    return folder


def test_a_run_is_rated_and_the_next_time_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two networks alone, so that one program is compiled; of two more one is cut off, and one no number."""
    run = make_run(tmp_path / "run", 4)
    cut, odd = (run / "models" / name / "model.safetensors" for name in ("n3", "n4"))
    cut.write_bytes(cut.read_bytes()[:-9])
    odd.write_bytes(odd.read_bytes()[:-4] + np.float32(np.nan).tobytes())
    words = [run, "--games", 4, "--simulations", 2, "--batch", 4, "--anchors"]
    assert rate(*words, "--rounds", 1) == 0
    text = capsys.readouterr().out
    assert len([line for line in text.splitlines() if line.startswith("left out: ") and "n3" in line]) == 1
    assert len([line for line in text.splitlines() if line.startswith("left out: ") and "n4" in line]) == 1
    assert "one match is played" in text
    file = run / "ratings" / "rate-s2.jsonl"
    first = match.read(file)
    assert [(result.a, result.b, result.games) for result in first] == [("n2", "n1", 4)]
    root = xml.fromstring((run / "ratings" / "ratings.svg").read_text())
    assert "samples learned" in {element.text for element in root.iter()}

    figures = tmp_path / "table.json"
    assert rate(*words, "--total-games", 8, "--json", figures, "--plot", tmp_path / "p.png") == 0
    results = match.read(file)
    assert results[:1] == first
    assert [result.games for result in results[1:]] == [4, 4]
    about = json.loads(figures.read_text())
    assert (about["zero"], about["games"], about["simulations"]) == ("n1", 12, 2)
    assert {one["name"] for one in about["players"]} == {"n1", "n2"}
    assert any("n4" in note for note in about["left_out"])
    assert (tmp_path / "p.png").exists()

    for how in (["--no-play"], ["--games", 0]):
        assert rate(*words, *how) == 0
        assert "n2" in capsys.readouterr().out
    assert match.read(file) == results


def test_a_table_needs_no_games_to_be_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run")
    assert rate(run, "--no-play") == 0
    assert "no games so far" in capsys.readouterr().out
    match.append(
        run / "ratings" / "results.jsonl", MatchResult("n1", "random", 9, 0, 1), MatchResult("gone", "n1", 5, 0, 5)
    )
    assert rate(run, "--no-play", "--zero", "n1") == 0
    text = capsys.readouterr().out
    assert "gone" in text
    assert "n1 is 0" in text
    assert "without a game: 1 (n2)" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--games", "3"], "even number"),
        (["--minutes", "nan"], "--minutes"),
        (["--error", "-1"], "--error"),
        (["--total-games", "1"], "--total-games"),
        (["--results", "nowhere"], "--results nowhere"),
        (["--anchors", "nobody"], "nobody: there is no such file"),
        (["--anchors", "uci:cat"], "play chess"),
        (["--plot", "x.gif"], "SVG or PNG"),
        (["--json", "nowhere/x.json"], "no folder"),
        (["--zero", "nobody", "--no-play"], "--zero nobody"),
        (["--only", "x*"], "--only x*"),
    ],
)
def test_what_is_wrong_is_said(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rate(make_run(tmp_path / "run", 1), *words) == 2
    assert message in capsys.readouterr().err


def test_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rate(tmp_path / "nowhere") == 2
    assert "not a run" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_played(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    command = [sys.executable, "-m", "tengen", "rate", str(run), "--minutes", "5", "--games", "4", "--simulations", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    file = run / "ratings" / "rate-s2.jsonl"
    end = time.monotonic() + LONG
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.2)
    # A second one may not add results meanwhile.
    assert rate(run, "--games", 4, "--simulations", 2) == 2
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=LONG)
    assert process.returncode == 130
    assert "the same command goes on" in text
    assert "random is 0" in text
    assert match.read(file)


@pytest.mark.slow
@pytest.mark.skipif(GNUGO is None, reason="GNU Go is not installed")
def test_an_engine_of_others_as_anchor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", 1, "go", size=5, komi=0.5, max_moves=60)
    engine = f"gtp:{GNUGO} --mode gtp --level 1"
    assert rate(run, "--anchors", engine, "--games", 4, "--simulations", 2, "--total-games", 6) == 0
    engine += " --chinese-rules --capture-all-dead --positional-superko"  # which it is given
    results = match.read(run / "ratings" / "rate-s2.jsonl")
    assert [(result.a, result.b, result.games) for result in results] == [("n1", engine, 4), ("n1", engine, 2)]
    text = capsys.readouterr().out
    assert "gnugo" in text
    assert text.count("GNU Go is started with") == 1
