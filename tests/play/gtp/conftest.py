"""Sessions that several tests share: a session takes a while to compile."""

from collections.abc import Iterator

import pytest

from play.gtp.talking import Controller
from play.networks import QUICK
from tengen.play.finding import Found
from tengen.play.gtp import serving
from tengen.play.settings import PlaySettings


@pytest.fixture(scope="session")
def go_session(go5: Found) -> Iterator[Controller]:
    controller = Controller(serving.make(go5, PlaySettings(visits=8, resign=0), QUICK))
    yield controller
    controller.end()


@pytest.fixture
def go(go_session: Controller) -> Controller:
    go_session.ask("boardsize 5")
    go_session.ask('kata-set-rules {"ko":"POSITIONAL","suicide":false,"friendlyPassOk":true}')
    go_session.ask("komi 0.5")
    go_session.ask("time_settings 0 1 0")
    return go_session
