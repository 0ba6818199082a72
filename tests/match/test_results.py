"""The file of results: what was written comes back; what is broken is named and not touched."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.errors import TengenError
from tengen.match.results import MatchResult, append, read

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
        ("[]", "expected an object"),
        ("[" * 100_000, "not the result of a match"),
        ("", "line 2"),
        (GOOD.replace("1", "2", 1), "expected schema 1, got 2"),
        (GOOD.replace('"y"', '"x"'), "two players"),
        (GOOD.replace('"y"', '""'), "two players"),
        (GOOD.replace('"y"', "7"), "two players"),
        (GOOD.replace('"losses": 2', '"losses": -2'), "whole numbers"),
        (GOOD.replace('"losses": 2', '"losses": 2.5'), "whole numbers"),
        (GOOD.replace('"losses": 2', '"losses": true'), "whole numbers"),
        (GOOD.replace('"losses": 2', '"losses": NaN'), "whole numbers"),
        (GOOD.replace('"losses": 2', '"lost": 2'), "whole numbers"),
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
    with pytest.raises(TengenError, match="it is no text"):
        read(path)


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(TengenError, match="cannot be read"):
        read(tmp_path)


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TengenError, match="results.jsonl: "):
        append(tmp_path / "file" / "results.jsonl", ONE)
