"""The text at the end of a run: exact, and sensible with few ratings or none."""

import itertools
import math
from dataclasses import replace

import pytest

from tengen.monitor import summary
from tengen.monitor.summary import RatingPoint, RunSummary
from tengen.run.changes import SettingChange
from tengen.run.goals import RunCounts

TABLE = """\
player       Elo     +-   games   score
c4-s9000     729    280     200  89.5 %
c4-s100      491    292     100  20.0 %
random         0            100   1.0 %"""
RUN = RunSummary(
    name="connect_four",
    counts=RunCounts(games=5120, rows=98304, seconds=600),
    steps=1204,
    reason="10 minutes are over",
    losses={"loss": 2.31, "policy": 1.72, "value": 0.59},
    table=TABLE,
    curve=(RatingPoint(0, -37), RatingPoint(150, 300), RatingPoint(300, 480), RatingPoint(600, 700)),
    network="runs/c4/models/c4-s9000",
    commands={
        "play against it": "tengen play runs/c4/models/c4-s9000",
        "train further": "tengen run connect_four --base runs/c4",
    },
)

TEXT = """\
connect_four: 5,120 games, 98,304 rows, 1,204 steps in 00:10:00 (10 minutes are over)
loss 2.31 (policy 1.72 value 0.59)

TABLE

rating over time (Elo)
CHART

the network:     runs/c4/models/c4-s9000
play against it: tengen play runs/c4/models/c4-s9000
train further:   tengen run connect_four --base runs/c4"""

BRAILLE = """\
 800 ┤
     │                                                 ⢀⣀⣀⣀⠤⠤⠤⠒⠒⠒⠋
 600 ┤                                     ⣀⣀⣀⡤⠤⠤⠖⠒⠒⠊⠉⠉⠁
     │                          ⢀⣀⣠⠤⠤⠒⠒⠒⠉⠉⠉⠁
 400 ┤                   ⣀⣀⠤⠤⠒⠚⠉⠉
     │             ⣀⠤⠖⠒⠉⠉
 200 ┤         ⣀⠤⠒⠉
     │    ⢀⣠⠴⠒⠉
   0 ┤⢀⣠⠴⠚⠉
     │⠉
-200 ┤
     └────────────────────────────────────────────────────────────
      00:00:00                  00:05:00                  00:10:00"""

LETTERS = """\
 800 +
     |                                                    ********
 600 +                                       **************
     |                            ***********
 400 +                   *********
     |             *******
 200 +        *****
     |    *****
   0 +****
     |
-200 +
     +------------------------------------------------------------
      00:00:00                  00:05:00                  00:10:00"""


@pytest.mark.parametrize(
    ("encoding", "chart"),
    [("utf-8", BRAILLE), ("UTF-16", BRAILLE), ("ascii", LETTERS), ("latin-1", LETTERS), (None, LETTERS)],
)
def test_the_text(encoding: str | None, chart: str) -> None:
    assert (
        summary.render(RUN, encoding).splitlines() == TEXT.replace("TABLE", TABLE).replace("CHART", chart).splitlines()
    )


def test_the_fallback_can_be_printed() -> None:
    summary.render(RUN, "ascii").encode("ascii")


def test_no_rating_no_network_nothing_learned() -> None:
    run = RunSummary("go9", RunCounts(seconds=3.2), 0, commands={"go on": "tengen run go9 --base runs/go9"})
    assert summary.render(run) == (
        "go9: 0 games, 0 rows, 0 steps in 00:00:03\n\n"
        "no match was played, so there is no rating\n\n"
        "go on:       tengen run go9 --base runs/go9"
    )
    assert summary.render(replace(run, commands={})).endswith("there is no rating")


def test_one_rating_is_a_point() -> None:
    assert summary.chart([]) == []
    *body, _, times = summary.chart([RatingPoint(60, 100)], plain=True)
    assert sum(line.count("*") for line in body) == 1
    assert body[-1].startswith("100 +")
    assert body[-1].endswith("*"), "at the right end, since that is the present"
    assert times.endswith("00:01:00")
    assert "over time" in summary.render(replace(RUN, curve=(RatingPoint(3, 100),)))


def test_the_time_goes_on_after_the_last_rating() -> None:
    *body, _, times = summary.chart([RatingPoint(0, 100)], 90.0, plain=True)
    assert times.split() == ["00:00:00", "00:00:45", "00:01:30"]
    assert body[-1] == "100 +*"
    assert "00:10:00" in summary.render(replace(RUN, curve=(RatingPoint(3, 100),)))


