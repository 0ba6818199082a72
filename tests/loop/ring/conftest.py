"""What all tests of the ring share: networks, and one game, without which every part would be compiled anew."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loop.ring.made import network, sharing_one_game
from tengen.loop.ring import training


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of three networks of one spec."""
    folder = tmp_path_factory.mktemp("networks")
    return [network(folder / str(seed), seed) for seed in range(3)]


@pytest.fixture(scope="package", autouse=True)
def one_game() -> Iterator[None]:
    with sharing_one_game():
        yield


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All trainers, at the end, since loaders have threads."""
    made: list[training.TrainPart] = []
    start = training.TrainPart.__init__

    def noted(part: training.TrainPart, *args: Any, **more: Any) -> None:
        start(part, *args, **more)
        made.append(part)

    monkeypatch.setattr(training.TrainPart, "__init__", noted)
    yield
    for part in made:
        part.close()
