"""A training of roles as a run: what it leaves behind, and going on where it was."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tengen.commands import main
from tengen.config.loading import load_any
from tengen.config.settings.match import MatchSettings
from tengen.config.trainers import TrainerConfig
from tengen.errors import TengenError
from tengen.importing import UserCodeError
from tengen.loop.roles import RoleRun, make, results
from tengen.match import players
from tengen.match.device_match import play
from tengen.roles.rules import load_player
from tengen.run import metrics, networks
from tengen.run.config_file import change, write
from tengen.schema import to_dict
from tests.helpers.tiny_runs import Listener, after, never

TINY = (
    "game.max_points=2",
    "game.max_value=4",
    "agent.games=4",
    "agent.batch=8",
    "agent.net.name=mlp1x8",
    "agent.buffer.capacity=64",
    "agent.first_samples=16",
    "agent.roll_out_samples=8",
    "agent.roll_out_interval=3",
    "evaluation.interval=10",
    "evaluation.games=4",
    "checkpoints.interval=15",
    "goal.steps=20",
)


def ran(base: Path, *overrides: str, stop: Any = never) -> RoleRun:
    """A run that went on until its goal or `stop`."""
    settings = {text.partition("=")[0]: text for text in (*TINY, *overrides)}
    with RoleRun(load_any("dqn_hironaka2", settings.values()), base, Listener()) as run:
        run.prepare()
        run.run(stop)
    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RoleRun:
    return ran(tmp_path_factory.mktemp("roles"))


@pytest.mark.slow
def test_what_a_run_leaves_behind(whole: RoleRun) -> None:
    assert whole.reason == "20 steps are learned"
    lines = metrics.read(whole.base / metrics.NAME).lines
    kinds = [line["kind"] for line in lines]
    assert kinds[0] == "session"
    assert [line["steps"] for line in lines if line["kind"] == "evaluation"] == [10, 20]
    last = [line for line in lines if line["kind"] == "progress"][-1]
    assert (last["steps"], last["rows"], last["games"]) == (20, whole.trainer.samples, whole.trainer.games)
    assert last["figures"]["loss"] > 0
    names = sorted(path.name for path in (whole.base / "models").iterdir())
    played = whole.trainer.samples
    assert [name.partition("-d")[0] for name in names] == ["dqn_hironaka2-agent-s160", "dqn_hironaka2-agent-s80"]
    found = networks.find(whole.base)
    assert found.name == f"dqn_hironaka2-agent-s160-d{played}"
    assert found.saved.info["role"] == "agent"
    shown: Any = whole._display
    assert any(text.startswith("step 10: agent_vs_host -") for text in shown.said)
    assert results({"a": 0.5, "a_length": 3.0, "a_lost": 0.1}) == ["a 0.50 (3.0 moves)"]


@pytest.mark.slow
def test_settings_that_change_while_it_goes_on(tmp_path: Path) -> None:
    def stop() -> bool:  # asked before each turn
        if run.trainer.step and not run.config.agent.others_er:
            change(tmp_path, ["agent.optimizer.learning_rate=0.5", "agent.others_er=0.25", "evaluation.interval=5"])
        return False

    config = load_any("dqn_hironaka2", TINY)
    write(config, tmp_path, [])
    with RoleRun(config, tmp_path, Listener()) as run:
        run.prepare()
        run.run(stop)
    role = run.trainer.roles["agent"]
    assert float(role.lr_scheduler(0)) == pytest.approx(0.5)
    assert role.settings.others_er == 0.25
    assert run.config.evaluation.interval == 10, "at the next start"


def test_its_status(whole: RoleRun, capsys: pytest.CaptureFixture[str]) -> None:
    (whole.base / "config.yaml").touch()
    assert main(["status", str(whole.base)]) == 0
    told = capsys.readouterr().out
    assert f"dqn_hironaka2-agent-s160-d{whole.trainer.samples}" in told
    assert f"played:   {whole.trainer.samples:,} rows, {whole.trainer.games:,} games\n" in told
    assert "results:  step 20: agent_vs_host -" in told
    last = metrics.last(whole.base / metrics.NAME, "progress")
    assert last is not None
    assert last["evaluations_per_second"] is None


@pytest.mark.slow
def test_its_role_is_known(whole: RoleRun, capsys: pytest.CaptureFixture[str]) -> None:
    setting = ["--dimension", "2", "--points", "2", "--max-value", "4", "--games", "10"]
    assert main(["rho", "random", "--agents", str(whole.base), *setting]) == 0
    assert "dqn_hironaka2-agent-s160" in capsys.readouterr().out
    assert main(["rho", str(whole.base), *setting]) == 2
    assert "a run without a network that plays the host" in capsys.readouterr().err
    assert main(["rho", str(whole.networks[0]), *setting]) == 2
    assert "a network that learned to play the agent, not the host" in capsys.readouterr().err
    assert main(["rho", str(whole.base), "--select", *setting]) == 0
    told = capsys.readouterr().out
    assert "best agent: " in told
    assert "best host: " not in told


@pytest.mark.slow
def test_its_network_plays_matches(whole: RoleRun) -> None:
    game = whole.trainer.game
    player = load_player(whole.networks[0], game)
    match = play(game, player, players.random(game), jax.random.key(0), MatchSettings(games=4, opening_moves=0))
    assert match.finished.all()
    assert not match.forfeits.any()


def test_stopped_and_resumed(whole: RoleRun, tmp_path: Path) -> None:
    """The same networks, buffers and games as in one go."""
    stopped = ran(tmp_path, stop=after(1))
    assert 0 < stopped.trainer.step < 20
    resumed = ran(tmp_path)
    assert resumed.trainer.step == 20
    shown: Any = resumed._display
    assert f"going on from step {stopped.trainer.step}" in shown.said
    jax.tree.map(np.testing.assert_array_equal, resumed.trainer.checkpoint().state, whole.trainer.checkpoint().state)
    assert resumed.counts.sessions == 2
    again = ran(tmp_path)
    assert again.reason == "20 steps are learned"
    assert again.trainer.step == 20


@pytest.mark.slow
def test_the_end_is_evaluated(tmp_path: Path) -> None:
    run = ran(tmp_path, "goal.steps=13")
    lines = metrics.read(tmp_path / metrics.NAME).lines
    assert [line["steps"] for line in lines if line["kind"] == "evaluation"] == [10, 13]
    assert len(run.networks) == 1


def test_damaged_checkpoints_are_not_forgotten(whole: RoleRun, tmp_path: Path) -> None:
    base = tmp_path / "run"
    (base / "train" / "main" / "step_000000005.corrupt").mkdir(parents=True)
    with pytest.raises(TengenError, match="no good checkpoint is left"):
        ran(base)


def test_commands_that_need_self_play(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["run", "dqn_hironaka2", "--mode", "sync", "--base", str(tmp_path)]) == 2
    assert "--mode sync: a training of roles (dqn_hironaka2) runs in one process" in capsys.readouterr().err
    assert main(["selfplay", "dqn_hironaka2", "--base", str(tmp_path)]) == 2
    assert "expected a configuration of self-play" in capsys.readouterr().err
    assert main(["config", "check", "dqn_hironaka2"]) == 0
    assert "; dqn for agent, mlp2x128, 256 games at once)" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_trainer_of_somebody_else() -> None:
    class Other:
        trainer = "mine"

    with pytest.raises(TengenError, match="mine is not one that `tengen run` knows"):
        make(Other())  # type: ignore[arg-type]


BREAKS = """
from pathlib import Path

