"""Supervised training in two commands, and a look at its rows."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games
from tengen.commands import main
from tengen.config import load
from tengen.data.format.chunk import read_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.records.records import Record, save_records
from tengen.data.records.row_maker import RowMaker
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


def test_rows_fit_the_run_whatever_observation_the_games_were_played_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A game that is also the name of a configuration is that configuration's."""
    played = games.make("connect_four", observation="stones")
    save_records(tmp_path / "games.txt", [Record.of(played, (0, 1, 0, 1, 0, 1, 0), result=1.0)] * 3)
    words = ["--game", "connect_four", "--out", str(tmp_path / "rows")]
    assert main(["data", "from-games", str(tmp_path / "games.txt"), *words]) == 0
    assert "21 rows of 3 games in 1 file" in capsys.readouterr().out
    wanted = GameIdentity.of(load("connect_four").game.make())
    (chunk,) = (tmp_path / "rows").glob("*/*.npz")
    rows, _ = read_chunk(chunk, game=wanted)
    assert len(rows["ply"]) == 21


def test_a_longer_game_than_the_run_plays_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    played, shorter = games.make("minichess", max_moves=300), games.make("minichess", max_moves=4)
    state, moves = played.init(jax.random.key(0)), []
    for _ in range(6):
        moves.append(int(np.flatnonzero(played.legal_actions(state))[0]))
        state = played.step(state, jnp.int32(moves[-1]))
    maker = RowMaker(shorter, RowFormat.of(shorter), 100)
    found = [rows for actions in (moves, moves[:4]) for rows in maker.add(Record.of(played, actions, result=0.0), "f")]
    found += maker.finish()
    assert sum(len(rows["ply"]) for rows in found) == 4
    assert maker.examples == {"does not fit the game": "f: 6 moves, expected at most 4"}


def test_rows_of_another_game_end_a_trainer_that_does_not_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_records(tmp_path / "games.txt", [Record.of(GAME, (0, 3, 1, 4, 2), result=1.0)] * 10)
    base = tmp_path / "run"
    words = ["--game", "tic_tac_toe", "--out", str(base / "selfplay")]
    assert main(["data", "from-games", str(tmp_path / "games.txt"), *words]) == 0
    assert main(["train", "connect_four", "--base", str(base), "--stop-when-limited", "--set", "net.name=b1c8"]) == 2
    assert "there are no rows to learn from: " in capsys.readouterr().err


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
