"""A whole run on several devices: all of them play, the learner's batch is split, and any number of them goes on."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from tengen.run import config_file
from tests.helpers import paths
from tests.helpers.compilations import QUICKLY
from tests.helpers.run_audit import audit_learner
from tests.helpers.tiny_runs import tiny

RUN = """
import sys
from pathlib import Path
import jax
from tests.helpers.tiny_runs import prepared

rows = int(sys.argv[2])
with prepared(Path(sys.argv[1]), "rating.minutes=1000") as run:
    before = run.trainer.step
    print("BEGINS", run.counts.rows, before)
    run.run(lambda: run.counts.rows >= rows and run.trainer.step > before)
    playing = {lane.device for lane in run.components.lanes.lanes}
    print("DEVICES", len(playing), *run.trainer.learner.split.shard_shape((run.config.train.batch,)))
    holding = {len(leaf.sharding.device_set) for leaf in jax.tree.leaves(run.trainer.state)}
    print("HOLDING", *holding)
    print("ENDS", run.counts.rows, run.trainer.step)
"""


def run(base: Path, devices: int, rows: int) -> dict[str, list[int]]:
    environment = {
        **os.environ,
        "XLA_FLAGS": f"{QUICKLY} --xla_force_host_platform_device_count={devices}",
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
        "PYTHONPATH": paths.IMPORTABLE,
    }
    line = [sys.executable, "-c", RUN, str(base), str(rows)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [text.split() for text in done.stdout.splitlines()]
    return {line[0]: [int(word) for word in line[1:]] for line in lines if line and line[0].isupper()}


@pytest.mark.slow
def test_a_run_on_eight_devices_goes_on_with_one_and_with_two(tmp_path: Path) -> None:
    config_file.write(tiny("rating.minutes=1000"), tmp_path, ())
    before = [0, 0]
    for devices, rows in ((8, 100), (1, 200), (2, 300)):
        found = run(tmp_path, devices, rows)
        assert found["BEGINS"] == before
        assert found["DEVICES"] == [devices, 16 // devices]
        assert found["HOLDING"] == [devices]
        assert found["ENDS"][0] >= rows
        assert found["ENDS"][1] > before[1]
        before = found["ENDS"]
        audit = audit_learner(tmp_path)
        assert audit.problems == []
        assert [audit.rows, audit.steps] == before
