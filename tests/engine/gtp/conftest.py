"""Sessions that several tests share: a session takes a while to compile."""

from collections.abc import Iterator

import pytest

from tengen.config.settings.match import PlaySettings
from tengen.engine.gtp import commands
from tengen.run.networks import FoundNetwork
from tests.helpers.gtp_dialogue import Controller
from tests.helpers.networks import QUICK


@pytest.fixture(scope="session")
def go_session(go5: FoundNetwork) -> Iterator[Controller]:
    controller = Controller(commands.make(go5, PlaySettings(visits=8, resign=0), QUICK))
    yield controller
    controller.end()


@pytest.fixture
def go(go_session: Controller) -> Controller:
    go_session.ask("boardsize 5")
    go_session.ask('kata-set-rules {"ko":"POSITIONAL","suicide":false,"friendlyPassOk":true}')
    go_session.ask("komi 0.5")
    go_session.ask("time_settings 0 1 0")
    return go_session
