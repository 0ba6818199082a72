"""Configurations of trainers of roles are read as carefully as others."""

from pathlib import Path
from typing import Any

import pytest

from tengen.config import load, render
from tengen.config.loading import load_any, load_as
from tengen.config.problems import ConfigError
from tengen.config.sections import Config
from tengen.config.source import shipped
from tengen.config.trainers import DQNConfig, TrainerConfig
from tengen.run.directory import write
from tests.helpers import paths

NAMES = [name for name in shipped() if name.startswith("dqn_")]


def problems(*overrides: str, name: str = "dqn_hironaka2") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_any(name, overrides)
    return list(caught.value.problems)


def test_those_that_ship() -> None:
    assert NAMES == ["dqn_hironaka2", "dqn_hironaka3", "dqn_tic_tac_toe"]
    for name in NAMES:
        config = load_any(name)
        assert isinstance(config, DQNConfig)
        path = paths.ROOT / "configs" / f"{name}.yaml"
        assert render(config) == path.read_text()
    assert isinstance(load_any("go9"), Config)


def test_every_key_must_be_there(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = render(load_any("dqn_tic_tac_toe"))
    keys = [
        line.split(":")[0].strip() for line in text.splitlines() if ":" in line and not line.strip().startswith("#")
    ]
    for key in sorted(set(keys) - {"trainer"}):
        lines = text.splitlines()
        index = next(n for n, line in enumerate(lines) if line.strip().startswith(f"{key}:"))
        depth = len(lines[index]) - len(lines[index].lstrip())
        end = index + 1
        while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > depth):
            end += 1
        file.write_text("\n".join(lines[:index] + lines[end:]) + "\n")
        with pytest.raises(ConfigError, match=rf"(^|\.){key}: missing|name: missing"):
            load_any(file)


def test_problems_have_a_place() -> None:
    assert problems("agent.gama=1", "agent.batch=many") == [
        "agent.gama: unknown key, did you mean gamma? (--set agent.gama=1)",
        'agent.batch: expected a whole number from 1 to 1000000, got "many" (--set agent.batch=many)',
    ]
    assert problems("trainer=dqm") == ["trainer: unknown trainer, did you mean dqn? (--set trainer=dqm)"]
    (problem,) = problems("agent.net.name=b6c96")
    assert problem.startswith("agent.net.name: hironaka has no board, expected a network of dense layers")
    assert problems("agent.net.name=nonsense")[0].startswith("agent.net.name: ")
    (problem,) = problems("agent.first_samples=60000")
    assert problem.startswith("agent.first_samples: expected at most buffer.capacity, 50000, got 60000")
    assert problems("players.agent=random")[0].startswith("players.agent: expected null, because agent has a section")
    assert problems("agent.er_schedule.initial=5", "agent.lr_schedule.initial=-1") == [
        "agent.er_schedule.initial: expected a number from 0 to 1, got 5 (--set agent.er_schedule.initial=5)",
        "agent.lr_schedule.initial: expected a number from 0 to 1e+09, got -1 (--set agent.lr_schedule.initial=-1)",
    ]
    (problem,) = problems("agent.buffer.beta.final=2")
    assert problem.startswith("agent.buffer.beta.final: expected a number from 0 to 1, got 2")
    assert problems("reward=finished", name="dqn_tic_tac_toe")[0].startswith("reward: expected returns")


def test_a_file_has_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = render(load_any("dqn_hironaka2"))
    file.write_text(text.replace("trainer: dqn ", "trainer: 7 "))
    with pytest.raises(ConfigError, match=rf"trainer: unknown trainer, .* \({file}, line 2\)"):
        load_any(file)
    line = next(n for n, text in enumerate(text.splitlines(), 1) if "n_step:" in text)
    file.write_text(text.replace("n_step: 1 ", "n_step: 0 "))
    with pytest.raises(ConfigError, match=rf"agent.n_step: expected .*, got 0 \({file}, line {line}\)"):
        load_any(file)


def test_self_play_takes_no_other() -> None:
    with pytest.raises(ConfigError, match="dqn_hironaka2: of the trainer dqn, which `tengen run` runs"):
        load("dqn_hironaka2")


def test_nobody_learns(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = render(load_any("dqn_hironaka2"))
    before, _, rest = text.partition("\nagent:\n")
    file.write_text(before + "\nagent: null\nplayers:\n" + rest.partition("\nplayers:\n")[2])
    with pytest.raises(ConfigError, match="host: expected a section for host or agent, or nobody learns"):
        load_any(file)


def test_a_run_directory_keeps_its_configuration(tmp_path: Path) -> None:
    config: Any = load_any("dqn_hironaka2")
    path = write(config, tmp_path, ["first"])
    assert load_any(path) == config
    write(load_any("dqn_hironaka2", ["goal.steps=7", "evaluation.interval=3"]), tmp_path, ["later"])
    assert "goal.steps: 10000 -> 7" in path.read_text()
    with pytest.raises(ConfigError, match=r"agent.batch: 256 -> 8"):
        write(load_any("dqn_hironaka2", ["agent.batch=8"]), tmp_path, ["later"])
    with pytest.raises(ConfigError, match="this run has other settings"):
        write(load("go9"), tmp_path, ["later"])


def test_a_kind_of_ones_own() -> None:
    path = paths.EXAMPLES / "actor_critic.yaml"
    with pytest.raises(ConfigError, match=r"host.samples: unknown key"):
        load_as(TrainerConfig, path)
    with pytest.raises(ConfigError, match="trainer: unknown trainer"):
        load_any(path)
    with pytest.raises(ConfigError, match="there is no such file"):
        load_as(TrainerConfig, "none.yaml")
