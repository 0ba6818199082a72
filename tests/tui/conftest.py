"""Where child processes find the stand-in, and this Tengen."""

import os
from pathlib import Path

import pytest

import tengen

_TESTS = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(tengen.__file__).parent.parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(_TESTS), str(source))))
