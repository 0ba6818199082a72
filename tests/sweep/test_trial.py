"""One trial as a process: it ends, fails, is stopped; and what its folder tells. The run itself is made up here."""

import itertools
import json
import os
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tengen import schema
from tengen.files import lock
from tengen.sweep import trial
from tengen.sweep.trial import MachineShare, TrialResult, TrialSpec, measured, run_trial
from tests.helpers.patience import LONG

PROGRESS = '{"time": "t", "elapsed": 1.0, "kind": "progress", '


@pytest.fixture
def spec(tmp_path: Path) -> TrialSpec:
    return TrialSpec("003", "config.yaml", ("goal.steps=5",), str(tmp_path / "run"), str(tmp_path / "logs" / "003.log"))


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let trials be this Python text."""

    def be(text: str) -> None:
        monkeypatch.setattr(trial, "command", lambda spec: [sys.executable, "-c", text, spec.folder])

    return be


def metrics(folder: Path, *lines: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_the_command_is_an_ordinary_run(spec: TrialSpec) -> None:
    assert trial.command(spec)[1:] == [
        "-m",
        "tengen",
        "run",
        "config.yaml",
        "--base",
        spec.folder,
        "--set=goal.steps=5",
    ]


def test_everything_is_json(spec: TrialSpec) -> None:
    assert schema.from_json(TrialSpec, json.dumps(asdict(spec))) == spec
    result = TrialResult("failed", {"a": 1.0, "b": None}, (("n", "random", 1, 2, 3),), "why", ("x",))
    assert schema.from_json(TrialResult, json.dumps(asdict(result))) == result


def test_what_a_run_measured(tmp_path: Path) -> None:
    folder = metrics(
        tmp_path / "run",
        PROGRESS + '"loss": 3.0, "stage": "learning", "figures": {"value_loss": 1.5, "old": 1}}',
        '{"time": "t", "elapsed": 2.0, "kind": "rating", "elo": 12.5, "network": "n"}',
        "garbage",
        PROGRESS + '"loss": 2.0, "figures": {"value_loss": 0.5}, "flag": true}',
    )
    (folder / "ratings").mkdir()
    (folder / "ratings" / "results.jsonl").write_text(
        '{"schema": 1, "a": "n", "b": "random", "wins": 3, "draws": 0, "losses": 1}\n'
    )
    found = measured(folder)
    assert found.values == {
        "progress.elapsed": 1.0,
        "progress.loss": 2.0,
        "progress.figures.value_loss": 0.5,
        "progress.figures.old": 1,
        "rating.elapsed": 2.0,
        "rating.elo": 12.5,
    }
    assert found.matches == (("n", "random", 3, 0, 1),)
    assert measured(tmp_path / "none") == TrialResult("done")


def test_a_loss_that_is_nan_is_no_number_but_one_not_measured_again_stays(tmp_path: Path) -> None:
    learned = PROGRESS + '"loss": 3.0, "figures": {"loss": 3.0}}'
    restarted = PROGRESS + '"loss": null, "figures": {}}'
    nan = PROGRESS + '"loss": null, "figures": {"loss": null}}'
    assert measured(metrics(tmp_path / "a", learned, restarted)).values["progress.loss"] == 3.0
    found = measured(metrics(tmp_path / "b", learned, nan)).values
    assert (found["progress.loss"], found["progress.figures.loss"]) == (None, None)
    assert measured(metrics(tmp_path / "c", restarted)).values["progress.loss"] is None


def test_done(spec: TrialSpec, program: Any) -> None:
    line = PROGRESS + '"loss": 2.0}'
    program(f"import sys; print('hello'); open(sys.argv[1] + '/metrics.jsonl', 'w').write({line!r} + chr(10))")
    assert run_trial(spec).values["progress.loss"] == 2.0
    assert run_trial(spec).status == "done"
    log = Path(spec.log).read_text()
    assert log.count("hello") == 2
    assert log.count('UTC: ["goal.steps=5"]') == 2


def test_failed(spec: TrialSpec, program: Any) -> None:
    program("print('before'); raise SystemExit(3)")
    run_trial(spec)
    program("import sys; sys.stderr.write('Traceback\\n  \\x1b[1mValueError: boom\\n'); raise SystemExit(1)")
    found = run_trial(spec)
    assert (found.status, found.why) == ("failed", "ended with code 1:    [1mValueError: boom")
    assert found.lines == ("Traceback", "   [1mValueError: boom")  # of this start alone
    program("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert run_trial(spec).why == "was ended by SIGKILL"


def test_a_folder_that_cannot_be_or_tells_nonsense(spec: TrialSpec, program: Any, tmp_path: Path) -> None:
    program(
        "import os, sys; os.makedirs(sys.argv[1] + '/ratings')\n"
        "open(sys.argv[1] + '/ratings/results.jsonl', 'w').write('x')"
    )
    found = run_trial(spec)
    assert found.status == "failed"
    assert "results.jsonl, line 1: not the result of a match" in found.why
    (tmp_path / "file").write_text("")
    broken = TrialSpec("0", "c", (), str(tmp_path / "file" / "run"), spec.log)
    assert "is a file or lies below one" in run_trial(broken).why


def test_stopped_politely(spec: TrialSpec, program: Any) -> None:
    program(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "open(sys.argv[1] + '/ready', 'w').close()\n"
        "time.sleep(3600)"
    )
    found = run_trial(spec, stop=lambda: (Path(spec.folder) / "ready").exists())
    assert found.status == "stopped"


def test_one_that_will_not_stop_is_killed(spec: TrialSpec, program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "GRACE", 0.2)
    program(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "open(sys.argv[1] + '/ready', 'w').close()\n"
        "time.sleep(3600)"
    )
    found = run_trial(spec, stop=lambda: (Path(spec.folder) / "ready").exists())
    assert found.status == "stopped"


def test_killed_by_somebody_else_is_a_failure(spec: TrialSpec, program: Any) -> None:
    program("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert run_trial(spec).why == "was ended by SIGTERM"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_it_has_its_share_and_knows_its_parent(spec: TrialSpec, program: Any) -> None:
    core = min(os.sched_getaffinity(0))
    program(
        "import os, time\n"
        f"end = time.monotonic() + {LONG}\n"
        "while len(os.sched_getaffinity(0)) > 1 and time.monotonic() < end: time.sleep(0.01)\n"
        "print(os.sched_getaffinity(0), os.environ['X'], os.environ['TENGEN_PARENT'])"
    )
    run_trial(spec, MachineShare((core,), {"X": "y"}))
    assert f"{{{core}}} y {os.getpid()}" in Path(spec.log).read_text()


def test_a_folder_that_is_still_in_use_is_waited_for(
    spec: TrialSpec, program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("")
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.locked(Path(spec.folder)):
            held.set()
            go.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    assert run_trial(spec, stop=lambda: True).status == "stopped"
    asked = itertools.count()
    monkeypatch.setattr(trial, "PATIENCE", LONG)
    assert run_trial(spec, stop=lambda: bool(next(asked) == 2 and go.set())).status == "done"  # it looks again
    holder.join()
    monkeypatch.setattr(trial, "PATIENCE", 0.0)
    with lock.locked(Path(spec.folder)):
        assert "is being used by" in run_trial(spec).why
