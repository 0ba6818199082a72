"""A self-play actor, without a network: who waits for whom."""

import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tengen.cluster.actor import ActorPlace, GamesChunk, PublishedNetwork, SelfplayActor, SentNetwork
from tengen.cluster.elsewhere import RatingActor
from tengen.cluster.gate import GateActor
from tengen.config.sections import Config
from tengen.cores import LIMIT
from tengen.errors import OptionError
from tests.helpers.patience import LONG
from tests.helpers.tiny_runs import tiny

pytest.importorskip("ray", reason="Ray is not installed")


class PlayingActor(SelfplayActor):
    """Has games at once. `second` is set when it plays for the second time."""

    def __init__(self) -> None:
        super().__init__(tiny(), ActorPlace(1, 1, 1.0))
        self.calls, self.second = 0, threading.Event()

    def _play(self) -> tuple[dict[int, list[Any]], float]:
        self.calls += 1
        if self.calls == 2:
            self.second.set()
        return {0: []}, 5.0


def test_the_next_call_plays_while_games_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "1")
    actor = PlayingActor()

    def pack(board: int, parts: Any) -> GamesChunk:
        assert actor.second.wait(LONG), "nobody plays meanwhile"
        return GamesChunk(board, 10, 0, 2, b"")

    monkeypatch.setattr("tengen.cluster.actor.pack", pack)
    actor.take(0, PublishedNetwork([], tiny()))
    with ThreadPoolExecutor(2) as callers:
        calls = [callers.submit(actor.play) for _ in range(2)]
        assert [call.result().evaluations for call in calls] == [5.0, 5.0]
    assert actor.look().waiting
    actor.stop()
    assert actor.play().chunks == ()


def test_files_are_removed_before_the_process_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "1")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place, found = ActorPlace(1, 1, 1.0), []
    actors = GateActor(tiny(), place), RatingActor(tiny(), place), SelfplayActor(tiny(), place)
    assert len(list(tmp_path.iterdir())) == 2
    for actor in actors:
        actor.close()
    assert list(tmp_path.iterdir()) == []

    def read(config: Config) -> None:  # the process is killed while it reads the networks of opponents
        found.extend(tmp_path.iterdir())
        reading.close()
        assert list(tmp_path.iterdir()) == []

    monkeypatch.setattr("tengen.cluster.actor.SelfplayDriver", read)
    reading = SelfplayActor(tiny(), place)
    reading._driver(tiny())
    assert found == [], "without opponents there is no folder"
    reading = SelfplayActor(tiny(), place, {"x=a:1": SentNetwork("a", b"")})
    reading._driver(tiny())
    assert len(found) == 1


def test_an_actor_knows_which_settings_do_not_fit_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "1")
    actor, other = SelfplayActor(tiny(), ActorPlace(1, 1, 1.0)), tiny("search.simulations=40")
    monkeypatch.setattr("tengen.loop.components.device_memory", lambda: 1)
    assert actor.refuses(other) == "", "it has not begun"
    actor.take(0, PublishedNetwork([], other))
    with pytest.raises(OptionError, match="lower selfplay.games or search.simulations"):
        actor.play()
    assert actor._config == other
    assert "on the device, which has 1 bytes: `tengen set` a lower search.simulations" in actor.refuses(other)
    monkeypatch.setattr("tengen.loop.components.device_memory", lambda: None)
    assert actor.refuses(other) == ""
