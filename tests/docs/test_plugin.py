"""A package outside of the repository brings a game, a network, a trainer and a model, with Tengen's wheel alone."""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.helpers import paths

pytestmark = pytest.mark.slow

NUMPY_MODEL = """
import numpy as np

def load(game):
    return lambda planes, scalars: (np.zeros((len(scalars), game.num_actions)), np.zeros(len(scalars)))
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the plugin and an environment that has Tengen's wheel and the plugin."""
    folder = tmp_path_factory.mktemp("outside")
    shutil.copytree(paths.EXAMPLES / "plugin", folder / "plugin")
    (folder / "numpy_model.py").write_text(NUMPY_MODEL)
    venv.create(folder / "env", with_pip=True)
    wheels = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(paths.ROOT)]
    subprocess.run(wheels, check=True)
    [wheel] = folder.glob("*.whl")
    pip = [str(folder / "env" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    limits = ["--constraint", str(paths.ROOT / "constraints.txt")]
    subprocess.run([*pip, *limits, str(wheel), str(folder / "plugin")], check=True)
    return folder


def tengen(folder: Path, *arguments: str, said: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(folder / "env" / "bin" / "tengen"), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, input=said, capture_output=True, text=True, timeout=3600, check=False
    )
    assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_everything_works_with_the_wheel_alone(outside: Path) -> None:
    assert "nim: good" in tengen(outside, "games", "nim", "--check")
    assert "nim" in tengen(outside, "games")
    own = [
        "run.name=nim",
        "game.name=nim",
        "game.heaps=3",
        "game.size=4",
        "net.name=nim_plugin.network:build",
        "goal.steps=5",
        "goal.minutes=null",
        "search.simulations=8",
        "selfplay.games=32",
        "rating.games=8",
        "data.first_rows=200",
    ]
    settings = [part for each in own for part in ("--set", each)]
    (outside / "nim.yaml").write_text(tengen(outside, "config", "show", "tic_tac_toe", *settings))
    for mode in ("fused", "sync", "async"):
        tengen(outside, "run", "nim.yaml", "--mode", mode, "--base", f"runs/{mode}")
    assert "of 4 games" in tengen(outside, "match", "runs/fused", "python:numpy_model:load", "--games", "4")
    for player in ("runs/fused", "python:numpy_model:load@nim"):
        answers = tengen(outside, "gtp", player, "--visits", "4", said="genmove b\nquit\n")
        assert re.match(r"= [abc][1-4]\n", answers), answers
    tengen(outside, "run", "plugin/reinforce.yaml", "--set", "goal.steps=4", "--set", "evaluation.interval=4")
    assert "first.samples" in tengen(
        outside, "sweep", "plugin/reinforce.yaml", "--grid", "first.samples=8,16", "--steps", "2"
    )
