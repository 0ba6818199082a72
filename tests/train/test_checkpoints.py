"""Checkpoints come back exactly, or are set aside and named; a killed process leaves a folder to go on from."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tengen.config.settings.train import CheckpointSettings
from tengen.errors import Diverged, TengenError
from tengen.train import checkpoints as module
from tengen.train.checkpoints import Checkpoint, Checkpoints, flat, unflat
from tests.helpers.patience import LONG

SETTINGS = CheckpointSettings(interval=1, keep=2, long_term_interval=None)
ABOUT = {"bucket": {"level": 0.5}, "extras": {"chunk": "naïve.npz", "deep": [1, {"a": None}]}}


def state(seed: int = 0) -> dict[str, Any]:
    numbers = np.random.default_rng(seed)
    return {
        "parameters": {"stem.conv.kernel": jnp.asarray(numbers.normal(size=(3, 3, 2, 4)), jnp.float32)},
        "optimizer": (jnp.asarray(numbers.normal(size=7), jnp.float32), (), jnp.int32(seed)),
        "step": jnp.int32(seed),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With checkpoints of steps 10 and 20."""
    with Checkpoints(tmp_path / "train", SETTINGS) as checkpoints:
        for step in (10, 20):
            checkpoints.save(Checkpoint(step, state(step), {**ABOUT, "step": step}))
    return tmp_path / "train"


def restored(folder: Path, template: Any = None) -> tuple[Checkpoint, tuple[str, ...]] | None:
    with Checkpoints(folder, SETTINGS) as checkpoints:
        return checkpoints.restore(state() if template is None else template)


def test_the_newest_comes_back_exactly(folder: Path, same: Any) -> None:
    found = restored(folder)
    assert found is not None
    checkpoint, set_aside = found
    assert (checkpoint.step, checkpoint.about, set_aside) == (20, {**ABOUT, "step": 20}, ())
    same(checkpoint.state, state(20))


def test_none_is_none(tmp_path: Path) -> None:
    assert restored(tmp_path / "new") is None
    with Checkpoints(tmp_path / "new", SETTINGS) as checkpoints:
        assert checkpoints.steps() == ()


def test_the_last_few_and_a_long_term_one_every_so_often(tmp_path: Path) -> None:
    settings = CheckpointSettings(interval=1, keep=2, long_term_interval=100)
    with Checkpoints(tmp_path, settings) as checkpoints:
        for step in (3, 40, 90, 110, 150, 190, 215, 230):
            checkpoints.save(Checkpoint(step, {"a": jnp.zeros(2)}, {}))
        checkpoints.wait()
        assert checkpoints.steps() == (3, 110, 215, 230)


def test_saving_copies_first(tmp_path: Path) -> None:
    array = np.zeros(1000, np.float32)
    with Checkpoints(tmp_path, SETTINGS) as checkpoints:
        checkpoints.save(Checkpoint(1, {"a": array}, {}))
        array[:] = 7
        found = checkpoints.restore({"a": array})
    assert found is not None
    assert not found[0].state["a"].any()


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "flipped": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 0x10]) + data[len(data) // 2 + 1 :],
    "garbage": lambda data: bytes(np.random.default_rng(0).integers(0, 256, len(data), np.uint8)),
    "gone": None,
}


@pytest.mark.parametrize("how", DAMAGE)
def test_whatever_file_is_damaged_nothing_wrong_is_restored(folder: Path, tmp_path: Path, same: Any, how: str) -> None:
    names = [path.relative_to(folder / "step_000000020") for path in files(folder / "step_000000020")]
    fell_back = 0
    for number, name in enumerate(names):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(folder, copy)
        path = copy / "step_000000020" / name
        damage = DAMAGE[how]
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage(path.read_bytes()))
        found = restored(copy)
        assert found is not None, name
        checkpoint, set_aside = found
        same(checkpoint.state, state(checkpoint.step))
        assert checkpoint.about == {**ABOUT, "step": checkpoint.step}
        if checkpoint.step == 10:
            assert "step_000000020 is corrupt" in set_aside[0], name
            assert "set aside as step_000000020.corrupt" in set_aside[0]
            assert (copy / "step_000000020.corrupt").is_dir()
            assert not (copy / "step_000000020").exists()
            again = restored(copy)
            assert again is not None
            assert (again[0].step, again[1]) == (10, ())
            fell_back += 1
    assert fell_back >= 2, "some files hold the data"


@pytest.mark.parametrize(
    "name",
    [
        "_CHECKPOINT_METADATA",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("about/metadata", "state/_METADATA", "state/manifest.ocdbt")
        ),
    ],
)
def test_a_fifo_is_not_waited_for(folder: Path, name: str) -> None:
    """In a process of its own, since a thread that waits for a FIFO cannot be stopped."""
    target = folder / "step_000000020" / name
    target.unlink()
    os.mkfifo(target)
    code = (
        "import sys; from tests.train.test_checkpoints import Path, restored\n"
        "found = restored(Path(sys.argv[1])); print(found[0].step, *found[1])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", code, folder]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONG, env=environment)
    assert done.stdout.startswith("10 step_000000020 is corrupt"), done.stderr
    assert "is a FIFO, not a regular file" in done.stdout


