"""Trainers of the tests are closed at the end."""

from collections.abc import Iterator
from typing import Any

import pytest

from tengen.loop.parts import train


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
