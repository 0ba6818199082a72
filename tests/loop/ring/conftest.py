"""What all tests of the ring share: networks, and one game, without which every part would be compiled anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from loop.ring.made import network, sharing_one_game


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of three networks of one spec."""
    folder = tmp_path_factory.mktemp("networks")
    return [network(folder / str(seed), seed) for seed in range(3)]


@pytest.fixture(scope="package", autouse=True)
def one_game() -> Iterator[None]:
    with sharing_one_game():
        yield
