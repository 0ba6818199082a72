"""Configurations of trainers of roles are read as carefully as others."""

import json
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from tengen.config import load, provenance, render
from tengen.config.loading import from_dict, load_any, load_as
from tengen.config.sections import Config
from tengen.config.settings.roles import DQNRoleSettings, RoleSettings
from tengen.config.source import shipped
from tengen.config.trainers import DQNConfig, TrainerConfig
from tengen.errors import ConfigError
from tengen.run.config_file import write
from tengen.schema import to_dict
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
    with pytest.raises(ConfigError, match="there is no such file"):
        load_as(TrainerConfig, "none.yaml")


OWN = """
from dataclasses import dataclass

from tengen import config, train
from tengen.schema import REQUIRED, setting


@dataclass(frozen=True)
class Settings(config.TrainerConfig):
    bonus: float = setting(REQUIRED, "a number", low=0, high=1)

    def check_together(self):
        if self.bonus == 0.25:
            raise RuntimeError("odd")
        return ()


class Mine(train.Trainer[Settings]):
    def _train(self, steps):
        return {}


class Unfinished(train.Trainer[Settings]):
    pass


class Other:
    pass
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a trainer and its configuration, which is not the current one."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_trainer_config", raising=False)
    (tmp_path / "own_trainer_config.py").write_text(OWN)
    plain = to_dict(load_any("dqn_hironaka2"))
    for key in fields_of_dqn():
        del plain["agent"][key]
    plain |= {"trainer": "own_trainer_config:Mine", "bonus": 0.5}
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps(plain, indent=1))  # which is YAML too
    return file


def fields_of_dqn() -> set[str]:
    return {field.name for field in fields(DQNRoleSettings)} - {field.name for field in fields(RoleSettings)}


def test_a_trainer_beside_its_configuration(own: Path) -> None:
    config: Any = load_any(own)
    assert (type(config).__name__, config.bonus) == ("Settings", 0.5)
    assert load_any(own, ["bonus=1"]) == replace(config, bonus=1.0)
    text = own.read_text()
    line = len(text.splitlines()) - 1
    own.write_text(text.replace('"bonus": 0.5', '"bonus": 7'))
    with pytest.raises(ConfigError, match=rf"bonus: expected a number from 0 to 1, got 7 \({own}, line {line}\)"):
        load_any(own)
    with pytest.raises(
        ConfigError, match=r"Settings: RuntimeError: odd \(.*own_trainer_config.py, line 14, in check_t"
    ):
        load_any(own, ["bonus=0.25"])


def test_a_run_remembers_where_its_trainer_is(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_any(own)
    path = write(load_any(own), tmp_path / "run", provenance.lines())
    assert f"# modules {tmp_path}\n" in path.read_text()
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(tmp_path)])
    del sys.modules["own_trainer_config"]
    assert type(load_any(path)).__name__ == "Settings"


def test_references_that_are_no_trainers(own: Path) -> None:
    for name, words in {
        "own_trainer_config:Other": r"derived from tengen.train.Trainer \(.*own_trainer_config.py, line 27; --set tr",
        "own_trainer_config:Unfinished": r"has no method _train \(.*line 23; --set",
        "own_trainer_config:Nobody": "Nobody: unknown name",
        "own_nowhere:Mine": "there is no module own_nowhere",
    }.items():
        with pytest.raises(ConfigError, match=words):
            load_any(own, [f"trainer={name}"])


def test_configurations_as_dictionaries(own: Path) -> None:
    for name in ("dqn_hironaka2", "go9", own):
        assert from_dict(to_dict(load_any(name))) == load_any(name)
    data = to_dict(load("go9"))
    data["train"]["batch"] = "many"
    del data["goal"]["minutes"]
    with pytest.raises(ConfigError) as caught:
        from_dict(data, ["net.name=b1c8"])
    assert caught.value.problems == (
        'train.batch: expected a whole number from 1 to 1000000, got "many" (in the dictionary)',
        "goal.minutes: missing, expected a number from 0.01 to 10000000.0 or null (in the dictionary)",
    )
    with pytest.raises(ConfigError, match=r"trainer: unknown trainer, .* \(in the dictionary\)"):
        from_dict({"trainer": 3})
    with pytest.raises(ConfigError, match="expected a dictionary with the sections"):
        from_dict([])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('rate: "Missing" = setting(1, "x")', r"NameError: name 'Missing' is not defined \(.*own_trainer_config\.py"),
        ('rate: int | list = setting(1, "x")', r"Settings: TypeError: .*own_trainer_config\.py"),
    ],
)
def test_settings_of_a_trainer_that_are_declared_wrongly(own: Path, declared: str, message: str) -> None:
    module = own.with_name("own_trainer_config.py")
    module.write_text(OWN.replace("high=1)\n", f"high=1)\n    {declared}\n", 1))
    with pytest.raises(ConfigError, match=message):
        load_any(own)


def test_a_setting_of_a_trainer_may_be_called_retired(own: Path) -> None:
    module = own.with_name("own_trainer_config.py")
    module.write_text(OWN.replace("high=1)\n", 'high=1)\n    retired: bool = setting(False, "any word")\n', 1))
    own.write_text(json.dumps(json.loads(own.read_text()) | {"retired": True}))
    loaded = load_any(own)
    assert isinstance(loaded, TrainerConfig)
    assert vars(loaded)["retired"] is True
