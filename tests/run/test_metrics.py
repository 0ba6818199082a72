"""Metrics: whole lines whatever happens, and nothing that is not known to be ours is lost."""

import json
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen.errors import OptionError, TengenError
from tengen.run.metrics import NAME, Metrics, TensorBoard, last, last_mode, read


def clock(*times: float) -> Callable[[], float]:
    """A clock that shows these times, and then stays at the last."""
    left = list(times)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def lines(folder: Path) -> list[dict]:
    return [json.loads(line, parse_constant=pytest.fail) for line in (folder / NAME).read_text().splitlines()]


GOOD = '{"time": "2026-01-31T12:00:00.000+00:00", "elapsed": 30.5, "kind": "progress", "games": 3}\n'


def test_a_line(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    with Metrics(tmp_path / "run", clock(100, 102.25)) as metrics:
        metrics.write("progress", {"games": 3, "losses": {"policy": 1.5}, "stage": "playing"})
    (line,) = lines(tmp_path / "run")
    assert abs((datetime.fromisoformat(line.pop("time")) - before).total_seconds()) < 60
    assert line == {"elapsed": 2.25, "kind": "progress", "games": 3, "losses": {"policy": 1.5}, "stage": "playing"}
    assert metrics.notes == ()


def test_each_line_is_there_at_once(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path)
    for count in range(1, 4):
        metrics.write("rating", {"elo": count})
        assert len(lines(tmp_path)) == count
    metrics.close()


def test_numbers_that_json_cannot_hold_are_null_and_those_of_numpy_are_plain(tmp_path: Path) -> None:
    with Metrics(tmp_path) as metrics:
        metrics.write(
            "progress",
            {
                "bad": [float("nan"), float("inf"), np.float32("-inf"), np.float64("nan")],
                "inner": {"bad": float("inf"), 5: np.int64(5)},
                "array": np.array([1.0, np.nan]),
                "good": (np.float32(0.5), np.bool_(True), None, "text", 2**60),
            },
        )
    (line,) = lines(tmp_path)
    assert line["bad"] == [None] * 4
    assert line["inner"] == {"bad": None, "5": 5}
    assert line["array"] == [1.0, None]
    assert line["good"] == [0.5, True, None, "text", 2**60]


@pytest.mark.parametrize("key", ["time", "elapsed", "kind"])
def test_its_own_keys_cannot_be_overwritten(tmp_path: Path, key: str) -> None:
    with Metrics(tmp_path) as metrics, pytest.raises(ValueError, match=f"progress: {key}"):
        metrics.write("progress", {key: 1})
    assert lines(tmp_path) == []


def test_elapsed_goes_on_over_restarts_without_the_time_between(tmp_path: Path) -> None:
    with Metrics(tmp_path, clock(0, 10)) as metrics:
        metrics.write("progress", {})
    with Metrics(tmp_path, clock(5000, 5003)) as metrics:
        metrics.write("progress", {})
        assert metrics.elapsed == 13
    assert [line["elapsed"] for line in lines(tmp_path)] == [10, 13]


@pytest.mark.parametrize("size", [1, 9, 10, 50, len(GOOD) - 2])
def test_half_a_line_at_the_end_is_removed_and_said(tmp_path: Path, size: int) -> None:
    (tmp_path / NAME).write_text(GOOD + GOOD[:size])
    with Metrics(tmp_path, clock(0, 1)) as metrics:
        metrics.write("progress", {})
    assert metrics.notes == (f"{tmp_path / NAME}: removed the last line, of which only {size} bytes had been written",)
    assert [line["elapsed"] for line in lines(tmp_path)] == [30.5, 31.5]


def test_zeros_that_a_power_cut_left_are_removed(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(GOOD.encode() + bytes(100))
    with Metrics(tmp_path) as metrics:
        assert "100 bytes" in metrics.notes[0]
    assert (tmp_path / NAME).read_text() == GOOD


def test_a_whole_line_without_its_end_is_kept(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(GOOD[:-1])
    with Metrics(tmp_path, clock(0, 1)) as metrics:
        metrics.write("progress", {})
    assert metrics.notes == ()
    assert [line["elapsed"] for line in lines(tmp_path)] == [30.5, 31.5]


def test_what_is_not_ours_is_kept_and_named(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"somebody's \xff notes")
    with Metrics(tmp_path) as metrics:
        metrics.write("progress", {})
    assert metrics.notes == (f"{tmp_path / NAME}: skipped 1 invalid line: line 1",)
    assert (tmp_path / NAME).read_bytes().startswith(b"somebody's \xff notes\n{")


def test_reading_skips_invalid_lines_and_names_them(tmp_path: Path) -> None:
    path = tmp_path / NAME
    garbage = [
        b"{", b"", b"\xff\xfe", b"[1]", b"3", b"{}", b'{"kind": 3, "elapsed": 1}', b'{"kind": "a", "elapsed": "1"}',
        b'{"kind": "a", "elapsed": -1}', b'{"kind": "a", "elapsed": NaN}', b'{"kind": "a", "elapsed": 1e300}',
        b'{"kind": "a", "elapsed": true}', b"[" * 100_000, b'{"kind": "a", "elapsed": ' + b"9" * 5000 + b"}",
    ]  # fmt: skip
    path.write_bytes(
        GOOD.encode() + b"\n".join(garbage) + b"\n" + GOOD.replace("3}", "NaN}").encode() + GOOD[:20].encode()
    )
    found = read(path)
    assert [line["games"] for line in found.lines] == [3, None]
    assert found.invalid == tuple(range(2, 2 + len(garbage)))
    assert found.complaint(path) == (f"{path}: skipped 14 invalid lines: line 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...")


def test_reading_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / NAME).lines == ()
    (tmp_path / NAME).touch()
    found = read(tmp_path / NAME)
    assert (found.lines, found.invalid, found.complaint(tmp_path)) == ((), (), "")
    with pytest.raises(TengenError, match="cannot be read: Is a directory"):
        read(tmp_path)


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TengenError, match="cannot be written: Not a directory"):
        Metrics(tmp_path / "file" / "run")
    (tmp_path / NAME).mkdir()
    with pytest.raises(TengenError, match="cannot be written: Is a directory"):
        Metrics(tmp_path)


_FULL = """
import resource, sys
from pathlib import Path
from tengen.errors import TengenError
from tengen.run.metrics import Metrics
metrics = Metrics(Path(sys.argv[1]))
metrics.write("progress", {"games": 1})
resource.setrlimit(resource.RLIMIT_FSIZE, (150, resource.RLIM_INFINITY))
for _ in range(2):
    try:
        metrics.write("progress", {"games": 2, "text": "x" * 200})
    except TengenError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
metrics.write("progress", {"games": 3})
"""


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    said = subprocess.run([sys.executable, "-c", _FULL, tmp_path], capture_output=True, text=True, check=True).stdout
    assert said.count("cannot be written: no space left on the disk") == 2
    assert [line["games"] for line in lines(tmp_path)] == [1, 3]


_ENDLESS = """
import sys
from pathlib import Path
from tengen.run.metrics import Metrics
metrics = Metrics(Path(sys.argv[1]))
number = len(Path(metrics.path).read_text().splitlines())
while True:
    metrics.write("progress", {"number": number, "text": "x" * 3000})
    number += 1
    if number % 50 == 0:
        print(number, flush=True)
"""


def test_kill_9_while_writing_loses_nothing(tmp_path: Path) -> None:
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", _ENDLESS, tmp_path], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            promised = int(process.stdout.readline())
            os.kill(process.pid, signal.SIGKILL)
            # What it still said before it died was written as well.
            promised = max([promised, *(int(line) for line in process.stdout if line.endswith("\n"))])
        with Metrics(tmp_path):
            pass
        found = read(tmp_path / NAME)
        assert found.invalid == ()
        assert [line["number"] for line in found.lines] == list(range(len(found.lines)))
        assert len(found.lines) >= promised


def test_tensorboard_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(OptionError, match=r"pip install 'tengen-zero\[tensorboard\]'"):
        TensorBoard(tmp_path)


def test_tensorboard_scalars_have_names_and_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple] = []

    class Writer:
        def __init__(self, folder: str, **options: object) -> None:
            written.append((folder,))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, value, step))

        def close(self) -> None:
            written.append(("closed",))

    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=Writer))
    with TensorBoard(tmp_path) as board:
        board.write("rating", {"elo": np.float32(0.5)})
        board.write("progress", {"losses": {"policy": 1.5, "value": float("nan")}, "steps": 10, "stage": "playing"})
        board.write("rating", {"elo": 7, "anchor": True})
    assert written == [
        (str(tmp_path / "logs" / "tensorboard"),),
        ("rating/elo", 0.5, 0),
        ("progress/losses/policy", 1.5, 10),
        ("progress/steps", 10, 10),
        ("rating/elo", 7, 10),
        ("closed",),
    ]


