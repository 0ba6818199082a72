"""The opponents that a configuration names."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from tengen import games, nets
from tengen.config import load
from tengen.config.settings.selfplay import SelfplaySettings
from tengen.errors import TengenError
from tengen.nets import saving
from tengen.selfplay.opponents import opponents

GAME = games.make("hironaka", max_points=3, max_value=5, max_moves=12)


@pytest.mark.slow
def test_fixed_players_and_networks(tmp_path: Path) -> None:
    net = nets.build(nets.spec("mlp1x8"), GAME, nnx.Rngs(1), dtype="float32")
    saving.save(net, tmp_path / "net-s1", GAME)
    texts = ("agent=last:0.25", f"host={tmp_path / 'net-s1'}:0.5")
    agent, host = opponents(SelfplaySettings(opponents=texts), GAME)
    assert (agent.name, agent.player, agent.share) == ("last", 1, 0.25)
    assert (host.name, host.player, host.share) == ("net-s1", 0, 0.5)
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 5))
    look = jax.vmap(GAME.look)(states)
    best = net(look.observation.planes, look.observation.scalars).policy.argmax(1)
    assert (host.rule(host.params, jax.random.key(0), states, jnp.ones(5, bool)) == best).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agent=frist:0.5", '"frist": no agent has that name, expected one of random, first, last, or the path'),
        ("agent=zeillinger:0.5", '"zeillinger": no agent has that name'),
        ("host={folder}:0.5", r"neither a network \(a folder with model.safetensors\) nor a run"),
    ],
)
def test_names_of_nobody(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TengenError, match=message):
        opponents(SelfplaySettings(opponents=(text.format(folder=tmp_path),)), GAME)


def test_players_have_the_names_of_the_game() -> None:
    settings = load("tic_tac_toe", ["selfplay.opponents=[o=first:0.5]"]).selfplay
    assert [opponent.player for opponent in opponents(settings, games.make("tic_tac_toe"))] == [1]
    with pytest.raises(
        TengenError, match=r"selfplay.opponents: agent=first:0.5: tic_tac_toe has no agent, expected x= "
    ):
        load("tic_tac_toe", ["selfplay.opponents=[agent=first:0.5]"])
    with pytest.raises(TengenError, match="tic_tac_toe has no black, only x and o"):
        opponents(SelfplaySettings(opponents=("black=first:0.5",)), games.make("tic_tac_toe"))
