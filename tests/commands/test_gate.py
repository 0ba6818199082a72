"""`tengen gate` as a person uses it."""

from pathlib import Path

import pytest

from tengen.commands import main
from tengen.run import locks, networks
from tests.helpers.pipeline_data import GATE, network, put
from tests.helpers.tiny_runs import settings


def arguments(base: Path, *more: str) -> list[str]:
    sets = [word for text in settings(*GATE) for word in ("--set", text)]
    return ["gate", "tic_tac_toe", "--base", str(base), *sets, *more]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A run with two candidates."""
    for seed in (1, 2):
        put(tmp_path / "run", networks.CANDIDATES, 100 * seed, network(tmp_path / str(seed), seed))
    return tmp_path / "run"


@pytest.mark.parametrize("option", ["--once", "--quit-if-nothing-to-test"])
def test_all_that_wait_are_judged_and_it_ends(base: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main(arguments(base, option, "--set", "ring.poll_seconds=0.01")) == 0
    out = capsys.readouterr().out
    assert "tic_tac_toe-main-s100-d200 is accepted: it is the first network" in out
    assert "tic_tac_toe-main-s200-d400 is " in out
    assert " against tic_tac_toe-main-s100-d200; it has " in out
    assert networks.candidates(base) == []
    assert (base / "config.yaml").exists()
    assert list((base / "parts").iterdir()) == [], "its notice is taken away"
    assert "nothing to test" not in out


def test_nothing_to_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(tmp_path, "--quit-if-nothing-to-test")) == 0
    assert "nothing to test" in capsys.readouterr().out
    assert main(arguments(tmp_path, "--once")) == 0
    out = capsys.readouterr().out
    assert out.endswith(" waiting: no candidate to test: the first that comes is accepted without games\n")
    assert out.count("no candidate") == 1


def test_there_is_one_gate_for_a_run(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locks.taking_part(base, "gate"):
        assert main(arguments(base, "--once")) == 2
    assert f"{base}: gate: is being used by process " in capsys.readouterr().err
    assert len(networks.candidates(base)) == 2


def test_a_run_of_something_else(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(base, "--quit-if-nothing-to-test")) == 0
    assert main(["gate", "connect_four", "--base", str(base), "--once"]) == 2
    assert "this run has other settings" in capsys.readouterr().err


def test_where_it_is_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["gate", "tic_tac_toe", "--once"]) == 0
    assert (tmp_path / "runs" / "tic_tac_toe" / "config.yaml").exists()
