"""Figures, files of them, and what counts as a change."""

import json
from pathlib import Path

import pytest

from tengen import schema
from tengen.bench import parts, search
from tengen.bench.figures import STORED, BenchReport, Figure, FigureChange, Machine, changes, read, stored
from tengen.errors import TengenError

GPU = Machine("NVIDIA H200", "gpu", 1, "0.11.2")
CPU = Machine("cpu", "cpu", 1, "0.11.2")


@pytest.mark.parametrize(
    ("unit", "before", "now", "noise", "gain", "verdict"),
    [
        ("us", 10.0, 20.0, 0.0, 0.5, "worse"),
        ("us", 20.0, 10.0, 0.0, 2.0, "better"),
        ("/s", 10.0, 20.0, 0.0, 2.0, "better"),
        ("x", 1.0, 0.98, 0.0, 0.98, ""),  # machines of the same kind differ as much
        ("x", 1.0, 0.9, 0.0, 0.9, "worse"),
        ("x", 1.0, 0.9, 0.2, 0.9, ""),
    ],
)
def test_a_change_counts_if_it_is_larger_than_the_noise(
    unit: str, before: float, now: float, noise: float, gain: float, verdict: str
) -> None:
    change = FigureChange(Figure("a", now, unit, noise), Figure("a", before, unit))
    assert change.gain == pytest.approx(gain)
    assert change.verdict == verdict


def test_only_what_both_have_and_can_be_compared_is_compared() -> None:
    old = (Figure("speed", 1.0, "/s"), Figure("share", 0.5, "x"), Figure("gone", 1.0, "x"), Figure("unit", 1.0, "us"))
    new = (Figure("speed", 2.0, "/s"), Figure("share", 0.6, "x"), Figure("new", 1.0, "x"), Figure("unit", 1.0, "s"))
    assert set(changes(BenchReport(GPU, new), BenchReport(GPU, old))) == {"speed", "share"}
    assert set(changes(BenchReport(CPU, new), BenchReport(CPU, old))) == {"share"}, "CPUs differ, ratios do not"
    assert not changes(BenchReport(GPU, new), None)


def test_a_file_of_figures_can_be_the_stored_one(tmp_path: Path) -> None:
    report = BenchReport(GPU, (Figure("a", 1.0, "x", 0.1),), {"loop": "too slow"}, "0.1", "2026-01-31", 3.0)
    schema.write_json(tmp_path / "nvidia_h200.json", report)
    assert stored(GPU, tmp_path) == report
    assert stored(CPU, tmp_path) is None


@pytest.mark.parametrize("content", ["", "[]", '{"machine": {}}', "figures"])
def test_other_files_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(TengenError, match=r"a\.json"):
        read(tmp_path / "a.json")
    data = {"machine": schema.to_dict(GPU), "figures": [{"name": "a", "value": 0, "unit": "x"}]}
    (tmp_path / "a.json").write_text(json.dumps(data))
    with pytest.raises(TengenError, match="above 0"):
        read(tmp_path / "a.json")


def test_the_stored_figures_are_those_that_the_benchmarks_make() -> None:
    for path in STORED.glob("*.json"):
        found = read(path)
        assert found.machine.file == path.name
        names = [figure.name for figure in found.figures]
        assert len(names) == len(set(names))
    known = stored(GPU)
    assert known is not None
    names = {figure.name for figure in known.figures}
    for line in (*search.GPU, *search.CHESS, *search.KATAGO):
        assert f"search / bare network, {line.name}" in names
    for line in (*search.PEER, *search.PEER_CHESS):
        assert f"search / pgx + mctx, {line.name}" in names
    assert {figure.name for figure in parts.derived(known.figures)} <= names
    assert len(list(parts.derived(known.figures))) == 2
