"""`tengen bench`."""

import json
from pathlib import Path

import pytest

from tengen.commands import main

QUICK = ["--steps", "2", "--repeats", "1", "--batch", "4"]


def test_a_configured_game_leaves_its_results_in_the_run_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(["bench", "games", "tic_tac_toe", "--set", "run.seed=3", "--base", str(run), "--no-pgx", *QUICK]) == 0
    assert "seed: 3" in (run / "config.yaml").read_text()
    (result,) = json.loads((run / "logs" / "bench-games.json").read_text())["results"]
    assert result["label"] == "tic_tac_toe"
    assert result["batch"] == 4
    assert result["bytes_per_node"] == 5
    assert result["microseconds"] > 0
    assert result["steps_per_second"] == pytest.approx(4e6 / result["microseconds"])
    assert result["pgx_microseconds"] is None
    assert "tic_tac_toe" in capsys.readouterr().out


def test_processor_time_is_another_clock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results.json"
    assert main(["bench", "games", "tic_tac_toe", "--no-pgx", "--cpu-time", "--json", str(out), *QUICK]) == 0
    assert json.loads(out.read_text())["clock"] == "processor time"
    assert capsys.readouterr().out.splitlines()[0].endswith("processor time")


def test_pgx_is_measured_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pgx", reason="the comparison needs pgx")
    out = tmp_path / "new folder" / "results.json"
    assert main(["bench", "games", "connect_four", "--json", str(out), *QUICK]) == 0
    (result,) = json.loads(out.read_text())["results"]
    assert result["pgx_microseconds"] > 0
    assert capsys.readouterr().out.splitlines()[-2].endswith("x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "expected a whole number from 1"),
        (["--batch", "many"], "expected a whole number from 1"),
        (["--base", "somewhere"], "need a CONFIG"),
        (["nothing"], "nothing"),
        (["go9", "--set", "game.size=99"], "game.size: expected a whole number from 2 to 19"),
    ],
)
def test_wrong_usage_is_answered_with_2_and_what_to_do(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "games", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_results_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "results.json"
    assert main(["bench", "games", "tic_tac_toe", "--no-pgx", "--json", str(out), *QUICK]) == 2
    assert "cannot be written" in capsys.readouterr().err
