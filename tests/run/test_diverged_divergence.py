"""What a person is told whose training has diverged."""

import re
from pathlib import Path

import pytest

from tengen.config import load
from tengen.config.loading import load_any
from tengen.errors import Diverged, TengenError
from tengen.run import diverged
from tengen.run.diverged import advising


def told(config: str, folder: Path, *overrides: str) -> list[str]:
    command = ["tengen", "run", config, "--base", "my run"]
    with pytest.raises(TengenError) as caught, advising(load_any(config, overrides), folder, command, overrides):
        raise Diverged.at(1200, "it was so")
    assert not isinstance(caught.value, Diverged)
    return str(caught.value).splitlines()


def test_the_newest_checkpoint_and_a_command_that_takes_the_place_of_the_old_rate(tmp_path: Path) -> None:
    for name in ("step_000000067", "step_000000009", "step_000000090.corrupt", "step_000000100.orbax-tmp-1"):
        (tmp_path / name).mkdir()
    (tmp_path / "step_000009999").write_text("a file")
    rate = "train.optimizer.learning_rate"
    lines = told("go9", tmp_path, "goal.minutes=5", f"{rate}=25")
    assert lines == [
        "training diverged at step 1,200: it was so",
        f"Nothing was saved since the checkpoint {tmp_path}/step_000000067, from which it can go on. "
        "Start it again with a lower learning rate:",
        f"  tengen run go9 --base 'my run' --set goal.minutes=5 --set {rate}=2.5",
        f"If the loss does not come down even so, remove {tmp_path}; the same command then learns anew from the rows "
        "that are there.",
    ]


def test_before_the_first_checkpoint(tmp_path: Path) -> None:
    lines = told("go9", tmp_path / "none")
    assert lines[1] == (
        "There is no checkpoint from before that, so learning begins anew. Start it again with a lower learning rate:"
    )
    assert len(lines) == 3
    (tmp_path / "step_000000090.corrupt").mkdir()
    assert told("go9", tmp_path)[1].startswith(f"No good checkpoint is left: remove {tmp_path}, and learning begins")


def test_a_training_of_roles(tmp_path: Path) -> None:
    (tmp_path / "step_000000067").mkdir()
    lines = told("dqn_tic_tac_toe", tmp_path)
    assert lines[2].endswith(" --set x.optimizer.learning_rate=0.0001")
    assert lines[3].endswith("begins anew.")


def test_code_of_the_user_may_be_the_cause(tmp_path: Path) -> None:
    lines = told("tic_tac_toe", tmp_path, "net.name=tests.helpers.custom_nets:tiny", "net.heads=[]")
    assert re.fullmatch(r"A cause may also be in your own code: .*custom_nets\.py, line \d+\.", lines[-1])


def test_the_lowest_rate_that_the_settings_allow(tmp_path: Path) -> None:
    lines = told("go9", tmp_path, "train.optimizer.learning_rate=2e-9")
    load("go9", [lines[2].split()[-1]])
    assert lines[2].endswith("=1e-09")


def test_other_errors_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="^disk$"), advising(load("go9"), tmp_path, []):
        raise TengenError("disk")


def test_the_message_is_kept_until_the_next_start(tmp_path: Path) -> None:
    folder = tmp_path / "train" / "main"
    folder.mkdir(parents=True)
    lines = told("go9", folder)
    assert diverged.read(tmp_path).splitlines() == lines
    with advising(load("go9"), folder, []):
        assert diverged.read(tmp_path) == ""
