"""Metrics that are read piece by piece and thinned out."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tengen.run import metrics
from tengen.web.curves import MetricsHistory
from tests.helpers.web_runs import add_lines, line


def numbers(history: MetricsHistory) -> list[int]:
    return [one["games"] for one in history.progress]


def test_few_lines_are_all_kept_and_new_ones_added(tmp_path: Path) -> None:
    history = MetricsHistory(tmp_path / "metrics.jsonl")
    assert not history.look()
    add_lines(tmp_path, [line(0, "session"), *(line(n, games=n) for n in range(5))])
    assert history.look()
    assert numbers(history) == [0, 1, 2, 3, 4]
    assert [one["kind"] for one in history.others] == ["session"]
    assert not history.look()
    add_lines(tmp_path, [line(5, games=5), line(6, "rating", elo=1.0)])
    assert history.look()
    assert (numbers(history), history.lines) == ([0, 1, 2, 3, 4, 5], 6)
    assert [one["kind"] for one in history.others] == ["session", "rating"]


def test_many_lines_are_spread_evenly_and_end_with_the_newest(tmp_path: Path) -> None:
    history = MetricsHistory(tmp_path / "metrics.jsonl", most=10)
    add_lines(tmp_path, [line(n, games=n) for n in range(700)])
    history.look()
    add_lines(tmp_path, [line(n, games=n) for n in range(700, 1001)])
    history.look()
    found = numbers(history)
    assert 10 <= len(found) <= 21
    assert (found[0], found[-1], history.lines) == (0, 1000, 1001)
    steps = {after - before for before, after in itertools.pairwise(found[:-1])}
    assert steps == {64}


def test_most_of_many_lines_are_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_lines(tmp_path, [line(n, games=n) for n in range(3000)])
    parsed: list[bytes] = []

    def parse(raw: bytes) -> dict[str, Any]:
        parsed.append(raw)
        return json.loads(raw)

    monkeypatch.setattr(metrics, "parse_line", parse)
    history = MetricsHistory(tmp_path / "metrics.jsonl", most=10)
    history.look()
    assert numbers(history)[-1] == 2999
    assert len(parsed) <= 21


def test_a_line_that_is_still_written_waits(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    add_lines(tmp_path, [line(0, games=0)])
    content = path.read_bytes()
    path.write_bytes(content + content[:30])
    history = MetricsHistory(path)
    history.look()
    assert numbers(history) == [0]
    with path.open("ab") as file:
        file.write(content[30:])
    history.look()
    assert history.lines == 2


def test_garbage_is_passed_over_and_a_new_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"kind": "progress"}\nnot json\n{"elapsed": 1, "kind": "progress", \xff}\n')
    history = MetricsHistory(path)
    history.look()
    assert (history.progress, history.others) == ([], [])
    path.unlink()
    add_lines(tmp_path, [line(0, games=7)])
    history.look()
    assert numbers(history) == [7]