def test_bars_show_how_sure_ratings_are() -> None:
    curve = [RatingPoint(0, 0, 20), RatingPoint(100, 100, 45)]
    assert (
        summary.chart(curve, plain=True)
        == """\
150 +                                                           |
    |                                                           |
100 +                                                    ********
    |                                     ****************      |
 50 +                      ***************                      |
    ||       ***************
  0 +********
    ||
-50 +
    +------------------------------------------------------------
     00:00:00                  00:00:50                  00:01:40""".splitlines()
    )
    right = [line[-1] for line in summary.chart(curve)[:5]]
    assert right == list("⢐⢐⢒⢐⠐"), "every second dot, at the very end"


def test_a_bar_that_is_far_too_long_is_cut() -> None:
    lines = summary.chart([RatingPoint(0, 0, 5000), RatingPoint(100, 100, 30)], plain=True)
    assert "200" not in lines[0]
    assert lines[0].split()[0] in ("150", "100", "200")


def test_the_verdict_stands_above_the_commands() -> None:
    text = summary.render(replace(RUN, verdict="It wins.\nTo make it stronger:\n  train it further"))
    assert text.index("rating over time") < text.index("It wins.") < text.index("the network:")


def test_two_ratings_are() -> None:
    assert (
        summary.chart([RatingPoint(0, 0), RatingPoint(10, 10)], plain=True)
        == """\
10 +                                                        ****
   |                                                  *******
   |                                            *******
   |                                      *******
   |                                *******
   |                           ******
   |                     ******
   |               ******
   |         ******
   |   ******
 0 +***
   +------------------------------------------------------------
    00:00:00                  00:00:05                  00:00:10""".splitlines()
    )


def test_ratings_in_any_order_and_such_that_are_no_numbers() -> None:
    strange = [RatingPoint(math.nan, 1), RatingPoint(5, math.inf), RatingPoint(-1, 0), RatingPoint(math.inf, 3)]
    assert summary.chart([*reversed(RUN.curve), *strange]) == summary.chart(RUN.curve)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(
    "curve",
    [
        [RatingPoint(0, 0), RatingPoint(0, 0)],
        [RatingPoint(5, -1200), RatingPoint(5, 1900)],
        [RatingPoint(0, 1e-9), RatingPoint(1e9, -1e-9)],
        [RatingPoint(0, 0), RatingPoint(1, 123456.7)],
        [RatingPoint(n, 100 * math.sin(n)) for n in range(500)],
    ],
)
def test_charts_have_a_size(curve: list[RatingPoint], plain: bool) -> None:
    *body, floor, times = summary.chart(curve, plain=plain)
    assert 6 <= len(body) <= 12
    assert max(map(len, body)) <= len(floor) == len(times) <= 72
    assert any(line[len(floor) - 60 :].strip() for line in body)


@pytest.mark.parametrize("low", [-1234.5, -10, -0.1, 0, 3, 399.9])
@pytest.mark.parametrize("span", [0, 1e-6, 1, 9.9, 10, 11, 49, 50, 51, 99.9, 777, 1000, 2500, 99999])
def test_ticks_are_round_even_and_around(low: float, span: float) -> None:
    ticks = summary._ticks(low, low + span)
    steps = {b - a for a, b in itertools.pairwise(ticks)}
    assert len(steps) == 1
    assert str(steps.pop()).rstrip("0") in ("1", "2", "5")
    assert ticks[0] <= low <= low + span <= ticks[-1]
    assert 2 <= len(ticks) <= 8


@pytest.mark.parametrize("count", [1, 16, 17, 100])
def test_a_long_table_is_cut_in_the_middle(count: int) -> None:
    table = "\n".join(["player", *(f"n{number}" for number in range(count))])
    shown = summary.render(replace(RUN, table=table, curve=())).split("\n\n")[1].splitlines()
    if count <= 16:
        assert shown == table.splitlines()
    else:
        assert len(shown) == 17
        assert [shown[0], shown[1], shown[-1]] == ["player", "n0", f"n{count - 1}"]
        assert sum(line.startswith("n") for line in shown) + int(shown[12].split()[1]) == count


def test_changes_of_settings_are_numbered_below_the_chart() -> None:
    made = [SettingChange(f"2026-01-31 12:00:0{at} UTC", "goal.steps", "1", "2") for at in (1, 2)]
    lines = summary.chart([RatingPoint(100, 50)], changes=[(0.0, made[0]), (100.0, made[1])])
    axis, _, marks, *words = lines[-5:]
    margin = axis.index("└") + 1
    assert (marks[margin], marks[margin + 59]) == ("1", "2")
    assert words == ["1: 00:00:00  goal.steps: 1 -> 2", "2: 00:01:40  goal.steps: 1 -> 2"]
