"""The files for clusters in examples/cluster, as far as they can be tried without one."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import tengen
from tengen.commands import make_parser
from tests.helpers import paths
from tests.helpers.patience import LONG, eventually
from tests.helpers.ray_cluster import QUICK
from tests.helpers.run_audit import audit_learner
from tests.helpers.tiny_runs import settings

FOLDER = paths.EXAMPLES / "cluster"
SLURM = FOLDER / "slurm.sh"
SETTINGS = settings("cluster.cores=1", "cluster.stale_steps=5", "rating.minutes=1000", "train.samples_per_row=0.5")
STAND_INS = {
    "sbatch": 'SLURM_JOB_ID=$((RANDOM + 100)) SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST="node[1-2]" exec bash "$@"',
    "scontrol": '[ "$1 $2" = "show hostnames" ] && printf "node1\\nnode2\\n" || echo "$@" >>"$STAND_INS/scontrol.log"',
    # One node beside the first, so there is one task to start.
    "srun": 'echo "$@" >"$STAND_INS/srun.log"; while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"',
    "tengen": f'exec {shlex.quote(sys.executable)} -m tengen "$@"',
}


def test_the_slurm_script_is_good_bash_and_says_how_it_is_used() -> None:
    subprocess.run(["bash", "-n", str(SLURM)], check=True)
    found = subprocess.run(["bash", str(SLURM)], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "usage: sbatch slurm.sh CONFIG RUN" in found.stderr
    options = dict(re.findall(r"^#SBATCH --([a-z-]+)=?(.*)$", SLURM.read_text(), re.MULTILINE))
    assert options["ntasks-per-node"] == "1"
    assert options["signal"] == "B:USR1@300"


def test_the_launcher_of_ray_accepts_its_file() -> None:
    pytest.importorskip("ray")
    jsonschema = pytest.importorskip("jsonschema")
    import ray.autoscaler

    schema = json.loads((Path(ray.autoscaler.__file__).parent / "ray-schema.json").read_text())
    config = yaml.safe_load((FOLDER / "ray_up.yaml").read_text())
    jsonschema.validate(config, schema)
    kinds = config["available_node_types"]
    assert config["head_node_type"] in kinds
    assert config["max_workers"] == sum(kind["max_workers"] for kind in kinds.values())
    needed = ("head_start_ray_commands", "worker_start_ray_commands", "setup_commands", "docker", "auth")
    assert all(config[name] for name in needed)


def test_the_ray_job_has_what_kuberay_needs() -> None:
    volume, job = yaml.safe_load_all((FOLDER / "kuberay.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for pod in pods:
        spec = pod["template"]["spec"]
        (container,) = spec["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {each["name"] for each in spec["volumes"]}
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    claim = {"claimName": volume["metadata"]["name"]}
    assert claim in [each.get("persistentVolumeClaim") for each in pods[0]["template"]["spec"]["volumes"]]
    program, *words = shlex.split(job["spec"]["entrypoint"])
    parsed = make_parser().parse_args(words)
    assert (program, parsed.mode, parsed.address) == ("tengen", "cluster", "auto")
    # `ray job stop` needs the name, and time to write everything.
    assert job["spec"]["jobId"] == "tengen"
    assert pods[0]["template"]["spec"]["containers"][0]["env"][0]["name"] == "RAY_JOB_STOP_WAIT_TIME_S"


def test_all_files_are_for_the_same_version_of_ray() -> None:
    text = "".join(path.read_text() for path in sorted(FOLDER.iterdir()))
    assert set(re.findall(r"(?:rayproject/ray:|rayVersion: )(\d+\.\d+\.\d+)", text)) == {"2.60.0"}


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with Slurm, whose two nodes are this machine."""
    for name, text in STAND_INS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    places = (str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"])
    source = str(Path(tengen.__file__).parents[1])
    more = {"PATH": ":".join(places), "STAND_INS": str(tmp_path), "PYTHONPATH": source, "SLURM_CPUS_PER_TASK": "1"}
    return {**os.environ, **QUICK, **more, "PYTHONUNBUFFERED": "1"}


def submit(environment: dict[str, str], base: Path, *overrides: str) -> Any:
    words = ["sbatch", str(SLURM), "tic_tac_toe", str(base)]
    options = [word for text in (*SETTINGS, *overrides) for word in ("--set", text)]
    with (base.parent / "job.log").open("ab") as log:
        return subprocess.Popen([*words, *options], env=environment, stdout=log, stderr=log)


@pytest.mark.slow
def test_a_job_of_slurm_is_queued_again_when_its_time_is_over_and_then_runs_to_its_end(
    slurm: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    base, log = tmp_path / "run", tmp_path / "job.log"
    job = submit(slurm, base)
    try:
        eventually(
            lambda: bool(list(base.glob("selfplay/*/*.npz"))) or job.poll() is not None,
            lambda: f"the first games: {log.read_text()[-3000:]}",
        )
        job.send_signal(signal.SIGUSR1)
        assert job.wait(LONG) == 128 + signal.SIGTERM, log.read_text()[-3000:]
    finally:
        job.terminate()
    assert "2 nodes" in log.read_text()
    assert re.fullmatch(r"requeue \d+\n", (tmp_path / "scontrol.log").read_text())
    srun = "--nodes=1 --ntasks=1 --exclude=node1 --cpus-per-task=1 ray start --address"
    assert (tmp_path / "srun.log").read_text().startswith(srun)
    before = audit_learner(base)
    assert before.problems == []
    job = submit(slurm, base, f"goal.rows={before.rows + 300}")
    try:
        assert job.wait(4 * LONG) == 0, log.read_text()[-3000:]
    finally:
        job.terminate()
    after = audit_learner(base)
    assert after.problems == []
    assert after.rows >= before.rows + 300
