"""Where child processes find the stand-in, and this Tengen."""

import pytest

from tests.helpers import paths


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", paths.IMPORTABLE)