from tengen import config, train


class Waning:
    asked = 0

    def __call__(self, step):
        self.asked += 1
        return 1 / self.asked

    def state_dict(self):
        return {"asked": self.asked}

    def load_state_dict(self, state):
        self.asked = state["asked"]


class Breaking(train.Trainer[config.TrainerConfig]):
    def __init__(self, config):
        super().__init__(config)
        self.schedule = Waning()

    def _train(self, steps):
        for _ in range(steps):
            if self.step == 7 and not Path("repaired").exists():
                raise KeyError("seven")
            self.schedule(self.step)
            self.advance()
        return {"asked": self.schedule.asked}

    def evaluate(self):
        return {"own_figure": 0.5}
"""


def test_a_trainer_that_wants_more_than_its_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wanting_trainer.py").write_text(
        "class Wanting:\n    def __init__(self, config, more):\n        pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    wanted = replace(load_any("dqn_hironaka2"), trainer="wanting_trainer:Wanting")
    other = TrainerConfig(**{field.name: getattr(wanted, field.name) for field in fields(TrainerConfig)})
    with pytest.raises(UserCodeError, match=r"missing a required argument: 'more' \(.*wanting_trainer.py, line 2\)"):
        make(other)


def test_a_trainer_that_does_not_begin_as_trainers_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from tengen import train\nclass Bare(train.Trainer):\n    def __init__(self, config):\n        pass\n"
    code += "    def _train(self, steps):\n        pass\n"
    (tmp_path / "bare_trainer.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    wanted = replace(load_any("dqn_hironaka2"), trainer="bare_trainer:Bare")
    other = TrainerConfig(**{field.name: getattr(wanted, field.name) for field in fields(TrainerConfig)})
    with pytest.raises(
        UserCodeError, match=r"does not call super\(\).__init__\(config\) \(.*bare_trainer.py, line 3\)"
    ):
        make(other)


@pytest.mark.parametrize("mistake", ['raise KeyError("seven")', "raise SystemExit(7)"])
def test_a_trainer_of_ones_own_breaks_and_goes_on(
    mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost: all steps before the mistake are saved, with the state of the trainer's schedule."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "breaking_trainer", raising=False)
    (tmp_path / "breaking_trainer.py").write_text(BREAKS.replace('raise KeyError("seven")', mistake))
    data = to_dict(load_any("dqn_hironaka2", TINY))
    for key in ("dueling", "double", "target", "batch", "huber", "first_samples", "roll_out_samples"):
        del data["agent"][key]
    del data["agent"]["roll_out_interval"]
    data |= {"trainer": "breaking_trainer:Breaking"}
    (tmp_path / "mine.yaml").write_text(json.dumps(data))
    command = ["run", "mine.yaml", "--base", "run", "--set", "goal.steps=9"]
    assert main(command) == 2
    told = capsys.readouterr().err
    kind = "SystemExit: 7" if "Exit" in mistake else "KeyError: 'seven'"
    assert f"breaking_trainer:Breaking: {kind} (breaking_trainer.py, line 29, in _train)" in told
    assert "up to step 7 is saved; when the code is repaired, the same command goes on" in told
    (tmp_path / "repaired").touch()
    assert main(command) == 0
    last = metrics.last(tmp_path / "run" / metrics.NAME, "progress")
    assert last is not None
    assert (last["steps"], last["figures"]["asked"]) == (9, 9)
    capsys.readouterr()
    assert main(["status", "run"]) == 0
    assert "step 9: own_figure 0.50" in capsys.readouterr().out


@pytest.mark.slow
def test_killed_and_interrupted(whole: RoleRun, tmp_path: Path) -> None:
    """SIGKILL in the middle, then Ctrl-C, then to the end."""
    base = tmp_path / "run"
    goal = 400
    words = [sys.executable, "-m", "tengen", "run", "dqn_hironaka2", "--base", str(base)]
    for text in (*TINY[:-2], f"goal.steps={goal}", "checkpoints.interval=20"):
        words += ["--set", text]
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    for number in (signal.SIGKILL, signal.SIGINT):
        process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        _wait_for_checkpoint(base, process)
        process.send_signal(number)
        process.communicate(timeout=300)
        assert process.returncode in (-9, 130, 0)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=True)
    assert f"{goal} steps are learned" in done.stdout
    lines = metrics.read(base / metrics.NAME).lines
    assert json.dumps(lines[-1])
    assert max(line["steps"] for line in lines if line["kind"] == "progress") == goal


def _wait_for_checkpoint(base: Path, process: subprocess.Popen[bytes]) -> None:
    """Until there is one more than at the call."""
    folder = base / "train" / "main"
    before = set(folder.glob("step_*"))
    limit = time.monotonic() + 300
    while process.poll() is None and set(folder.glob("step_*[0-9]")) <= before:
        assert time.monotonic() < limit
        time.sleep(0.05)
