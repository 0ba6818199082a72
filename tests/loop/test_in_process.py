"""Runs in one process: how they end. The fused loop, the pipeline in turns and runs of roles test the rest."""

from pathlib import Path

import pytest

from tengen.errors import TengenError
from tengen.loop.in_process import InProcessRun
from tests.helpers.tiny_runs import Listener, tiny


def closing(base: Path) -> InProcessRun:
    """A run of which something cannot be closed."""

    def fail() -> None:
        raise TengenError("the disk is full")

    run = InProcessRun(tiny(), base, Listener())
    run._closing.callback(fail)
    return run


def test_an_error_at_the_end_is_raised(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="the disk is full"), closing(tmp_path):
        pass


def test_the_first_error_is_what_the_reader_sees(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="the training diverged"), closing(tmp_path):
        raise TengenError("the training diverged")
