"""The table and its chart."""

import json

from tengen.match import standings
from tengen.match.ratings import fit
from tengen.match.results import MatchResult


def test_a_table_with_a_chart() -> None:
    results = [MatchResult("net1", "random", 90, 0, 10), MatchResult("net2", "net1", 60, 10, 30)]
    ratings = fit(results, "random", also=["net3"])
    lines = standings.table(ratings, 100).splitlines()
    assert lines[1].split()[:6] == [
        "1",
        "net2",
        f"{ratings['net2'].elo:.0f}",
        f"{ratings['net2'].error:.0f}",
        "100",
        "65.0",
    ]
    assert lines[2].split()[:2] == ["2", "net1"]
    assert lines[3].split()[:3] == ["3", "random", "0"]
    assert lines[4] == "without a game: 1 (net3)"
    # The strongest is furthest to the right, and error bars are around it.
    columns = [line.rindex("o") for line in lines[1:4]]
    assert columns == sorted(columns, reverse=True)
    assert "-o-" in lines[1]
    assert lines[3].endswith("o")
    assert len(max(lines, key=len)) <= 100


def test_a_narrow_terminal_has_no_chart() -> None:
    ratings = fit([MatchResult("a" * 60, "random", 9, 0, 1)], "random")
    lines = standings.table(ratings, 60).splitlines()
    assert all("-o" not in line for line in lines)
    assert "..." in lines[1]


def test_no_games() -> None:
    assert standings.table(fit([], "random", also=["n"])) == "no games so far"


def test_equal_players_have_a_chart() -> None:
    assert "o" in standings.table(fit([MatchResult("a", "b", 5, 0, 5)], "a"))


def test_as_data() -> None:
    ratings = fit([MatchResult("a", "b", 7, 2, 1)], "b", also=["c"])
    found = json.loads(json.dumps(standings.to_dict(ratings, {"run": "r"})))
    assert (found["zero"], found["games"], found["unplayed"], found["run"]) == ("b", 10, ["c"], "r")
    assert [(one["rank"], one["name"], one["games"], one["points"]) for one in found["players"]] == [
        (1, "a", 10, 8.0),
        (2, "b", 10, 2.0),
    ]
