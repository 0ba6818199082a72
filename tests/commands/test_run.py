"""`tengen run` as a person uses it: killed, interrupted, started again, and used wrongly."""

import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from tengen import nets
from tengen.commands import main
from tengen.config import load
from tengen.data.store.store import Store
from tengen.files import lock
from tengen.loop.launching import RunRequest, strength_words
from tengen.match.ratings import fit
from tengen.match.results import MatchResult
from tengen.monitor.strength import RatedStrength
from tengen.run import metrics
from tengen.run.goals import RunCounts
from tests.helpers.patience import CommandProcess
from tests.helpers.tiny_runs import settings


def arguments(base: Path, *overrides: str) -> list[str]:
    sets = [word for text in settings(*overrides) for word in ("--set", text)]
    return ["run", "tic_tac_toe", "--base", str(base), *sets]


def start(base: Path, *overrides: str) -> CommandProcess:
    return CommandProcess(arguments(base, *overrides), base.with_suffix(".log"))


def has_checkpoint(base: Path) -> bool:
    return any(path.name.removeprefix("step_").isdigit() for path in (base / "train" / "main").glob("step_*"))


def rows(base: Path) -> int:
    return Store(base / "selfplay").listing().rows


def test_a_run_of_another_process_is_found_before_the_device_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("tengen.jax_setup.device_problem", lambda: asked.append("device"))
    with lock.locked(tmp_path):
        assert main(arguments(tmp_path)) == 2
    assert f"{tmp_path}: is being used by process" in capsys.readouterr().err
    assert not asked, "the other process has the memory of the device"


@pytest.mark.slow
def test_killed_interrupted_and_started_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, endless = tmp_path / "run", ("goal.rows=1000000", "rating.references=[]", "rating.earlier=0")
    run = start(base, *endless)
    try:
        run.wait_until(lambda: (base / ".lock").exists() and (base / ".lock").read_text() != "")
        assert main(arguments(base, *endless)) == 2
        assert f"is being used by process {run.process.pid}" in capsys.readouterr().err
        run.wait_until(lambda: has_checkpoint(base) and rows(base) > 300)
    finally:
        run.end(signal.SIGKILL)
    killed = rows(base)

    run = start(base, *endless)
    try:
        run.wait_until(lambda: rows(base) > killed + 100)
    finally:
        code, text = run.end(signal.SIGINT)
    assert code == 130
    assert "going on from step" in text
    assert "stopping: everything is being written" in text
    assert "(stopped by Ctrl-C)" in text
    assert text.splitlines()[-1] == f"go on:       tengen run {base}"
    assert "Traceback" not in text
    last = metrics.read(base / metrics.NAME).lines[-1]
    assert last["rows"] == rows(base) > killed

    # A goal may change; one that is reached is not played for. The run's directory is enough to name it.
    assert main(["run", str(base), "--set", "goal.rows=100"]) == 0
    out = capsys.readouterr().out
    assert "nothing to do: 100 rows are played" in out
    assert f"the network:   {base}/models/tic_tac_toe-main-s" in out
    assert out.splitlines()[-1] == f"train further: tengen run {base} --set goal.rows={last['rows'] + 100}"
    assert "goal.rows: 1000000 -> 100" in (base / "config.yaml").read_text()
    assert rows(base) == last["rows"]


@pytest.mark.slow
def test_what_to_type_next_has_something_to_do(tmp_path: Path) -> None:
    """Also when Ctrl-C came while a run ended whose time was over."""
    request = RunRequest(load("tic_tac_toe", ["goal.minutes=2"]), tmp_path)
    assert request.going_on(RunCounts(seconds=119.0), 5) == {"go on": f"tengen run {tmp_path}"}
    further = {"train further": f"tengen run {tmp_path} --set goal.minutes=4"}
    assert request.going_on(RunCounts(seconds=120.0), 5) == further


_SPEC = {name: asdict(nets.spec("b2c16"))[name] for name in ("tower", "layers", "activation")}


