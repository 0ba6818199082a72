"""Cores and GPUs, shared out."""

from pathlib import Path

import pytest

from tengen.sweep import trial
from tengen.sweep.trial import MachineShare


def test_cores_are_divided() -> None:
    four = trial.shares(2, (), (0, 1, 2, 3), {})
    assert [share.cores for share in four] == [(0, 1), (2, 3)]
    assert all(share.environment == {"OMP_NUM_THREADS": "2"} for share in four)
    assert [share.cores for share in trial.shares(2, (), (4, 5, 7), {})] == [(4,), (5, 7)]
    assert [share.cores for share in trial.shares(3, (), (0, 1), {})] == [(0,), (1,), (0,)]
    assert trial.shares(1, (), (0, 1), {}) == (MachineShare(),)


def test_gpus_in_turn_with_a_part_of_their_memory() -> None:
    found = [dict(share.environment) for share in trial.shares(3, ("0", "1"), tuple(range(6)), {})]
    assert [each["CUDA_VISIBLE_DEVICES"] for each in found] == ["0", "1", "0"]
    assert {each["XLA_PYTHON_CLIENT_MEM_FRACTION"] for each in found} == {"0.45"}
    one_each = trial.shares(2, ("0", "1"), (0, 1), {})
    assert all("XLA_PYTHON_CLIENT_MEM_FRACTION" not in share.environment for share in one_each)
    said = trial.shares(2, ("0",), (0, 1), {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".3", "OMP_NUM_THREADS": "1"})
    assert [dict(share.environment) for share in said] == [{"CUDA_VISIBLE_DEVICES": "0"}] * 2


def test_how_many_at_once() -> None:
    assert trial.usual(("0", "1"), tuple(range(16))) == 2
    assert trial.usual((), tuple(range(16))) == 8
    assert trial.usual((), (0,)) == 1


def test_which_gpus_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trial.gpus({"CUDA_VISIBLE_DEVICES": "2, GPU-abc"}) == ("2", "GPU-abc")
    assert trial.gpus({"CUDA_VISIBLE_DEVICES": ""}) == ()
    assert trial.gpus({"CUDA_VISIBLE_DEVICES": "0", "JAX_PLATFORMS": "cpu"}) == ()
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA (UUID: x)'\necho 'GPU 1: NVIDIA (UUID: y)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert trial.gpus({}) == ("0", "1")
    program.write_text("#!/bin/sh\necho 'no driver' >&2\nexit 9\n")
    assert trial.gpus({}) == ()
    monkeypatch.setenv("PATH", "")
    assert trial.gpus({}) == ()
