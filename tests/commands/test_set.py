"""`tengen set`: what it prints, and its exit codes."""

from pathlib import Path

import pytest

from tengen.commands import main
from tengen.config import load
from tengen.run import config_file
from tengen.run.part import Progress
from tengen.run.part_status import StatusWriter


@pytest.fixture
def base(tmp_path: Path) -> Path:
    config_file.write(load("go9"), tmp_path, ["tengen 1"])
    return tmp_path


def test_of_a_run_that_stands_still(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["set", str(base), "train.lr_scale=0.3", "goal.minutes=7"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "train.lr_scale: 1.0 -> 0.3 (when the run is started again)"
    assert load(base).goal.minutes == 7
    assert main(["set", str(base), "goal.minutes=7"]) == 0
    assert capsys.readouterr().out == "nothing changes: the run has these settings already\n"
    assert main(["status", str(base)]) == 0
    assert "changed settings:\n  00:00:00  train.lr_scale: 1.0 -> 0.3\n" in capsys.readouterr().out


def test_of_a_living_run(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with StatusWriter(base, "fused", "fused") as status:
        status.show(Progress("playing"))
        assert main(["set", str(base), "train.lr_scale=0.3", "train.batch=512"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "train.batch: 2048 -> 512 (when the run is started again)",
        "train.lr_scale: 1.0 -> 0.3 (within a round)",
    ]


def test_refused(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["set", str(base), "net.name=b2c16"]) == 2
    assert "net.start_from" in capsys.readouterr().err
    assert main(["set", str(tmp_path / "nowhere"), "goal.minutes=7"]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    for text, words in (("lr", "expected section.key=value (lr)"), ("train.lr_scale=-1", "got -1 (train.lr_scale=-1)")):
        assert main(["set", str(base), text]) == 2
        assert capsys.readouterr().err.rstrip().endswith(words), "as it was typed"
