"""An engine that several tests share."""

import pytest

from tengen.analysis import query
from tengen.config.settings.match import EngineSettings
from tengen.engine.engine import Engine
from tengen.run.networks import FoundNetwork


@pytest.fixture(scope="session")
def engine(noughts: FoundNetwork) -> Engine:
    return Engine(noughts, query.new_game(noughts.saved).game, EngineSettings(leaves=4, slots=4096))
