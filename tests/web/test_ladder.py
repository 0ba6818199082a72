"""Ladders and matches."""

import json
from pathlib import Path

import pytest

from tengen.match.results import MatchResult
from tengen.web import ladder
from tests.helpers.web_runs import NETWORKS, line, make_run


def test_both_orders_of_a_pair_are_one_and_the_strongest_comes_first() -> None:
    found = ladder.ladder([MatchResult("a", "random", 9, 0, 1), MatchResult("random", "a", 2, 2, 6)])
    assert found["matches"] == [{"a": "a", "b": "random", "wins": 15, "draws": 2, "losses": 3}]
    assert [one["name"] for one in found["players"]] == ["a", "random"]
    assert (found["players"][0]["games"], found["players"][0]["points"]) == (20, 16.0)
    assert (found["anchor"], found["players"][1]["elo"], found["players"][1]["kind"]) == ("random", 0.0, "reference")


def test_too_many_players_keep_the_ratings_that_they_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "_MOST_FITTED", 1)
    lines = [line(1, "rating", network="a", elo=50.0, error=5.0), line(2, "rating", network="b", elo=None, error=1.0)]
    found = ladder.ladder([MatchResult("a", "b", 1, 0, 0)], lines)
    assert not found["fitted"]
    assert [(one["name"], one["elo"]) for one in found["players"]] == [("a", 50.0), ("b", None)]


def test_networks_without_a_line_are_placed_by_their_rows(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    found, problems = ladder.ladders(base, [])
    assert not problems
    progress = {"elapsed": [0.0, 100.0], "rows": [0, 400], "games": [0, 1000]}
    lines = [line(30.0, "rating", network=NETWORKS[0], elo=1.0, error=1.0, steps=7)]
    table = ladder.rating_columns(found[0], lines, progress)
    assert table["name"] == list(NETWORKS)
    assert (table["elapsed"], table["games"], table["steps"]) == ([30.0, 50.0], [300.0, 500.0], [7, None])
    assert table["elo"][1] > table["elo"][0] > 0


def test_networks_of_the_same_rows_are_placed_by_their_samples() -> None:
    progress = {"elapsed": [0.0, 50.0, 100.0], "rows": [0, 400, 400], "samples": [0, 64, 128]}
    made_at = ladder.made_at(progress)
    assert [made_at(f"run-main-s{samples}-d400") for samples in (64, 128)] == [50.0, 100.0]
    assert made_at("untrained") is None


def test_results_that_cannot_be_read_are_a_problem(tmp_path: Path) -> None:
    (tmp_path / "ratings").mkdir()
    (tmp_path / "ratings" / "results.jsonl").write_text("nonsense\n")
    found, problems = ladder.ladders(tmp_path, [])
    assert not found
    assert "line 1" in problems[0]


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', '{"a": "x", "b": "y", "wins": "many"}', "[" * 9999])
def test_other_summaries_of_matches_are_passed_over(tmp_path: Path, content: str) -> None:
    (tmp_path / "summary.json").write_text(content)
    assert ladder.match_summaries([tmp_path]) == []


def test_the_summary_of_a_match(tmp_path: Path) -> None:
    about = {"a": "net", "b": "gnugo", "wins": 6, "draws": 0, "losses": 4, "share": 0.6}
    (tmp_path / "summary.json").write_text(json.dumps(about))
    (found,) = ladder.match_summaries([tmp_path])
    assert (found["a"], found["wins"], found["share"]) == ("net", 6, 0.6)
    assert found["elo_low"] < found["elo"] < found["elo_high"]


def test_tables_without_games_or_samples_have_those_of_the_run_at_that_time() -> None:
    progress = {"elapsed": [0.0, 10.0], "games": [0, 100], "samples": [None, None]}
    found = ladder.with_axes({"elapsed": [5.0, 20.0], "steps": [3, 9], "x": [1, 2]}, progress)
    assert found == {"elapsed": [5.0, 20.0], "steps": [3, 9], "x": [1, 2], "games": [50.0, 100.0]}
    assert ladder.with_axes({"x": [1]}, progress) == {"x": [1]}


def test_the_rating_of_the_untrained_network_stands_at_the_beginning() -> None:
    lines = [
        line(90.0, "rating", network="untrained", elo=100.0, error=50.0, steps=7),
        line(95.0, "rating", network=NETWORKS[0], elo=300.0, error=50.0, steps=20),
    ]
    found = ladder.rating_columns(None, lines, {"elapsed": [0.0, 100.0], "games": [0, 50]})
    assert (found["elapsed"], found["steps"], found["elo"]) == ([0.0, 95.0], [0, 20], [100.0, 300.0])
    assert (found["games"][0], found["samples"][0]) == (0.0, 0)
