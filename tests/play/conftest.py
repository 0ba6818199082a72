"""Networks that several tests share."""

import pytest

from play.networks import untrained
from tengen.play.finding import Found


@pytest.fixture(scope="session")
def noughts(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return untrained(tmp_path_factory.mktemp("nets") / "noughts", "tic_tac_toe", heads=("moves_left",))


@pytest.fixture(scope="session")
def go5(tmp_path_factory: pytest.TempPathFactory) -> Found:
    heads = ("ownership", "score")
    return untrained(tmp_path_factory.mktemp("nets") / "go5", "go", heads=heads, size=5, komi=0.5)
