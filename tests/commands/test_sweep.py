"""`tengen sweep` as a person uses it: real runs, killed, interrupted, gone on with, and used wrongly."""

import json
import signal
from pathlib import Path

import pytest

from tengen.commands import main, make_parser, sweep
from tengen.sweep.folder import SweepFolder
from tests.helpers.patience import CommandProcess
from tests.helpers.tiny_runs import settings

# The same compiled programs serve all trials, and no match is played.
TINY = settings("rating.references=[]", "rating.earlier=0", "train.batch=8", "train.checkpoints.interval=5")


def arguments(base: Path, *more: str, steps: int = 20) -> list[str]:
    sets = [f"--set={text}" for text in TINY if not text.startswith("goal.")]
    words = ["sweep", "tic_tac_toe", "--base", str(base), "--grid", "run.seed=1,2", "--steps", str(steps)]
    return [*words, "--parallel", "2", *sets, *more]


def start(base: Path, *more: str, steps: int = 20) -> CommandProcess:
    return CommandProcess(arguments(base, *more, steps=steps), base.with_suffix(".log"))


def begun(base: Path, trial: str) -> bool:
    """Whether a trial has come so far that it plays."""
    lines = base / "trials" / trial / "metrics.jsonl"
    return lines.exists() and '"session"' in lines.read_text()


@pytest.mark.slow
def test_killed_and_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = tmp_path / "sweep"
    sweep = start(base)
    try:
        sweep.wait_until(lambda: begun(base, "000") and begun(base, "001"))
        assert main(arguments(base)) == 2
        assert f"the sweep in {base}: is being used by process {sweep.process.pid}" in capsys.readouterr().err
    finally:
        sweep.end(signal.SIGKILL)
    capsys.readouterr()
    assert main(arguments(base, "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(each["trial"] for each in found["trials"]) == ["000", "001"]
    for each in found["trials"]:
        assert each["status"] == "done"
        assert each["values"]["progress.steps"] == 20
        assert each["score"]["value"] == each["values"]["progress.figures.loss"] > 0
    losses = [each["score"]["value"] for each in found["trials"]]
    assert losses == sorted(losses)
    assert len(set(losses)) == 2  # seeds of their own

    logs = {path.name: path.read_bytes() for path in (base / "logs").iterdir()}
    assert main(["sweep", "--base", str(base)]) == 0
    shown = capsys.readouterr().out
    assert f"best:      trial {found['trials'][0]['trial']}" in shown
    assert "loss by seed" in shown
    assert {path.name: path.read_bytes() for path in (base / "logs").iterdir()} == logs  # nothing ran again
    assert (base / "table.txt").read_text().startswith("trial")
    assert "<circle" in (base / "plot.svg").read_text()
    assert main(["sweep", "--base", str(base), "--show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert main(arguments(base, steps=30)) == 2
    assert "budget: 20 -> 30" in capsys.readouterr().err


@pytest.mark.slow
def test_a_trial_that_cannot_run_and_ctrl_c(tmp_path: Path) -> None:
    base = tmp_path / "sweep"
    (base / "trials").mkdir(parents=True)
    (base / "trials" / "000").write_text("in the way")
    sweep = start(base, steps=1_000_000)
    try:
        sweep.wait_until(lambda: begun(base, "001") and (base / "results" / "000-0.json").exists())
    finally:
        code, text = sweep.end(signal.SIGINT)
    assert code == 130
    assert "trial 000 failed: " in text
    assert "expected a folder" in text
    assert "trial 001 stopped, and will go on from there" in text
    assert f"stopped by Ctrl-C; to go on: tengen sweep --base {base}" in text
    assert "Traceback" not in text
    (job, _) = SweepFolder(base).rounds()[0].jobs
    result = SweepFolder(base).result(job, 0)
    assert result is not None
    assert result.status == "failed"
    assert "is a file or lies below one" in result.why


def test_the_command_to_go_on_with_names_the_cluster() -> None:
    given = ["--on", "ray", "--address", "head:6379", "--trial-gpus", "0.25"]
    assert sweep._where(make_parser().parse_args(["sweep", "--base", "x", *given])) == " " + " ".join(given)
    assert sweep._where(make_parser().parse_args(["sweep", "--base", "x"])) == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tic_tac_toe"], "nothing to vary"),
        (["tic_tac_toe", "--grid", "train.lrr=1"], "train.lrr: unknown key"),
        (["tic_tac_toe", "--grid", "train.batch=-1"], "train.batch: expected a whole number from 1 to 1000000, got -1"),
        (["nonsense", "--grid", "train.batch=1"], "nonsense"),
        ([], "give a CONFIG to begin a sweep, or --base SWEEP to go on with one"),
        (["--base", "none"], "none: no sweep is there"),
        (["--base", "none", "--show"], "none: no sweep is there"),
        (["--base", "none", "--grid", "a=1"], "--grid: to go on with a sweep leave it out"),
        (["tic_tac_toe", "--grid", "train.batch=1", "--parallel", "0"], "--parallel: expected a whole number"),
        (["tic_tac_toe", "--grid", "train.batch=1", "--address", "auto"], "--address: is only for --on ray"),
        (["tic_tac_toe", "--grid", "train.batch=1", "--trial-gpus", "0.5"], "--trial-gpus: is only for --on ray"),
        (
            ["tic_tac_toe", "--grid", "train.batch=1", "--on", "ray", "--address", "127.0.0.1:1"],
            "--address 127.0.0.1:1: no cluster answers there",
        ),
        (["tic_tac_toe", "--show"], "--show: the sweep's folder is enough"),
    ],
)
def test_used_wrongly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *words]) == 2
    assert said in capsys.readouterr().err
    assert not [path for path in Path().iterdir() if path.name == "sweeps"]
