"""What the documentation shows works as it is written."""

from pathlib import Path

import numpy as np
import pytest

from tengen import data, games
from tests.helpers import pages
from tests.helpers import rows as made


def test_lines_keep_their_numbers() -> None:
    page = (pages.DOCS / "loader.md").read_text().split("\n")
    for number, line in enumerate(pages.python("loader.md").split("\n")):
        assert line in ("", page[number])


def test_the_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    game = games.make("tic_tac_toe")
    form = data.RowFormat.of(game)
    folder = tmp_path / "runs" / "noughts" / "selfplay" / "random"
    folder.mkdir(parents=True)
    for seed in range(3):
        rows = made.rows(100, seed, form)
        data.write_chunk(folder / f"{seed}.npz", form, rows, data.GameIdentity.of(game), network="n")
    names = pages.run("loader.md", tmp_path, monkeypatch)
    assert capsys.readouterr().out == "300 rows\n"
    assert names["rows"]["policy"].shape == (256, 9)
    assert np.isfinite(names["rows"]["policy"]).all()


@pytest.mark.slow
def test_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = pages.run("nets.md", tmp_path, monkeypatch)["outputs"]
    assert outputs.policy.shape == (2, 82)


@pytest.mark.slow
def test_write_a_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = pages.run("write-a-game.md", tmp_path, monkeypatch)
    assert names["Nim"].name == "nim"
    assert names["BreakthroughOptions"]().size == 6


@pytest.mark.slow
def test_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = pages.run("context.md", tmp_path, monkeypatch)
    assert names["result"].games == 20
    assert names["ctx"].stats().train_batches == names["ctx"].stats().rows * 8 // 64
    assert len(names["results"]) >= 100
