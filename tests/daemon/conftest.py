"""One game for all daemons, so that they share compiled programs."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tengen.train import alpha_zero
from tests.helpers.game_recording import make


@pytest.fixture(scope="package", autouse=True)
def one_game() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alpha_zero, "games", SimpleNamespace(make=make))
        yield
