"""Who may use a run directory together, and who is told that it is taken; unfinished files of the killed go."""

import os
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


NAMES = (
    "models/net-s1-d2/.model.safetensors.01234567.part",
    "models/.net-s2-d3.01234567.part/model.safetensors",
    "games/net-s1-d2/.a.sgf.01234567.part",
    "selfplay/net-s1-d2/.0000000001-a.npz.01234567.part",
    "candidates/.net-s2-d3.01234567.part/model.safetensors",
    "candidates/net-s4-d4/.verdict.json.01234567.part",
    "ratings/.results.jsonl.01234567.part",
    ".config.yaml.01234567.part",
    "train/main/.config.yaml.01234567.part",
)
OTHERS = ("models/net-s1-d2/model.safetensors", "shuffled/.00000001-01234567.part/x", "notes.part", ".lock")


def fill(base: Path) -> None:
    for name in (*NAMES, *OTHERS):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text("x")


def age(base: Path, seconds: float) -> None:
    for path in base.rglob("*"):
        os.utime(path, (time.time() - seconds, time.time() - seconds))


def left(base: Path) -> set[str]:
    return {str(path.relative_to(base)) for path in base.rglob("*") if path.is_file()}


def test_only_what_is_old_while_others_may_write(tmp_path: Path) -> None:
    fill(tmp_path)
    assert locks.remove_unfinished(tmp_path) == []
    age(tmp_path, 7200)
    assert len(locks.remove_unfinished(tmp_path)) == len(NAMES)
    assert left(tmp_path) == set(OTHERS)


def test_at_once_where_nobody_else_writes(tmp_path: Path) -> None:
    fill(tmp_path)
    locks.remove_unfinished(tmp_path, alone=True)
    assert left(tmp_path) == {*OTHERS, *NAMES[4:]}
    assert locks.remove_unfinished(tmp_path / "none", alone=True) == []


def test_every_part_does_so_when_it_starts(tmp_path: Path) -> None:
    fill(tmp_path)
    age(tmp_path, 7200)
    with locks.taking_part(tmp_path, "train-main"):
        assert left(tmp_path) == {*OTHERS, ".lock-train-main"}
