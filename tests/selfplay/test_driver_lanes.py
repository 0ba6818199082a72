"""Games in several lanes: by cores, by devices, by sizes of boards."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.config import load
from tengen.data.format.chunk import read_chunk
from tengen.data.format.rows import unpack_planes
from tengen.data.records.records import load_records
from tengen.data.store.store import Store
from tengen.errors import ConfigError
from tengen.loop.fused import Fused
from tengen.selfplay import boards, driver
from tengen.selfplay.collector import on_host
from tests.helpers.compilations import Compilations
from tests.helpers.tiny_runs import Listener, never, settings, tiny

GO = (
    "game.size=3",
    "game.max_moves=12",
    "game.komi=2.0",
    "net.heads=[ownership, score, opponent_policy]",
    'selfplay.sizes=["2:0.5:1.0"]',
    "selfplay.opening_moves=0",
    "selfplay.komi_spread=0.0",
    "rating.references=[]",
)


def go(*overrides: str) -> Any:
    return load("go5", settings(*GO, *overrides))


def test_all_devices_play_whatever_the_number_of_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "lane_devices", lambda count: ["a", "b", "c"])
    for count, expected in ((8, [3, 3, 2]), (6, [2, 2, 2])):
        found = driver.SelfplayDriver(tiny(f"selfplay.games={count}")).lanes.lanes
        assert [lane.device for lane in found] == ["a", "b", "c"]
        assert [lane.selfplay.settings.games for lane in found] == expected
        assert len({id(lane.selfplay) for lane in found}) == len(set(expected))  # each is compiled once


@pytest.fixture
def four_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores, and few games in a lane; the tests that ask for this share compiled programs."""
    monkeypatch.setattr(boards, "FEWEST_GAMES", 2)
    for module in (boards, driver):
        monkeypatch.setattr(module, "cores", lambda: (0, 1))


@pytest.mark.slow
@pytest.mark.usefixtures("four_lanes")
def test_lanes_play_at_once_and_no_game_has_the_number_of_another(tmp_path: Path) -> None:
    with Fused(go(), tmp_path, Listener()) as loop:
        loop.prepare()
        parts = loop.components
        assert [(lane.selfplay.game.options.size, lane.selfplay.settings.games) for lane in parts.lanes.lanes] == [
            (3, 2), (3, 2), (2, 2), (2, 2)
        ]  # fmt: skip
        actors, numbers = parts.lanes.begin(jax.random.key(0)), []
        assert actors[0].key != actors[1].key
        for _ in range(2):
            actors, finished = parts.lanes.play(parts.weights(), actors, 12, session=3).wait()
            for lane in map(on_host, finished):
                numbers += [tuple(number) for number in np.asarray(lane.number).tolist()]
                assert set(map(tuple, np.asarray(lane.rows["game"]).tolist())) <= set(numbers)
    assert len(numbers) > 8
    assert len(set(numbers)) == len(numbers)
    assert {number // 100_000_000 for _, number in numbers} == {0, 1, 2, 3}


@pytest.mark.slow
@pytest.mark.usefixtures("four_lanes")
def test_programs_of_several_sizes_are_compiled_in_threads() -> None:
    parts = driver.SelfplayDriver(go("selfplay.games=6"))  # programs that no other test has
    compilations = Compilations()
    actors = parts.lanes.begin(jax.random.key(0))
    threads = compilations.of("_start")
    assert len(threads) == len(parts.boards) == 2
    assert all(name.startswith("lane") for name in threads)
    again = parts.lanes.begin(jax.random.key(0))
    for one, other in zip(jax.tree.leaves(actors), jax.tree.leaves(again), strict=True):
        if not jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            np.testing.assert_array_equal(one, other)


def test_a_run_with_boards_of_two_sizes(tmp_path: Path) -> None:
    with Fused(go("goal.rows=300", "data.record_share=1.0"), tmp_path, Listener()) as loop:
        loop.prepare()
        loop.run(never)
        assert loop.trainer.step > 0
    shape, kinds = loop.components.form.planes_shape, set()
    for chunk in Store(tmp_path / "selfplay").chunks():
        rows, _ = read_chunk(chunk.path)
        points = unpack_planes(rows["planes"], shape)[..., 0]
        for on, policy, ownership in zip(points, rows["policy"], rows["ownership"], strict=True):
            side = int(np.sqrt(on.sum()))
            kinds.add(side)
            assert on[:side, :side].all()
            assert on.sum() == side * side
            assert not policy[:-1].reshape(3, 3)[~on].any()
            assert not ownership[~on].any()
    assert kinds == {2, 3}
    records = [record for file in (tmp_path / "games").rglob("*.sgf") for record in load_records(file)]
    assert {record.options["size"]: record.options["komi"] for record in records} == {2: 1.0, 3: 2.0}
    with Fused(go("goal.rows=350", "data.record_share=1.0"), tmp_path, Listener()) as again:  # and it goes on
        again.prepare()
        assert again.counts.rows == loop.counts.rows


@pytest.mark.parametrize(
    ("config", "sizes", "problem"),
    [
        ("connect_four", '["3:0.5"]', "expected none, because only go is played on boards of several sizes"),
        ("go5", '["5:0.5"]', "expected sizes below the game's own, 5, got 5"),
        ("go5", '["1:0.5"]', "1:0.5: "),
        ("go5", '["4"]', "expected SIZE:SHARE or SIZE:SHARE:KOMI"),
    ],
)
def test_sizes_that_cannot_be_played(config: str, sizes: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load(config, [f"selfplay.sizes={sizes}"])


def test_many_lanes_have_numbers_of_their_own() -> None:
    class Played:
        form = None

        def start(self, key: Any) -> Any:
            return Begun(jnp.arange(2, dtype=jnp.uint32), jnp.uint32(2))

    @dataclass(frozen=True)
    class Begun:
        number: Any
        begun: Any

    jax.tree_util.register_dataclass(Begun)
    played: Any = Played()
    lanes = driver.Lanes([driver.Lane(played, jax.devices()[0])] * 48, None)  # type: ignore[arg-type]
    first = [int(actor.number[0]) for actor in lanes.begin(jax.random.key(0))]
    assert min(later - sooner for sooner, later in pairwise(first)) > 80_000_000
