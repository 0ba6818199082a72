"""The game of docs/write-a-game.md, which lives outside Tengen: examples/breakthrough.py."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

from tengen import games
from tengen.commands import main
from tengen.testing import check_game
from tests.helpers.paths import EXAMPLES
from tests.helpers.tiny_runs import settings

NAME = "breakthrough:Breakthrough"
ENDING = """  a b c d
4 . . b .
3 w . . b
2 . b . .
1 w . . w
to play: white"""


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    sys.modules.pop("breakthrough", None)


def test_it_keeps_its_promises() -> None:
    assert check_game(games.game_class(NAME), size=4) == ()


def test_moves_by_hand() -> None:
    game: Any = games.make(NAME, size=4)
    state = game.from_text(ENDING)
    legal = [game.action_name(state, action) for action in range(game.num_actions) if game.legal_actions(state)[action]]
    assert sorted(legal) == ["a1a2", "a1b2", "a3a4", "a3b4", "d1c2", "d1d2"]
    won = game.step(state, jnp.int32(game.parse_action(state, "a3b4")))
    assert game.returns(won).tolist() == [1, -1]
    assert game.final_targets(won) == {"pieces": 0}
    taken = game.step(state, jnp.int32(game.parse_action(state, "a1b2")))
    assert game.final_targets(taken) == {"pieces": 1}
    assert "to play: black" in game.render(taken)


@pytest.mark.slow
def test_a_very_short_run_resumes_and_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, out = str(tmp_path / "run"), str(tmp_path / "match")
    changes = [f"--set={text}" for text in settings("game.size=4", "search.considered=4", "goal.steps=4")]
    assert main(["run", "breakthrough.yaml", "--base", base, *changes]) == 0
    assert main(["run", base, "--set", "goal.steps=6"]) == 0
    assert main(["match", base, "random", "--games", "2", "--simulations", "2", "--out", out]) == 0
    assert "of 2 games" in capsys.readouterr().out


@pytest.mark.slow
def test_a_minute_of_training_beats_random_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By steps and not by the clock: about as many as two cores make in a minute."""
    base = str(tmp_path / "run")
    steps = ["--set", "goal.minutes=null", "--set", "goal.steps=400"]
    assert main(["run", "breakthrough.yaml", "--base", base, *steps]) == 0
    capsys.readouterr()
    out = str(tmp_path / "match")
    assert main(["match", base, "random", "--games", "40", "--simulations", "8", "--out", out]) == 0
    share = re.search(r"random: ([0-9.]+) %", capsys.readouterr().out)
    assert share is not None
    assert float(share[1]) >= 80
