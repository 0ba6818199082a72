"""AlphaZero in one file learns, and stays short; configurations of examples are complete."""

from pathlib import Path

import pytest

from tengen import search
from tengen.config import render
from tengen.config.loading import load_any
from tests.context.test_context_examples import load
from tests.helpers import paths


@pytest.mark.slow
def test_alpha_zero_plays_and_learns_a_little(capsys: pytest.CaptureFixture[str]) -> None:
    """A smoke test; the file may have 80 lines."""
    assert len((paths.EXAMPLES / "alpha_zero.py").read_text("utf-8").splitlines()) <= 80
    example = load("alpha_zero")
    example.GAMES, example.STEPS, example.BUFFER, example.BATCH = 8, 2, 128, 16
    example.SEARCH = search.Settings(simulations=2)
    assert 0 <= example.main(["--rounds", "1"]) <= 1
    assert "round 1: loss" in capsys.readouterr().out


@pytest.mark.slow
def test_alpha_zero_beats_random_play(capsys: pytest.CaptureFixture[str]) -> None:
    assert load("alpha_zero").main([]) > 0.8
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines() if line.startswith("round")]
    assert len(losses) == 30
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.parametrize("path", sorted(paths.EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_configurations_have_all_settings(path: Path) -> None:
    assert render(load_any(path)) == path.read_text()
