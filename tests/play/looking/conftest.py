"""An engine that several tests share."""

import pytest

from tengen.play.engine import Engine
from tengen.play.finding import Found
from tengen.play.looking import asked
from tengen.play.settings import EngineSettings


@pytest.fixture(scope="session")
def engine(noughts: Found) -> Engine:
    return Engine(noughts, asked.new_game(noughts.saved).game, EngineSettings(leaves=4, slots=4096))