def test_when_all_are_corrupt_nothing_is_started_anew(folder: Path) -> None:
    for path in files(folder):
        if "/d/" in str(path) or path.name == "manifest.ocdbt":
            path.write_bytes(b"")
    with pytest.raises(TengenError, match="no checkpoint can be read: step_000000020 is corrupt") as raised:
        restored(folder)
    assert "step_000000010.corrupt" in str(raised.value)
    assert sorted(path.name for path in folder.glob("*.corrupt")) == [
        "step_000000010.corrupt",
        "step_000000020.corrupt",
    ]


def test_another_network_is_refused_and_left_alone(folder: Path) -> None:
    other = {**state(), "step": jnp.zeros(3)}
    with pytest.raises(
        TengenError, match=r"step_000000020: of another network or optimiser than this one \(step \[\] int32"
    ):
        restored(folder, other)
    more = {**state(), "extra": jnp.zeros(3)}
    with pytest.raises(TengenError, match=r"of another network or optimiser than this one \(extra\)"):
        restored(folder, more)
    assert not list(folder.glob("*.corrupt"))


def test_after_a_fall_back_the_same_step_can_be_saved_again(folder: Path) -> None:
    for path in files(folder / "step_000000020" / "state"):
        path.write_bytes(b"")
    with Checkpoints(folder, SETTINGS) as checkpoints:
        found = checkpoints.restore(state())
        assert found is not None
        assert found[0].step == 10
        checkpoints.save(Checkpoint(20, state(20), ABOUT))
        checkpoints.wait()
        assert checkpoints.steps() == (10, 20)
        again = checkpoints.restore(state())
        assert again is not None
        assert again[0].step == 20


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TengenError, match="no place for checkpoints"):
        Checkpoints(tmp_path / "file" / "train", SETTINGS)


def test_names_in_a_checkpoint_are_readable() -> None:
    names = set(flat(state()))
    assert names == {"parameters/stem.conv.kernel", "optimizer/0", "optimizer/2", "step"}
    with pytest.raises(TengenError, match=r"oh \(step\)"):
        unflat({k: v for k, v in flat(state()).items() if k != "step"}, state(), "oh")


WRITER = """
import sys
import numpy as np
from tengen.train import Checkpoint, Checkpoints, CheckpointSettings
with Checkpoints(sys.argv[1], CheckpointSettings(interval=1, keep=2, long_term_interval=None)) as checkpoints:
    for step in range(1, 10_000):
        # Incompressible and large enough to be caught in the middle.
        array = np.random.default_rng(step).normal(size=500_000)
        checkpoints.save(Checkpoint(step, {"a": array, "step": np.asarray(step)}, {"step": step}))
        if step == 2:
            print("writing", flush=True)
"""


@pytest.mark.parametrize("pause", [0.0, pytest.param(0.13, marks=pytest.mark.slow)])
def test_a_killed_process_leaves_checkpoints_to_go_on_from(tmp_path: Path, pause: float) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "writing\n"
        deadline = time.monotonic() + LONG
        # Strike while one is being written: it then has a temporary name.
        time.sleep(pause)
        while not list(tmp_path.glob("*tmp*")) and time.monotonic() < deadline:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    with Checkpoints(tmp_path, SETTINGS) as checkpoints:
        found = checkpoints.restore({"a": np.zeros(500_000), "step": np.asarray(0)})
        assert found is not None
        checkpoint, _ = found
        assert checkpoint.about == {"step": checkpoint.step}
        np.testing.assert_array_equal(
            checkpoint.state["a"], np.random.default_rng(checkpoint.step).normal(size=500_000)
        )
        checkpoints.save(Checkpoint(checkpoint.step + 1, checkpoint.state, {}))
    assert not list(tmp_path.glob("*tmp*")), "what was being written is cleared away"


def with_number(number: float) -> dict[str, Any]:
    spoiled = state(30)
    return {**spoiled, "optimizer": (spoiled["optimizer"][0].at[3].set(number), *spoiled["optimizer"][1:])}


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_never_written(folder: Path, number: float) -> None:
    with Checkpoints(folder, SETTINGS) as checkpoints:
        with pytest.raises(
            Diverged, match="training diverged at step 30: optimizer/0 holds numbers that are not finite"
        ):
            checkpoints.save(Checkpoint(30, with_number(number), ABOUT))
        assert checkpoints.steps() == (10, 20)
        # Games, samples and what a trainer of one's own keeps may hold any numbers.
        checkpoints.save(Checkpoint(40, {"extra": {"best": jnp.float32(number)}}, ABOUT))
    assert (folder / "step_000000040").is_dir()


def test_one_that_is_not_finite_is_set_aside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As versions before this check have left them."""
    with monkeypatch.context() as patch, Checkpoints(folder, SETTINGS) as checkpoints:
        patch.setattr(module, "_bad", lambda arrays: "")
        checkpoints.save(Checkpoint(30, with_number(np.nan), ABOUT))
    found = restored(folder)
    assert found is not None
    assert found[0].step == 20
    assert found[1] == (
        "step_000000030 is corrupt (optimizer/0 holds numbers that are not finite: the training had diverged), "
        "set aside as step_000000030.corrupt",
    )
    assert (folder / "step_000000030.corrupt").is_dir()
