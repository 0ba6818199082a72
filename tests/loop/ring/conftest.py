"""What all tests of the ring share: networks, and one game, without which every part would be compiled anew."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from loop.ring.made import network
from recording import make
from tengen.loop.ring import gating


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of three networks of one spec."""
    folder = tmp_path_factory.mktemp("networks")
    return [network(folder / str(seed), seed) for seed in range(3)]


@pytest.fixture(scope="package", autouse=True)
def one_game() -> Iterator[None]:
    """Compiled matches are those of a game, so all gates have the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gating, "games", SimpleNamespace(make=make))
        yield
