"""Results: shares, intervals and Elo against formulas from the books and simulated matches; and their file."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.errors import TengenError
from tengen.match.results import MatchResult, append, elo, independent_games, read, wilson

ONE, OTHER = MatchResult("s1000", "mcts:200", 70, 2, 28), MatchResult("s2000", "s1000", 55, 0, 45)
GOOD = json.dumps({"schema": 1, "a": "x", "b": "y", "wins": 1, "draws": 0, "losses": 2})
counts = st.integers(0, 10**9)
names = st.text(min_size=1)


@given(st.lists(st.builds(MatchResult, names.map("a".__add__), names.map("b".__add__), counts, counts, counts)))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, results: list[MatchResult]) -> None:
    path = tmp_path_factory.mktemp("results") / "run" / "results.jsonl"
    append(path, *results)
    assert read(path) == results


def test_appending_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    append(path, ONE)
    before = path.read_bytes()
    append(path, OTHER)
    assert path.read_bytes().startswith(before)
    assert read(path) == [ONE, OTHER]
    assert [file.name for file in tmp_path.iterdir()] == ["results.jsonl"]


def test_a_player_may_be_called_like_a_key(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    append(path, odd := MatchResult("independent", "random", 1, 0, 1))
    assert read(path) == [odd]


def test_no_file_means_no_results(tmp_path: Path) -> None:
    assert read(tmp_path / "results.jsonl") == []


def test_a_file_edited_by_hand_need_not_end_with_a_line_break(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(GOOD)
    append(path, ONE)
    assert read(path) == [MatchResult("x", "y", 1, 0, 2), ONE]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD[:30], "line 2: not the result of a match: "),
        ("[]", "expected an object of schema 1"),
        (GOOD.replace("1", "true", 1), "expected an object of schema 1"),
        (GOOD.replace("}", ', "independent": -5}'), "unknown key independent"),
        ("[" * 100_000, "not the result of a match"),
        ("", "line 2"),
        (GOOD.replace("1", "2", 1), "expected an object of schema 1"),
        (GOOD.replace('"y"', '"x"'), "b: expected "),
        (GOOD.replace('"y"', '""'), "b: expected "),
        (GOOD.replace('"y"', "7"), "b: expected "),
        (GOOD.replace('"losses": 2', '"losses": -2'), "losses: expected a whole number"),
        (GOOD.replace('"losses": 2', '"losses": 2.5'), "losses: "),
        (GOOD.replace('"losses": 2', '"losses": true'), "losses: "),
        (GOOD.replace('"losses": 2', '"losses": NaN'), "losses: "),
        (GOOD.replace('"losses": 2', '"lost": 2'), "losses: "),
        (GOOD.replace('"losses": 2', f'"losses": {"9" * 5000}'), "not the result of a match"),
    ],
)
def test_a_broken_line_is_named_and_nothing_is_written(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f"{GOOD}\n{line}\n{GOOD}\n")
    before = path.read_bytes()
    with pytest.raises(TengenError, match="results.jsonl, line 2: not the result of a match") as caught:
        read(path)
    assert message in str(caught.value)
    with pytest.raises(TengenError):
        append(path, ONE)
    assert path.read_bytes() == before


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"\xff\xfe\x00garbage")
    with pytest.raises(TengenError, match="it is not text"):
        read(path)


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="cannot be read"):
        read(tmp_path)


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TengenError, match="results.jsonl: "):
        append(tmp_path / "file" / "results.jsonl", ONE)


# --- Shares, intervals and Elo ---


def score(results: Any, finished: Any = None) -> MatchResult:
    return MatchResult.of_games("a", "b", results, finished)


def test_counts() -> None:
    found = score([1, -1, 0.5, 0, -0.25, 1])
    assert (found.wins, found.draws, found.losses, found.games) == (3, 1, 2, 6)
    assert found.share == pytest.approx(3.5 / 6)


@pytest.mark.parametrize("results", [[1.0], [1.0, 0.0, -1.0]])
def test_a_match_is_pairs(results: list[float]) -> None:
    with pytest.raises(ValueError, match="pairs of games"):
        score(results)


def test_wilson_as_in_the_books() -> None:
    low, high = wilson(0.7, 10)  # 7 of 10: Brown, Cai and DasGupta's formula by hand
    assert (low, high) == (pytest.approx(0.3968, abs=1e-4), pytest.approx(0.8922, abs=1e-4))
    assert wilson(0.0, 10) == (0.0, pytest.approx(0.2775, abs=1e-4))
    assert wilson(1.0, 10) == (pytest.approx(0.7225, abs=1e-4), 1.0)


def test_elo_of_shares() -> None:
    assert elo(0.5) == 0
    assert elo(10 / 11) == pytest.approx(400)
    assert elo(0.64) == pytest.approx(100, abs=0.1)
    assert (elo(0), elo(1)) == (-math.inf, math.inf)


def test_one_sided_matches_stay_readable() -> None:
    found = score([1.0] * 100)
    assert math.isfinite(found.elo)
    assert found.elo_interval[0] == pytest.approx(elo(0.963), abs=2)
    assert found.elo_interval[1] == math.inf
    assert str(found).startswith("a - b: 100.0 % (96.3 to 100.0) of 100 games, +100 =0 -0, Elo +921 (+566 to +inf)")


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=2, max_size=60).filter(lambda r: len(r) % 2 == 0))
def test_swapping_the_players_turns_everything_around(results: list[float]) -> None:
    one, other = score(results), score([-r for r in results])
    low, high = one.interval
    assert low <= one.share <= high
    assert other.interval == (pytest.approx(1 - high), pytest.approx(1 - low))
    assert one.elo == pytest.approx(-other.elo)


@pytest.mark.parametrize("same", [0.0, 0.8], ids=["independent games", "openings that decide"])
def test_intervals_hold_the_truth_as_often_as_they_say(same: float) -> None:
    # With colours swapped, an opening that decides gives each player one game: pairs vary less than single games.
    rng = np.random.default_rng(0)
    held, widths = 0, []
    for _ in range(1000):
        games = (rng.random((50, 2)) < 0.6).astype(float)
        decided = rng.random(50) < same
        games[decided] = [1.0, 0.0]
        low, high = wilson(games.mean(), independent_games(games.mean(1), np.full(50, 2)))
        truth = 0.6 * (1 - same) + 0.5 * same
        held += low <= truth <= high
        widths.append(high - low)
    assert 0.93 < held / 1000 < 0.98
    assert np.mean(widths) == pytest.approx(0.19 if same == 0 else 0.096, abs=0.01)


def test_games_that_were_not_finished_do_not_count() -> None:
    whole, part = score([1, 0, -1, 1]), score([1, 0, -1, 1, 1, 1], np.array([True] * 4 + [False] * 2))
    assert (part, part.interval) == (whole, whole.interval)
    half = score([1, 0, -1, 1, 0, -1], np.array([True] * 5 + [False]))
    assert (half.wins, half.draws, half.losses) == (2, 2, 1)
    assert half.interval[0] < half.share == 0.6 < half.interval[1]
    # By hand: deviations of the three pairs from 0.6 are 0.3, -0.2 and -0.1 points, and 2 * 0.24 for the one more.
    games = 0.24 / ((0.3**2 + 0.2**2 + 0.1**2 + 0.48) / 25)
    assert half.interval == pytest.approx(wilson(0.6, games))
    nothing = score([1, 0], np.zeros(2, bool))
    assert (nothing.games, str(nothing)) == (0, "a - b: no game is over yet")


def test_without_pairs_all_games_count_as_independent() -> None:
    assert MatchResult("a", "b", 7, 0, 3).interval == wilson(0.7, 10)
