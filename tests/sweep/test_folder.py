"""The folder of a sweep: never silently another one, and garbage is named."""

from pathlib import Path

import pytest

from tengen.errors import ConfigError, TengenError
from tengen.sweep import plan
from tengen.sweep.folder import SweepFolder
from tengen.sweep.strategies import Job, Round
from tengen.sweep.trial import TrialResult


def planned(*sets: str, steps: int = 5, **options: str) -> plan.PlannedTrial:
    return plan.make("tic_tac_toe", sets, ["train.batch=4,8"], [], budgets={"steps": steps}, **options)  # pyright: ignore


@pytest.fixture(scope="module")
def usual() -> plan.PlannedTrial:
    return planned()


def test_it_is_opened_as_it_was_begun(tmp_path: Path, usual: plan.PlannedTrial) -> None:
    folder = SweepFolder(tmp_path / "deep" / "sweep")
    begun = folder.begin(usual)
    assert begun.plan == usual.plan
    assert begun.config == usual.config
    assert folder.begin(usual).plan == usual.plan
    assert folder.open().config == usual.config


def test_another_sweep_is_refused(tmp_path: Path, usual: plan.PlannedTrial) -> None:
    folder = SweepFolder(tmp_path)
    folder.begin(usual)
    with pytest.raises(ConfigError) as caught:
        folder.begin(planned("search.simulations=20", steps=6))
    said = str(caught.value)
    assert "budget: 5 -> 6" in said
    assert "-  simulations: 32" in said
    assert "+  simulations: 20" in said
    assert f"go on with it (tengen sweep --base {tmp_path}), or choose another --base" in said
    assert folder.begin(planned(metric="loss")).plan.metric == "loss"  # a grid may be looked at in another way


def test_what_decided_may_not_change(tmp_path: Path) -> None:
    folder, wanted = SweepFolder(tmp_path), planned(strategy="halving", metric="loss")
    folder.begin(wanted)
    assert folder.begin(planned(strategy="halving", metric="value_loss")).plan.metric == "value_loss"
    folder.keep_rounds([Round((Job("000", {"train.batch": 4}, 5),), {"000": 1.0})])
    with pytest.raises(ConfigError, match='metric: "value_loss" -> "loss"'):
        folder.begin(wanted)


def test_rounds_and_results_are_kept(tmp_path: Path) -> None:
    folder, job = SweepFolder(tmp_path), Job("003", {"a": 1}, 7, "001")
    assert folder.rounds() == []
    assert folder.result(job, 2) is None
    rounds = [Round((job,), {"003": None}), Round((job,))]
    folder.keep_rounds(rounds)
    assert folder.rounds() == rounds
    result = TrialResult("failed", {"progress.loss": None}, (("a", "b", 1, 2, 3),), "why", ("x", "y"))
    folder.keep_result(job, 2, result)
    assert folder.result(job, 2) == result
    folder.forget_result(job, 2)
    assert folder.result(job, 2) is None


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"schema": 1}', b"[" * 100_000])
def test_garbage_is_named(tmp_path: Path, usual: plan.PlannedTrial, garbage: bytes) -> None:
    folder, job = SweepFolder(tmp_path), Job("003", {}, 7)
    folder.begin(usual)
    (tmp_path / "results").mkdir()
    for name, read in (
        ("rounds.json", folder.rounds),
        ("results/003-0.json", lambda: folder.result(job, 0)),
        ("plan.json", folder.open),
    ):
        (tmp_path / name).write_bytes(garbage)
        with pytest.raises(TengenError, match=f"{name}: .*; correct the file, or choose another --base"):
            read()


def test_no_sweep_and_no_place(tmp_path: Path, usual: plan.PlannedTrial) -> None:
    with pytest.raises(TengenError, match="no sweep is there"):
        SweepFolder(tmp_path / "none").open()
    (tmp_path / "file").write_text("")
    with pytest.raises(TengenError, match="cannot be written"):
        SweepFolder(tmp_path / "file").begin(usual)
