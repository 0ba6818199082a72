"""The boards that are played, how many games at once, and on which devices or cores."""

import jax
import pytest

from tengen import games
from tengen.config import load, shipped
from tengen.config.loading import load_any
from tengen.config.sections import Config
from tengen.config.settings.selfplay import SelfplaySettings
from tengen.loop.estimate import is_too_much
from tengen.selfplay import boards as playing_on
from tengen.selfplay.boards import at_once, boards, games_on_cpu, lane_devices


@pytest.mark.parametrize(
    ("cores", "count", "expected"), [(2, 256, 2), (1, 256, 1), (16, 256, 8), (2, 63, 1), (3, 100, 2), (64, 8192, 32)]
)
def test_lanes_on_a_cpu(cores: int, count: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing_on, "cores", lambda: tuple(range(cores)))
    found = lane_devices(count)
    assert len(found) == expected
    assert count % len(found) == 0
    assert set(found) == {jax.local_devices()[0]}


@pytest.mark.parametrize(("devices", "count", "expected"), [(4, 4096, 4), (4, 6, 4), (1, 7, 1), (4, 3, 3)])
def test_lanes_on_gpus(devices: int, count: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gpu:
        platform = "gpu"

    made = [Gpu() for _ in range(devices)]
    monkeypatch.setattr(jax, "local_devices", lambda: made)
    assert lane_devices(count) == made[:expected]


def test_boards_share_the_games() -> None:
    game = games.make("go", size=9, komi=7.0)
    found = boards(game, SelfplaySettings(games=100, sizes=("7:0.25:9.0", "5:.1")))
    assert [(board.game.options.size, board.game.options.komi, board.games) for board in found] == [
        (9, 7.0, 65),
        (7, 9.0, 25),
        (5, 7.0, 10),
    ]
    assert found[0].game is game
    assert boards(game, SelfplaySettings(games=100)) == [(game, 100)]


@pytest.mark.parametrize(("name", "expected"), [("go9", 64), ("go19", 64), ("chess", 64), ("connect_four", 256)])
def test_a_cpu_plays_fewer_games_at_once_if_the_network_is_large(
    name: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load(name)
    game, spec = config.game.make(), config.net.architecture()
    monkeypatch.setattr(playing_on, "cores", lambda: (0, 1))
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert at_once(config, game, spec) == expected
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert at_once(config, game, spec) == config.selfplay.games


def test_a_network_that_grows_goes_on_with_as_many_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing_on, "cores", lambda: (0, 1))
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    config = load("go9", ['net.growth=["0.2:b8c96", "0.5:b10c128"]'])
    game = config.game.make()
    grown = [config.grown(times) for times in range(3)]
    assert {at_once(each, game, each.net.architecture()) for each in grown} == {64}
    alone = load("go9", ["net.growth=[]"])
    assert at_once(alone, game, alone.net.architecture()) == 128


def test_configurations_for_a_cpu_play_as_many_games_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing_on, "cores", lambda: (0, 1))
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    found = [config for config in map(load_any, shipped()) if isinstance(config, Config)]
    for config in found:
        if not is_too_much(config, 2) and not config.run.name.endswith("_gpu"):
            game = config.game.make()
            assert at_once(config, game, config.net.architecture()) == config.selfplay.games, config.run.name


@pytest.mark.parametrize(
    ("games", "operations", "cores", "expected"),
    [
        (4096, 1e6, 1, 4096),  # a small network
        (4096, 1e8, 4, 384),  # 400 positions in half a second; all cores have as many
        (4096, 1e12, 4, 128),  # a huge one
        (4096, 1e12, 0, 32),
        (20, 1e12, 4, 20),
        (4096, 0, 2, 4096),  # a network without layers
    ],
)
def test_games_that_a_cpu_plays_at_once(games: int, operations: float, cores: int, expected: int) -> None:
    assert games_on_cpu(games, operations, cores) == expected
