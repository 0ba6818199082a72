"""A run whose network grows: the larger one knows what the smaller one knew, and a killed run goes on with it."""

import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from tengen.ahead import Ahead
from tengen.config import ConfigError
from tengen.config.settings.net import growth_step
from tengen.errors import OptionError, TengenError
from tengen.loop import growth, launching
from tengen.loop.fused import Fused
from tengen.nets import saving
from tengen.run import first_network, grown
from tengen.train.alpha_zero import AlphaZeroTrainer
from tests.helpers.tiny_runs import Listener, never, prepared, tiny

GROWS = "goal.rows=900", 'net.growth=["0.4:b2c16"]', "net.dtype=float32", "rating.minutes=0.05", "rating.earlier=2"

SPENT = 1000.0  # seconds of matches before the network grows


def outputs(trainer: AlphaZeroTrainer) -> np.ndarray:
    """The policy and the value that a trainer's network gives an empty board."""
    game = trainer.config.game
    seen = jax.vmap(game.observe)(jax.vmap(game.init)(jax.random.split(jax.random.key(0), 1)))
    found = trainer.network()(seen.planes, seen.scalars)
    return np.concatenate([found.policy[0], found.value[0]])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Fused, list[np.ndarray]]:
    """A run to its end, and what its network computed before and after it had grown."""
    base, found, grow = tmp_path_factory.mktemp("grown"), [], AlphaZeroTrainer.grow_from

    def watched(new: AlphaZeroTrainer, old: AlphaZeroTrainer) -> None:
        grow(new, old)
        found.extend((outputs(old), outputs(new)))

    with pytest.MonkeyPatch.context() as patch, prepared(base, *GROWS) as loop:
        patch.setattr(AlphaZeroTrainer, "grow_from", watched)
        loop.rater.spent = SPENT
        loop.run(never)
    return base, loop, found


def test_the_larger_network_knows_what_the_smaller_knew(run: tuple[Path, Fused, list[np.ndarray]]) -> None:
    before, since = run[2]
    np.testing.assert_allclose(since, before, atol=1e-5)


def test_the_larger_network_plays_learns_and_is_saved(run: tuple[Path, Fused, list[np.ndarray]]) -> None:
    base, loop, _ = run
    small, large = (loop.config.net.grown(times).architecture() for times in (0, 1))
    assert "the network has grown to b2c16" in loop._display.said
    assert loop.trainer.config.spec == loop.components.spec == large
    specs = [saving.read(base / "models" / saved.name).spec for saved in loop.networks.saved]
    assert specs == sorted(specs, key=(small, large).index)
    assert {*specs} == {small, large}
    assert loop.trainer.samples == loop.trainer.step * loop.config.train.batch  # counts go on
    assert grown.times_grown(base / "train" / "main") == 1


def test_networks_from_before_play_those_from_after(run: tuple[Path, Fused, list[np.ndarray]]) -> None:
    _, loop, _ = run
    of_before = {saved.name: loop.networks.load(saved.name)[1] is not None for saved in loop.networks.saved}
    assert {*of_before.values()} == {True, False}
    pairs = [(of_before.get(result.a), of_before.get(result.b)) for result in loop.rater.results]
    assert (False, True) in pairs, loop._display.said


def test_matches_before_and_after_share_the_time_of_the_run(run: tuple[Path, Fused, list[np.ndarray]]) -> None:
    assert run[1].rater.spent > SPENT


def test_a_run_goes_on_with_the_network_that_has_grown(run: tuple[Path, Fused, list[np.ndarray]]) -> None:
    base, before, _ = run
    with prepared(base, *GROWS[1:], "goal.rows=1100") as loop:
        assert loop.trainer.step == before.trainer.step
        assert loop.trainer.config.spec == before.trainer.config.spec
        loop.run(never)
        assert loop.counts.rows >= 1100
        assert not any("has grown" in text for text in loop._display.said)


def test_the_larger_network_is_compiled_ahead(tmp_path: Path) -> None:
    with Ahead() as ahead:
        config = tiny("goal.rows=400", 'net.growth=["200:b2c16"]')
        following = growth.NextNetwork(config, 0, ahead)
        assert not following.due(0.9, 50)
        assert following._building is None
        assert not following.due(0.0, 150)
        following._building.result()  # it is being built
        assert not following.due(0.9, 150)
        following.components()
        assert following.due(0.0, 200)
        assert not growth.NextNetwork(config, 1, ahead).due(1.0, 10**6)


def test_a_run_that_is_killed_before_the_first_checkpoint_grows_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(new: AlphaZeroTrainer, old: AlphaZeroTrainer) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(AlphaZeroTrainer, "grow_from", killed)
        with pytest.raises(Killed), prepared(tmp_path, *GROWS) as loop:
            loop.run(never)
    assert grown.times_grown(tmp_path / "train" / "main") == 0
    with prepared(tmp_path, *GROWS) as loop:
        assert loop.trainer.config.spec == loop.config.net.architecture()
        loop.run(never)
    assert "the network has grown to b2c16" in loop._display.said


