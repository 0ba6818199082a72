"""Who may use a run at the same time."""

from pathlib import Path

import pytest

from tengen.config import ConfigError, run_directory
from tengen.errors import OptionError
from tengen.loop.ring.locks import check_name, taking_part


def test_any_number_of_parts_but_one_of_a_kind(tmp_path: Path) -> None:
    with taking_part(tmp_path), taking_part(tmp_path), taking_part(tmp_path, "gate"):
        with taking_part(tmp_path, "train-main"), taking_part(tmp_path, "train-big"):
            with pytest.raises(ConfigError) as caught, taking_part(tmp_path, "train-main"):
                pass
            (problem,) = caught.value.problems
            assert problem.startswith(f"{tmp_path}: trainer main: is being used by process ")
            assert problem.endswith("; wait until it ends, or choose another --name")
        with pytest.raises(ConfigError, match=r"gate: is being used .* another --base"), taking_part(tmp_path, "gate"):
            pass
        with taking_part(tmp_path, "train-main"):
            pass


def test_the_fused_loop_has_it_to_itself(tmp_path: Path) -> None:
    with taking_part(tmp_path), pytest.raises(ConfigError, match="is being used by"), run_directory.locked(tmp_path):
        pass
    with run_directory.locked(tmp_path), pytest.raises(ConfigError, match="is being used by"), taking_part(tmp_path):
        pass


def test_names_of_trainers() -> None:
    assert check_name("big2") == "big2"
    for name in ("", "a b", "a-b", "a/b", "ä", "x" * 41):
        with pytest.raises(OptionError, match="--name: expected letters and digits"):
            check_name(name)
