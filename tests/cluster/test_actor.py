"""A self-play actor, without a network: who waits for whom."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tengen.cluster import packing
from tengen.cluster.actor import ActorPlace, SelfplayActor
from tengen.cluster.packing import GamesChunk
from tengen.cores import LIMIT
from tests.helpers.patience import LONG
from tests.helpers.tiny_runs import tiny


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

    monkeypatch.setattr(packing, "pack", pack)
    actor.take(0, [])
    with ThreadPoolExecutor(2) as callers:
        calls = [callers.submit(actor.play) for _ in range(2)]
        assert [call.result().evaluations for call in calls] == [5.0, 5.0]
    assert actor.look().waiting
    actor.stop()
    assert actor.play().chunks == ()
