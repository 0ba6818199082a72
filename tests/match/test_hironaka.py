"""Hosts and agents by name, and which networks of a run are best."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from tengen import games, nets
from tengen.errors import TengenError
from tengen.match import hironaka
from tengen.match.hironaka import player, rho
from tengen.nets import saving

GAME: Any = games.make("hironaka", max_points=3, max_value=5, max_moves=12)
GAMES = 100


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with three networks, of which the middle one always names all coordinates, or the last one."""
    base = tmp_path_factory.mktemp("run")
    for number, preferred in enumerate((0, 3, 0)):
        net: Any = nets.build(nets.spec("mlp1x8"), GAME, nnx.Rngs(number), dtype="float32")
        net.policy.kernel[...] = np.zeros_like(net.policy.kernel[...])
        bias = np.arange(4.0) if preferred else -np.arange(4.0)
        net.policy.bias[...] = np.float32(bias)
        saving.save(net, base / "models" / f"net-s{number}", GAME, {"seconds": float(number), "step": number})
    return base


@pytest.mark.slow
def test_a_network_plays_both_roles(run: Path) -> None:
    """The middle network is the host `all` and the agent `last`, so its games are theirs."""
    middle = run / "models" / "net-s1"
    host, agent = (player(str(middle), role, GAME) for role in ("host", "agent"))
    key = jax.random.key(1)
    theirs = rho(GAME, player("all", "host", GAME), player("last", "agent", GAME), key, GAMES)
    ours = rho(GAME, host, agent, key, GAMES)
    assert (ours.host, ours.rounds, ours.unfinished) == ("net-s1", theirs.rounds, theirs.unfinished)


def test_of_a_run_the_newest_network_plays(run: Path) -> None:
    assert player(str(run), "host", GAME).name == "net-s2"
    assert player(str(run), "host", GAME, 8).name == "net-s2:8"


@pytest.mark.slow
def test_the_best_is_the_one_whose_worst_is_best(run: Path) -> None:
    """Rates are measured again here, one pair at a time."""
    chosen = hironaka.select(run, "host", GAME, GAMES, earlier=2)
    key = jax.random.key(0)
    opponents = [player(name, "agent", GAME) for name in ("random", "first", "last")]
    opponents += [player(str(run / "models" / name), "agent", GAME) for name in ("net-s1", "net-s2")]
    reference = {each.name: rho(GAME, player("zeillinger", "host", GAME), each, key, GAMES).rate for each in opponents}
    worst = {}
    for name in ("net-s0", "net-s1", "net-s2"):
        host = player(str(run / "models" / name), "host", GAME)
        worst[name] = min(rho(GAME, host, each, key, GAMES).rate / reference[each.name] for each in opponents)
    assert {each.name: each.worst for each in chosen.standings} == pytest.approx(worst)
    assert worst[chosen.best.name] == max(worst.values())
    assert chosen.best.path == run / "models" / chosen.best.name
    assert [each["name"] for each in chosen.listed()] == [each.name for each in chosen.standings]
    agents = hironaka.select(run, "agent", GAME, GAMES, earlier=1)
    assert agents.best.worst == min(each.worst for each in agents.standings)
    assert set(agents.best.against) == {"random", "all", "zeillinger", "spivakovsky", "net-s2"}


@pytest.mark.parametrize(
    ("count", "wanted", "places"), [(1, 3, [0]), (3, 3, [0, 1, 2]), (9, 3, [2, 5, 8]), (5, 1, [4]), (5, 0, [])]
)
def test_opponents_are_spread_over_the_run(count: int, wanted: int, places: list[int]) -> None:
    assert hironaka.spread(count, wanted) == places


def test_who_is_nobody(tmp_path: Path, run: Path) -> None:
    with pytest.raises(TengenError, match='"zelinger": no host has that name, expected one of random, .*, zeillinger'):
        player("zelinger", "host", GAME)
    with pytest.raises(TengenError, match="neither a network"):
        player(str(tmp_path), "agent", GAME)
    with pytest.raises(TengenError, match="no networks to choose from"):
        hironaka.select(tmp_path, "host", GAME, GAMES)
    other: Any = games.make("hironaka", dimension=4, max_points=3, max_moves=12)
    with pytest.raises(TengenError, match="expected F32"):
        player(str(run), "host", other)
