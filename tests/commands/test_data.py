"""Supervised training in two commands, and a look at its rows."""

from pathlib import Path

import pytest

from tengen import games
from tengen.commands import main
from tengen.data.records.records import Record, save_records
from tengen.run import networks
from tests.helpers.tiny_runs import settings

GAME = games.make("tic_tac_toe")
SETTINGS = settings("ring.samples_per_epoch=64", "ring.poll_seconds=0.01", "shuffle.validation_share=0")


def test_supervised_training_in_two_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, games_file = tmp_path / "run", tmp_path / "games.txt"
    save_records(games_file, [Record.of(GAME, (0, 3, 1, 4, 2), result=1.0)] * 10)
    words = ["--game", "tic_tac_toe", "--out", str(base / "selfplay")]
    assert main(["data", "from-games", str(games_file), *words]) == 0
    assert "50 rows of 10 games in 1 file" in capsys.readouterr().out
    sets = [word for text in (*SETTINGS, "train.samples_per_row=2.5") for word in ("--set", text)]
    assert main(["train", "tic_tac_toe", "--base", str(base), "--stop-when-limited", *sets]) == 0
    out = capsys.readouterr().out
    assert "so this trainer also shuffles and exports" in out
    assert out.count("shuffled 50 rows to train with") == 3, "each time in another order"
    assert "learned 112 samples of 50 rows; more would take" in out
    assert networks.newest(base).name == "tic_tac_toe-main-s112-d50"
    assert main(["status", str(base)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("stopped ")
    assert "50 rows, 7 steps" in told
    assert "learned:  7 steps, loss " in told
    assert f"go on: tengen train {base}" in told
    (chunk,) = (base / "selfplay").glob("*/*.npz")
    assert main(["data", "show", str(chunk), "--rows", "1"]) == 0
    assert "policy:  a1 100.0%" in capsys.readouterr().out


def test_bad_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "out")]
    for words, complaint in (
        (["from-games", "none.sgf", "--game", "tic_tac_toe", *out], "none.sgf: cannot be read: No such file"),
        (["from-games", "none.sgf", "--game", "nonsense", *out], '"nonsense": unknown configuration'),
        (["from-games", "none.sgf", "--game", "go9", "--name", "../x", *out], "--name: expected a name that a folder"),
        (["show", "none.npz"], "none.npz: cannot be read"),
        (["show", "none.npz", "--rows", "0"], "--rows: expected a whole number of at least 1"),
    ):
        assert main(["data", *words]) == 2
        assert complaint in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
