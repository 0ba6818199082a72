"""`tengen estimate`."""

import os
import re
from pathlib import Path

import pytest

from tengen.commands import main
from tests.helpers.tiny_runs import settings


def sets(*overrides: str) -> list[str]:
    return [word for text in settings(*overrides) for word in ("--set", text)]


@pytest.mark.slow
def test_speeds_times_and_memory_and_nothing_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["estimate", "tic_tac_toe", "--seconds", "0.5", *sets("goal.games=500")]) == 0
    out, err = capsys.readouterr()
    for name in ("games and their trees", "rows", "network and optimiser", "together"):
        assert re.search(rf"^{name} +[\d.]+ [kM]B", out, re.MULTILINE), name
    assert "100,000 rows take " in out
    for name in ("evaluations", "games", "rows", "samples"):
        assert re.search(rf"^{name} +[\d.,e+]+/s while ", out, re.MULTILINE), name
    for name in ("1,000 games", "10,000 games", "100,000 games"):
        assert re.search(rf"^{name} +\d\d:\d\d:\d\d$", out, re.MULTILINE), name
    assert re.search(r"^the goal +\d\d:\d\d:\d\d for 500 games, .* about 500 games, ", out, re.MULTILINE)
    assert err.splitlines()[0] == "compiling the games ..."
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "many", "1e9"])
def test_seconds_that_cannot_be(capsys: pytest.CaptureFixture[str], seconds: str) -> None:
    assert main(["estimate", "tic_tac_toe", "--seconds", seconds]) == 2
    assert "expected seconds above 0" in capsys.readouterr().err


def test_what_does_not_fit_is_not_measured(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from tengen import jax_setup
    from tengen.loop import components, estimate

    for module in (jax_setup, components):
        monkeypatch.setattr(module, "device_memory", lambda: 1000)
    monkeypatch.setattr(estimate, "measure", pytest.fail)
    assert main(["estimate", "tic_tac_toe", *sets()]) == 2
    out, err = capsys.readouterr()
    assert " of 1.0 kB" in out
    assert "lower selfplay.games, search.simulations or data.ring_rows" in err
