"""Whole runs on a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.run import metrics
from tests.helpers import paths
from tests.helpers.patience import LONG

pytestmark = pytest.mark.gpu


def test_a_process_that_compiles_nothing_learns_too(tmp_path: Path) -> None:
    """Compiling tries programs out, so cuDNN is ready afterwards; with programs from the cache it is not."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": paths.IMPORTABLE}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)  # Tengen's own cache also keeps what compiles fast
    settings = ("goal.steps=10", "data.first_rows=500", "rating.references=[]", "rating.earlier=0")
    for name in ("first", "second"):
        line = [sys.executable, "-m", "tengen", "run", "go5", "--base", str(tmp_path / name)]
        line += [word for setting in settings for word in ("--set", setting)]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=LONG)
        assert done.returncode == 0, done.stderr[-2000:]
        assert any(each.get("steps") for each in metrics.read(tmp_path / name / metrics.NAME).lines)
