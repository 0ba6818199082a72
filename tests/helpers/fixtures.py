"""Fixtures that tests of several rooms share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tengen.run.networks import FoundNetwork
from tengen.selfplay import Selfplay, driver
from tengen.train import alpha_zero
from tengen.train.learner import Learner
from tests.helpers.networks import untrained
from tests.helpers.pipeline_data import network


@pytest.fixture(scope="session")
def noughts(tmp_path_factory: pytest.TempPathFactory) -> FoundNetwork:
    return untrained(tmp_path_factory.mktemp("nets") / "noughts", "tic_tac_toe", heads=("moves_left",))


@pytest.fixture(scope="session")
def go5(tmp_path_factory: pytest.TempPathFactory) -> FoundNetwork:
    heads = ("ownership", "score")
    return untrained(tmp_path_factory.mktemp("nets") / "go5", "go", heads=heads, size=5, komi=0.5)


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of three networks of one spec."""
    folder = tmp_path_factory.mktemp("networks")
    return [network(folder / str(seed), seed) for seed in range(3)]


@pytest.fixture(scope="session", autouse=True)
def shared_programs() -> Iterator[None]:
    """`Selfplay` and `Learner` are functions of their arguments, so equal arguments may share one."""
    known: dict[Any, Any] = {}

    def selfplay(game: Any, evaluate: Any, *settings: Any) -> Selfplay:
        key = repr((game.name, game.options, settings)), evaluate
        return known.setdefault(key, Selfplay(game, evaluate, *settings))

    def learner(net: Any, game: Any, settings: Any, *more: Any) -> Learner:
        key = repr((net.spec, game.name, game.options, settings, more))
        return known.setdefault(key, Learner(net, game, settings, *more))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "Selfplay", selfplay)
        patch.setattr(alpha_zero, "Learner", learner)
        yield
