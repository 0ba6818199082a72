"""A trainer on games of others makes its own shuffles, and another one when more rows have come."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tengen import games
from tengen.data.shuffle.folders import newest
from tengen.loop.parts.supervised import SupervisedPart, is_supervised
from tengen.loop.parts.train import TrainPart
from tengen.run.part import waiting
from tests.helpers.katago_files import made_arrays, on_boards, write_arrays
from tests.helpers.tiny_runs import never, tiny

GO3 = ("game.name=go", "game.size=3", "game.observation=katago")


def put(base: Path, name: str, rows: int) -> None:
    write_arrays(base / "selfplay" / "random" / "tdata" / name, made_arrays(rows, seed=rows))


def test_new_files_of_katago_are_shuffled_when_the_trainer_waits(tmp_path: Path) -> None:
    put(tmp_path, "A1.npz", 40)
    assert is_supervised(tmp_path)
    config = tiny()
    game = games.make("go", size=3, observation="katago")
    trainer: Any = SimpleNamespace(
        name="main",
        run_once=lambda: waiting("more rows"),
        trainer=SimpleNamespace(affordable=0, samples=0, bucket=None, config=SimpleNamespace(game=game)),
    )
    said: list[str] = []
    part = SupervisedPart(config, tmp_path, never, said.append, lambda **_: trainer, ends=False)
    assert "shuffled" in part.run_once().words
    assert part.run_once().words == "more rows"
    put(tmp_path, "B2.npz", 24)
    folder = tmp_path / "selfplay" / "random" / "tdata"
    (folder / "C3.npz").write_bytes(b"nonsense")
    write_arrays(folder / "D4.npz", on_boards(made_arrays(12, 5), [(3, 3)] * 8 + [(5, 5)] * 4))
    assert "shuffled" in part.run_once().words
    found = newest(tmp_path)
    assert found is not None
    assert found.total_rows == 72
    assert sum(file.rows for file in (*found.train, *found.validation)) == 72
    assert f"used in part: {folder / 'D4.npz'}: 4 of 12 rows are of boards larger than 3x3, and left out" in said
    assert any("C3.npz: not a good chunk" in text for text in said)
    assert part.run_once().words == "more rows"


def test_changed_settings_reach_everything_it_does(tmp_path: Path) -> None:
    config, said = tiny("train.samples_per_row=1"), list[str]()
    make = partial(TrainPart, config, tmp_path, never, said.append)
    part = SupervisedPart(config, tmp_path, never, said.append, make, ends=False)
    part.change(tiny("train.lr_scale=0.25", "ring.samples_per_epoch=640", "shuffle.keep_target_rows=7"))
    train, shuffle = part._train, part._shuffle
    found = train.trainer.config.train.lr_scale, train.epoch_steps, shuffle._settings.keep_target_rows
    part.close()
    assert found == (0.25, 40, 7)
    assert shuffle._first == 1, "it still trains on however few rows there are"