def test_tensorboard_writes_files(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="an optional library")
    with TensorBoard(tmp_path) as board:
        board.write("progress", {"games": 3, "steps": 1})
    (file,) = (tmp_path / "logs" / "tensorboard").iterdir()
    assert b"progress/games" in file.read_bytes()


def test_time_that_no_line_tells_of(tmp_path: Path) -> None:
    time = [100.0]
    with Metrics(tmp_path, lambda: time[0]) as metrics:
        metrics.advance(7.0)
        metrics.advance(5.0)
        time[0] += 2
        assert metrics.elapsed == 9.0


def test_the_last_line_alone(tmp_path: Path) -> None:
    path = tmp_path / NAME
    assert last(path) is None
    path.write_text("")
    assert last(path) is None
    path.write_text("garbage\n" + GOOD + GOOD.replace("30.5", "31.5") + "more garbage\n" + GOOD[:20])
    found = last(path)
    assert found is not None
    assert found["elapsed"] == 31.5
    path.write_text(GOOD + "x" * 10**6 + "\n" + GOOD.replace("30.5", "32.5"))
    found = last(path)
    assert found is not None
    assert found["elapsed"] == 32.5
    path.write_bytes(b"\0" * 10**6)
    assert last(path) is None


@pytest.mark.parametrize(
    ("sessions", "mode"),
    [
        ([], "fused"),
        ([{}], "fused"),
        ([{"mode": "sync"}, {"mode": "async"}], "async"),
        ([{"parts": ["gate"]}], "async"),
        ([{"mode": "nonsense"}], "fused"),
    ],
)
def test_how_a_run_was_last_started(tmp_path: Path, sessions: list[dict[str, Any]], mode: str) -> None:
    with Metrics(tmp_path) as file:
        for session in sessions:
            file.write("session", session)
        file.write("progress", {"mode": "other"})
    assert last_mode(tmp_path / NAME) == mode
