"""Who may use a run directory together, and who is told that it is taken."""

import threading
import time
from pathlib import Path

import pytest

from tengen.errors import OptionError, TengenError
from tengen.files import lock
from tengen.run import locks
from tests.helpers.patience import LONG


@pytest.mark.parametrize("only", ["train-main", "gate", "async", "sync"])
def test_only_one_of_a_kind(tmp_path: Path, only: str) -> None:
    with locks.taking_part(tmp_path, only):
        with (
            pytest.raises(
                TengenError,
                match=f"{only.replace('train-', 'trainer ')}: is being used by process .*; wait until it ends",
            ),
            locks.taking_part(tmp_path, only),
        ):
            pass
        with locks.taking_part(tmp_path, "train-other"), locks.taking_part(tmp_path), locks.taking_part(tmp_path):
            pass
    with locks.taking_part(tmp_path, only):
        pass


def test_the_fused_loop_is_alone(tmp_path: Path) -> None:
    with (
        locks.taking_part(tmp_path),
        pytest.raises(TengenError, match="is being used by process"),
        lock.locked(tmp_path),
    ):
        pass
    with (
        lock.locked(tmp_path),
        pytest.raises(TengenError, match="is being used by process"),
        locks.taking_part(tmp_path),
    ):
        pass


def test_who_follows_waits_for_a_process_of_this_machine_to_end_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    ended, holds = threading.Event(), threading.Event()

    def hold() -> None:
        with locks.taking_part(tmp_path, "gate"):
            holds.set()
            ended.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    with (
        pytest.raises(lock.InUse),
        locks.following(tmp_path, "gate", 0.3, said.append),
    ):
        pass
    assert len(said) == 1
    assert "gate: is being used by process" in said[0]
    with pytest.raises(lock.InUse), locks.following(tmp_path, "gate", 0.0, said.append):
        pass
    assert len(said) == 1, "nobody waits who was not told to"
    with locks.following(tmp_path, "gate", LONG, lambda _: ended.set()):
        pass
    thread.join()


def test_who_follows_does_not_wait_for_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with locks.taking_part(tmp_path, "gate"):
        (tmp_path / ".lock-gate").write_text("process 17 on elsewhere\n")
        monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
        with (
            pytest.raises(lock.InUse, match="process 17 on elsewhere"),
            locks.following(tmp_path, "gate", LONG, print),
        ):
            pass


@pytest.mark.parametrize("name", ["", "a-b", "a/b", "x" * 41, "é"])
def test_names_of_trainers(name: str) -> None:
    with pytest.raises(OptionError, match="--name: expected letters and digits"):
        locks.check_name(name)
