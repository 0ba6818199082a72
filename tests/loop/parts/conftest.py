"""What all tests of the ring share: networks, and one game, without which every part would be compiled anew."""

from collections.abc import Iterator
from typing import Any

import pytest

from tengen.loop.parts import train
from tests.helpers.pipeline_data import sharing_one_game


@pytest.fixture(scope="package", autouse=True)
def one_game() -> Iterator[None]:
    with sharing_one_game():
        yield


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All trainers, at the end, since loaders have threads."""
    made: list[train.TrainPart] = []
    start = train.TrainPart.__init__

    def noted(part: train.TrainPart, *args: Any, **more: Any) -> None:
        start(part, *args, **more)
        made.append(part)

    monkeypatch.setattr(train.TrainPart, "__init__", noted)
    yield
    for part in made:
        part.close()