def _told(base: Path, *settings: str) -> str:
    """The last words of a run about its strength."""
    results = [MatchResult("new", "random", 9, 0, 1)]
    loop = SimpleNamespace(
        config=load("tic_tac_toe", settings),
        base=base,
        counts=RunCounts(rows=10**6, seconds=60.0),
        trainer=SimpleNamespace(step=5),
        rater=SimpleNamespace(rated=lambda: RatedStrength(fit(results, "random"), results, [(9.0, "new")])),
    )
    return strength_words(loop)


@pytest.mark.parametrize(
    ("name", "larger"), [("b2c16", "b3c32"), ("b190c16", None)], ids=["larger", "larger than networks may be"]
)
def test_a_larger_network_is_that_of_this_run_and_possible(tmp_path: Path, name: str, larger: str | None) -> None:
    """What was --set stands in the run's configuration alone."""
    told = _told(tmp_path, f"net.name={name}")
    command = f"tengen run {tmp_path} --base {tmp_path}-{larger} --set net.name={larger}"
    assert (f"a larger network, which needs more time: {command}" in told) == (larger is not None)
    assert ("a larger network" in told) == (larger is not None)


@pytest.mark.parametrize(
    ("grown", "settings", "larger"),
    [
        (0, ["net.name=null", f"net.spec={json.dumps(_SPEC)}"], "net.name=b3c32 --set net.spec=null"),
        (0, ['net.growth=["0.5:b3c32"]'], "net.name=b3c32 --set 'net.growth=[]'"),
        (1, ['net.growth=["0.5:b3c32"]'], "net.name=b5c56 --set 'net.growth=[]'"),
    ],
)
def test_a_larger_network_than_one_in_detail_or_one_that_grows(
    tmp_path: Path, grown: int, settings: list[str], larger: str
) -> None:
    (tmp_path / "train" / "main" / f"grown-{grown}" / "step_000000010").mkdir(parents=True)
    assert f"--set {larger}\n" in f"{_told(tmp_path, *settings)}\n"


@pytest.mark.parametrize(
    ("config", "override", "problem"),
    [
        ("connect_four", "run.seed=1", "game.name: tic_tac_toe -> connect_four"),
        ("tic_tac_toe", "net.name=b2c8", "net.name: b2c16 -> b2c8"),
    ],
)
def test_a_run_of_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str, override: str, problem: str
) -> None:
    from tengen.run.config_file import write

    path = write(load("tic_tac_toe"), tmp_path, [])
    before = path.read_bytes()
    assert main(["run", config, "--base", str(tmp_path), "--set", override]) == 2
    err = capsys.readouterr().err
    assert any(line.startswith(f"{problem} (cannot change: ") for line in err.splitlines())
    assert err.endswith(
        f"{path}: this run has other settings; keep to them (CONFIG may be this file), or choose another --base\n"
    )
    assert path.read_bytes() == before


def test_no_place_for_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("precious")
    assert main(["run", "tic_tac_toe", "--base", str(tmp_path / "file")]) == 2
    assert "is a file or lies below one, expected a folder" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "precious"


def test_tensorboard_without_its_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert main([*arguments(tmp_path / "run"), "--tensorboard"]) == 2
    assert "pip install 'tengen-zero[tensorboard]'" in capsys.readouterr().err
    assert set(os.listdir(tmp_path / "run")) - {"code"} == {".lock", "config.yaml"}  # code: of a changed checkout


def test_a_device_that_is_too_small(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    from tengen.loop import components, fused

    monkeypatch.setattr(components, "device_memory", lambda: 1000)
    assert main(arguments(tmp_path / "a")) == 2
    assert "lower selfplay.games, search.simulations or data.ring_rows" in capsys.readouterr().err

    def fail(*_: object) -> None:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes.\nmore")

    monkeypatch.setattr(fused, "Components", fail)
    assert main(arguments(tmp_path / "b")) == 2
    assert "the device has too little memory (RESOURCE_EXHAUSTED: Out of memory" in capsys.readouterr().err
