"""What may change between two starts of a run, and that only one process has a run directory."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from tengen import files
from tengen.config import load, render
from tengen.config.loading import load_any
from tengen.config.problems import ConfigError
from tengen.run.directory import locked, write

HOLD = """
import sys
from pathlib import Path
from tengen.run.directory import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_goals_and_ratings_may_change_and_the_file_says_when(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, ["tengen 1", "python 3"])
    changed = load("go9", ["goal.minutes=77", "rating.games=2"])
    assert write(changed, tmp_path, ["tengen 2"]) == path
    assert load(path) == changed
    lines = path.read_text().splitlines()
    assert lines[:2] == ["# tengen 1", "# python 3"]
    assert lines[2].startswith("# changed 20")
    assert lines[2].split(" UTC: ")[1].startswith("rating.games: ")
    assert lines[3].endswith(" -> 77.0")
    assert lines[4].startswith("# A complete Tengen configuration")
    write(load("go9", ["goal.minutes=78", "rating.games=2"]), tmp_path, [])
    lines = path.read_text().splitlines()
    assert lines[4].endswith("goal.minutes: 77.0 -> 78.0")
    assert lines[5].startswith("# A complete Tengen configuration")
    assert [file.name for file in tmp_path.iterdir()] == ["config.yaml"]


def test_the_size_of_learning_steps_may_change_and_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    write(load("go9"), tmp_path, [], said.append)
    rate = load("go9").train.optimizer.learning_rate
    changed = ["train.optimizer.learning_rate=1e-5", "train.optimizer.clip=0.5", "train.schedule.warmup=7"]
    path = write(load("go9", [*changed, "goal.minutes=77"]), tmp_path, [], said.append)
    assert load(path).train.optimizer.learning_rate == 1e-5
    assert said[0] == f"from now on train.optimizer.learning_rate: {rate} -> 1e-05"
    assert len(said) == 3, "goals are nobody's surprise"
    with pytest.raises(ConfigError, match="train.optimizer.kind"):
        write(load("go9", ["train.optimizer.kind=sgd"]), tmp_path, [])


def test_so_may_those_of_a_training_of_roles(tmp_path: Path) -> None:
    said: list[str] = []
    write(load_any("dqn_tic_tac_toe"), tmp_path, [])
    write(load_any("dqn_tic_tac_toe", ["host.optimizer.learning_rate=1e-6"]), tmp_path, [], said.append)
    assert said == ["from now on host.optimizer.learning_rate: 0.001 -> 1e-06"]
    with pytest.raises(ConfigError, match="host.batch"):
        write(load_any("dqn_tic_tac_toe", ["host.batch=3"]), tmp_path, [])


def test_one_change_too_many_and_nothing_is_written(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, [])
    before = path.read_bytes()
    with pytest.raises(ConfigError) as caught:
        write(load("go9", ["goal.minutes=77", "run.seed=9"]), tmp_path, [])
    assert caught.value.problems == (
        "run.seed: 1 -> 9",
        f"{path}: this run has other settings; keep to them (CONFIG may be this file), or choose another --base",
    )
    assert path.read_bytes() == before


def test_a_change_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(load("go9"), tmp_path, [])
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_bytes", fail)
    with pytest.raises(ConfigError, match="cannot be written to: No space left on device"):
        write(load("go9", ["goal.minutes=77"]), tmp_path, [])
    assert path.read_bytes() == before


def test_one_process_at_a_time_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    base = tmp_path / "new" / "run"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(base)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(ConfigError) as caught, locked(base):
            pass
        (problem,) = caught.value.problems
        assert problem.startswith(f"{base}: is being used by process {holder.pid} on ")
        assert problem.endswith("; wait until it ends, or choose another --base")
    finally:
        holder.kill()
        holder.communicate()
    with locked(base):
        pass
    with locked(base):
        pass


def test_a_base_that_cannot_be_locked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ConfigError, match="is a file or lies below one"), locked(tmp_path / "file"):
        pass
    assert (tmp_path / "file").read_text() == "precious"


def test_file_systems_without_locks_are_used_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    with locked(tmp_path):
        pass


def without_new_setting(path: Path) -> None:
    """As an older version wrote it."""
    lines = [line for line in path.read_text().splitlines(keepends=True) if "max_chunk_rows" not in line]
    path.write_text("".join(lines))


def test_a_run_from_before_a_setting_goes_on(tmp_path: Path) -> None:
    config = load("go5")
    path = write(config, tmp_path, ["tengen 1, commit abc", "python 3"])
    without_new_setting(path)
    assert config.data.max_chunk_rows == 1_000_000
    assert load(path) == config  # CONFIG may be this file
    before = path.read_bytes()
    write(config, tmp_path, ["tengen 2"])
    assert path.read_bytes() == before
    write(load("go5", ["data.max_chunk_rows=20000"]), tmp_path, ["tengen 2"])
    assert load(path).data.max_chunk_rows == 20_000
    assert "data.max_chunk_rows: 1000000 -> 20000" in path.read_text()


def test_nothing_is_filled_in_for_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(render(load("go5")))
    without_new_setting(path)
    with pytest.raises(ConfigError, match=r"data\.max_chunk_rows: missing, expected a whole number from 10000 to"):
        load(path)


def test_a_run_still_needs_all_older_settings(tmp_path: Path) -> None:
    path = write(load("go5"), tmp_path, ["tengen 1"])
    path.write_text(path.read_text().replace("  ring_rows:", "  # ring_rows:"))
    with pytest.raises(ConfigError, match=r"data\.ring_rows: missing"):
        load(path)