def test_a_run_without_a_good_checkpoint_of_the_larger_network_grows_again(
    run: tuple[Path, Fused, list[np.ndarray]], tmp_path: Path
) -> None:
    base = tmp_path / "run"
    shutil.copytree(run[0], base)
    place = grown.folder(base / "train" / "main", 1)
    for checkpoint in grown.checkpoints(place):
        shutil.rmtree(checkpoint / "state")
    settings = *GROWS[1:], "goal.rows=1600"
    with (
        pytest.raises(TengenError, match="no checkpoint can be read"),
        Fused(tiny(*settings), base, Listener()) as loop,
    ):
        loop.prepare()
    with prepared(base, *settings) as loop:
        assert (
            f"{place}: no good checkpoint is left, so the network before it goes on and grows again"
            in loop._display.said
        )
        assert loop.trainer.config.spec == loop.config.net.architecture()
        assert all(loop.networks.load(saved.name) for saved in loop.networks.saved)
        loop.run(never)
        assert "the network has grown to b2c16" in loop._display.said, loop.counts
    assert grown.times_grown(base / "train" / "main") == 1


@pytest.mark.parametrize("text", ["", "b2c16", "1.5:b2c16", "0:b2c16", "0.5:", "0.5:b2c16:3", "-0.5:b2c16"])
def test_growth_that_cannot_be_understood(text: str) -> None:
    with pytest.raises(OptionError, match="SHARE:NAME or ROWS:NAME"):
        growth_step(text)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ('["0.5:b2c16","0.4:b3c16"]', "one after the other"),
        ('["200:b2c16","200:b3c16"]', "one after the other"),
        ('["0.5:b2"]', "net.growth"),
        ('["0.0:b2c16"]', "above 0"),
    ],
)
def test_growth_that_cannot_be_configured(steps: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny("goal.rows=400", f"net.growth={steps}")


def test_growth_into_a_network_that_the_game_cannot_have() -> None:
    with pytest.raises(ConfigError, match=r"net.growth: 0.5:mlp2x8: .*expected a tower"):
        tiny("goal.rows=400", 'net.growth=["0.5:mlp2x8"]')


def test_a_network_that_does_not_fit_the_device_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: growth.NextNetwork) -> None:
        raise OptionError("too little memory")

    monkeypatch.setattr(growth.NextNetwork, "_build", refuse)
    with prepared(tmp_path, *GROWS) as loop:
        loop.run(never)
    assert loop._display.said.count("the network does not grow: too little memory") == 1
    assert loop.trainer.config.spec == loop.config.net.architecture()
    assert loop.counts.rows >= 400


def test_a_run_must_say_to_what_its_network_has_grown(tmp_path: Path) -> None:
    (grown.folder(tmp_path / "train" / "main", 2) / "step_000000010").mkdir(parents=True)
    with pytest.raises(TengenError, match="has grown 2 times"), Fused(tiny(*GROWS), tmp_path, Listener()) as loop:
        loop.prepare()


def test_growth_by_rows() -> None:
    step = growth_step("200:b2c16")
    assert [step.is_due(1.0, rows) for rows in (199, 200)] == [False, True]
    assert [growth_step("0.5:b2c16").is_due(share, 10**9) for share in (0.49, 0.5)] == [False, True]


def test_growth_without_a_goal() -> None:
    tiny('net.growth=["200:b2c16"]')
    with pytest.raises(ConfigError, match="no goal"):
        tiny('net.growth=["0.5:b2c16"]')


def test_a_network_cannot_shrink(tmp_path: Path) -> None:
    config = tiny("goal.rows=400", "net.name=b2c16", 'net.growth=["0.5:b2c8"]')
    with pytest.raises(TengenError, match=r"net.growth: 0.5:b2c8: b2c16 cannot grow into it: its channels are 16"):
        first_network.check(config, tmp_path)


@pytest.mark.parametrize("mode", ["sync", "async", "cluster"])
def test_other_modes_say_that_the_network_does_not_grow(mode: str, tmp_path: Path) -> None:
    config = tiny("goal.rows=400", 'net.growth=["0.5:b2c16"]')
    (note,) = launching._not_growing(launching.RunRequest(config, tmp_path, mode))
    assert note == f"net.growth: only the fused loop grows its network; with --mode {mode} it stays b1c8"
    (grown.folder(tmp_path / "train" / "main", 1) / "step_000000010").mkdir(parents=True)
    with pytest.raises(TengenError, match="its network has grown"):
        list(launching._not_growing(launching.RunRequest(config, tmp_path, mode)))
    assert not list(launching._not_growing(launching.RunRequest(config, tmp_path, "fused")))
