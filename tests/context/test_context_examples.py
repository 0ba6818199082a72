"""The examples run as they are."""

import importlib.util
import sys
from typing import Any

import numpy as np
import pytest

from tengen import games
from tests.helpers import paths

EXAMPLES = paths.EXAMPLES


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_numpy_player(capsys: pytest.CaptureFixture[str]) -> None:
    stats = load("numpy_player").main(["--games", "96"])
    assert stats.games_finished == 96
    assert stats.train_batches > 5
    said = capsys.readouterr().out
    assert "first 32 games: black won" in said
    assert "last 32 games: black won" in said


def test_the_gradients_of_the_numpy_player_are_right() -> None:
    """Against differences of the loss."""
    game, rng = games.make("tic_tac_toe"), np.random.default_rng(0)
    network = load("numpy_player").Linear(game)
    network.policy[:], network.value[:] = (rng.normal(size=x.shape) / 4 for x in (network.policy, network.value))
    policy = rng.random((8, 9))
    batch = {
        "planes": rng.random((8, *game.planes_shape)) < 0.4,
        "policy": policy / policy.sum(1, keepdims=True),
        "outcome": np.eye(3)[rng.integers(3, size=8)],
    }

    def loss() -> float:
        said = network.act(batch)
        logs = said["policy"] - np.log(np.exp(said["policy"]).sum(1, keepdims=True))
        error = batch["outcome"] @ [1, 0, -1] - said["value"]
        return float((-(batch["policy"] * logs).sum(1) + error**2 / 2).mean())

    for weights in (network.policy, network.value):
        before, was, place = loss(), weights.copy(), (0,) * weights.ndim
        kept = network.policy.copy(), network.value.copy()
        network.learn(batch, rate=1.0)
        step = weights[place] - was[place]
        network.policy[:], network.value[:] = kept
        weights[place] += 1e-6
        assert step == pytest.approx(-(loss() - before) / 1e-6, abs=1e-4)
        network.policy[:], network.value[:] = kept


def test_torch_player() -> None:
    pytest.importorskip("torch", reason="the example needs PyTorch: pip install torch")
    stats = load("torch_player").main(["--games", "12", "--batch", "8"])
    assert stats.games_finished == 12
    assert stats.train_batches > 5


@pytest.mark.parametrize(
    ("example", "module"), [("torch_player", "torch"), ("numpy_player", "tengen"), ("actor_critic", "tengen")]
)
def test_what_is_not_installed_is_said_in_one_line(example: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit) as stop:
        load(example)
    assert "this example needs Tengen" in str(stop.value.code)
    assert module in str(stop.value.code)
    assert "\n" not in str(stop.value.code)
