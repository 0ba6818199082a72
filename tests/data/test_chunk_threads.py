"""Chunks can be read on several threads at once."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tengen.data.format.chunk import read_chunk, write_chunk
from tests.helpers import rows


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_many_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write_chunk(path, rows.FORM, rows.rows(8), rows.GAME, network="n")
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(read_chunk, path, rows.FORM, rows.GAME) for _ in range(600)]
        assert all(future.result()[1].rows == 8 for future in found)
