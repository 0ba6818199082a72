"""A run that begins with a saved network keeps its own copy of it, grown to its architecture."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.config import load
from tengen.config.loading import load_any
from tengen.errors import TengenError
from tengen.nets import saving
from tengen.run import config_file, first_network, networks
from tengen.train.alpha_zero import AlphaZeroConfig, AlphaZeroTrainer
from tests.helpers.tiny_runs import tiny

GAME = games.make("tic_tac_toe")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A network of one block."""
    net = nets.build(nets.spec("b1c8"), GAME, nnx.Rngs(7), dtype="float32")
    saving.save(net, tmp_path / "small", GAME, {"run": "older", "step": 5})
    return tmp_path / "small"


def outputs(net: Any) -> Any:
    seen = jax.vmap(GAME.observe)(jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 2)))
    return net(seen.planes, seen.scalars)


@pytest.mark.slow
def test_the_run_keeps_a_grown_copy_that_plays_and_learns(small: Path, tmp_path: Path) -> None:
    base = tmp_path / "run"
    config = tiny("net.name=b2c16", f"net.start_from={small}", "net.dtype=float32", "net.heads=[moves_left]")
    before = outputs(saving.load(small, GAME, dtype="float32"))
    own = first_network.local(config, base)
    assert own.net.start_from == str(base / "train" / "main" / "start")
    for path in small.iterdir():  # the run does not need it any more
        path.unlink()
    assert first_network.local(config, base) == own
    trainer = AlphaZeroTrainer(AlphaZeroConfig.of(own))
    assert np.allclose(outputs(trainer.network()).policy, before.policy, atol=1e-4)
    assert np.allclose(outputs(trainer.network(average=False)).value, before.value, atol=1e-4)
    first = networks.newest(base)
    assert first is not None
    assert first.name == "tic_tac_toe-main-s0-d0"
    assert first.accepted
    info = networks.find(base).saved.info
    assert info["start_from"]["path"] == str(small.resolve())
    assert info["start_from"]["info"] == {"run": "older", "step": 5}
    assert first_network.local(tiny(), base) == tiny()


def test_another_trainer_has_its_own_and_leaves_the_players_alone(small: Path, tmp_path: Path) -> None:
    config = tiny("net.name=b1c16", f"net.start_from={small}")
    own = first_network.local(config, tmp_path / "run", "wide")
    assert own.net.start_from == str(tmp_path / "run" / "train" / "wide" / "start")
    assert networks.newest(tmp_path / "run") is None


def test_a_role_begins_with_a_saved_network(small: Path, tmp_path: Path) -> None:
    config = load_any("dqn_tic_tac_toe", [f"x.net.start_from={small}", "x.net.name=b1c16"])
    own = first_network.local(config, tmp_path / "run")
    assert own.host.net.start_from == str(tmp_path / "run" / "train" / "x" / "start")
    assert networks.find(tmp_path / "run").saved.info["role"] == "x"


def test_what_cannot_be_a_start_is_said_before_there_is_a_run(small: Path, tmp_path: Path) -> None:
    base = tmp_path / "run"
    with pytest.raises(TengenError, match="net.start_from: /nowhere: there is no such file or folder"):
        config_file.write(tiny("net.start_from=/nowhere"), base, [])
    with pytest.raises(TengenError, match=r"start_from: .*small: cannot be the start .*are 8, more than 4"):
        config_file.write(tiny("net.name=b1c4", f"net.start_from={small}"), base, [])
    assert not base.exists()
    other = load("othello", [f"net.start_from={small}", "net.name=b1c8", "net.heads=[]"])
    with pytest.raises(TengenError, match="a network for tic_tac_toe cannot be the start of one for othello"):
        config_file.write(other, base, [])
    go = games.make("go", size=5, observation="katago")
    saving.save(nets.build(nets.spec("b1c8"), go, nnx.Rngs(0)), tmp_path / "katago", go)
    blind = load("go5", [f"net.start_from={tmp_path / 'katago'}", "net.name=b1c8"])
    with pytest.raises(
        TengenError, match="sees 22 planes and 19 scalars, not 12 and 11; it needs game.observation=katago"
    ):
        config_file.write(blind, base, [])
    assert not base.exists()
