"""`tengen run --mode async` as a person uses it; tiny programs stand in for the parts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.commands import main
from tengen.files import lock
from tengen.run import locks, metrics
from tests.helpers.patience import LONG, eventually
from tests.helpers.tiny_runs import settings
from tests.loop.test_asynchronous import ENDLESS, add_rows


def arguments(base: Path, *words: str, goal: str = "goal.rows=20") -> list[str]:
    sets = [word for text in settings(goal) for word in ("--set", text)]
    return ["run", "tic_tac_toe", "--mode", "async", "--base", str(base), *sets, *words]


def test_a_goal_and_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_rows(tmp_path, 20)
    assert main(arguments(tmp_path)) == 0
    out = capsys.readouterr().out
    assert "nothing to do: 20 rows are played" in out
    assert "tic_tac_toe: 20 games, 20 rows, 0 steps in " in out
    assert f"what there is: tengen status {tmp_path}" in out
    last = out.splitlines()[-1]
    assert last == f"train further: tengen run {tmp_path} --mode async --set goal.rows=40"
    assert "no rating: no network was accepted yet\n" in out
    assert (tmp_path / "config.yaml").exists()


def test_the_directory_of_a_run_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_rows(tmp_path, 20)
    assert main(arguments(tmp_path)) == 0
    with metrics.Metrics(tmp_path) as file:
        file.write("session", {"mode": "async", "parts": ["gate"]})
    capsys.readouterr()
    assert main(["run", str(tmp_path)]) == 0, "in the mode that it was run in"
    out = capsys.readouterr().out
    assert "nothing to do: 20 rows are played" in out
    assert out.splitlines()[-1] == f"train further: tengen run {tmp_path} --mode async --set goal.rows=40"
    assert main(["run", str(tmp_path), "--set", "net.name=b2c8"]) == 2
    assert "net.name: b1c8 -> b2c8" in capsys.readouterr().err
    assert main(["run", str(tmp_path), "--mode", "fused", "--parts", "gate"]) == 2
    assert "--parts: only --mode async" in capsys.readouterr().err


def test_networks_that_nobody_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_rows(tmp_path, 20)
    for folder, name in (("models", "c-main-s1-d1"), ("candidates", "c-main-s2-d1"), ("candidates", "c-main-s3-d1")):
        (tmp_path / folder / name).mkdir(parents=True)
        (tmp_path / folder / name / "model.safetensors").write_bytes(b"")
    assert main(arguments(tmp_path)) == 0
    out = capsys.readouterr().out
    why = "the first network is accepted without a match, and no match has ended since; 2 networks wait for the gate"
    assert f"no rating: {why}\n" in out
    assert f"judge the rest:  tengen gate {tmp_path} --once\n" in out
    assert f"play the newest: tengen play {tmp_path}/candidates/c-main-s3-d1\n" in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--parts", "selfplay,shufle"], "--parts shufle: unknown part, did you mean shuffle?"),
        (["--parts", ""], "--parts: expected some of selfplay, "),
        (["--mode", "fused", "--parts", "gate"], "--parts: only --mode async has parts to choose from"),
        (["--mode", "asinc"], '"asinc": unknown mode, did you mean async?'),
    ],
)
def test_used_wrongly(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], complaint: str) -> None:
    assert main(arguments(tmp_path / "run", *words)) == 2
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_one_driver_leads_and_others_may_join(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_rows(tmp_path, 20)
    with locks.taking_part(tmp_path, "async"):
        assert main(arguments(tmp_path)) == 2
        assert "async: is being used by process" in capsys.readouterr().err
        assert main(arguments(tmp_path, "--parts", "selfplay")) == 0
        assert "nothing to do: 20 rows are played" in capsys.readouterr().out
    assert not (tmp_path / "metrics.jsonl").exists()
    with lock.locked(tmp_path):  # as the fused loop has it
        assert main(arguments(tmp_path, "--parts", "selfplay")) == 2
        assert "is being used by process" in capsys.readouterr().err


PROGRAM = """
import sys
from tengen.commands import main
from tengen.loop import asynchronous
make = asynchronous.Asynchronous.__init__
command = lambda kind, base: [sys.executable, "-c", {endless!r}]
def init(self, *args, **more):
    make(self, *args, **more, command=command)
asynchronous.Asynchronous.__init__ = init
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c(tmp_path: Path) -> None:
    words = arguments(tmp_path, "--parts", "gate,selfplay", goal="goal.rows=1000")
    log = tmp_path.with_suffix(".log")
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(endless=ENDLESS), *words], stdout=file, stderr=file
        )
    try:
        eventually(lambda: "gate: starting" in log.read_text() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=LONG) == 130, log.read_text()
    finally:
        process.kill()
        process.wait()
    text = log.read_text()
    order = [text.index(words) for words in ("stopping: ", "ending selfplay", "ending gate", "(stopped by Ctrl-C)")]
    assert order == sorted(order)
    assert "Traceback" not in text
    again = text.splitlines()[-1]
    assert again == f"go on:         tengen run {tmp_path} --mode async --parts gate,selfplay"
    assert sorted(os.listdir(tmp_path / "logs")) == ["gate.log", "selfplay.log"]
