"""Whether a goal is reached, and how to go further."""

import pytest

from tengen.config.settings.run import GoalSection
from tengen.run.goals import Outlook, RunCounts, further, outlook, progress, reached

NONE = {"minutes": None, "games": None, "rows": None, "steps": None}
COUNTS = RunCounts(games=1000, rows=9000, seconds=90.0)


@pytest.mark.parametrize(
    ("goal", "words", "more"),
    [
        ({}, "", {}),
        ({"minutes": 1.5}, "1.5 minutes are over", {"minutes": 3.0}),
        ({"minutes": 1.6}, "", {}),
        ({"games": 1000}, "1,000 games are played", {"games": 2000}),
        ({"rows": 9001}, "", {}),
        ({"steps": 70, "rows": 10_000}, "70 steps are learned", {"steps": 140}),
        ({"minutes": 1.0, "games": 600}, "1 minute is over", {"minutes": 2.0, "games": 1200}),
        ({"minutes": 0.5, "games": 10}, "0.5 minutes are over", {"minutes": 2.5, "games": 1010}),
    ],
)
def test_goals(goal: dict[str, float], words: str, more: dict[str, float]) -> None:
    section = GoalSection(**{**NONE, **goal})
    assert reached(section, COUNTS, 70) == words
    assert further(section, COUNTS, 70) == more


def test_counts_add_up() -> None:
    assert COUNTS.plus(1, 20, 300.0) == RunCounts(games=1001, rows=9020, evaluations=300.0, seconds=90.0)


def test_progress_is_that_of_the_part_that_is_nearest() -> None:
    counts = RunCounts(games=5, rows=100, seconds=90.0)
    assert progress(GoalSection(minutes=3.0, games=100, rows=None, steps=20), counts, 4) == 0.5
    assert progress(GoalSection(minutes=None, games=100, rows=None, steps=20), counts, 4) == 0.2
    assert progress(GoalSection(minutes=None, games=None, rows=None, steps=None), counts, 4) == 0


@pytest.mark.parametrize(
    ("goal", "counts", "speeds", "expected"),
    [
        ({}, {"seconds": 60}, {}, None),
        ({"minutes": 10}, {"seconds": 150}, {}, Outlook("10 minutes", 0.25, 450)),
        ({"minutes": 1.5}, {"seconds": 45}, {}, Outlook("1.5 minutes", 0.5, 45)),
        ({"minutes": 10}, {"seconds": 700}, {}, Outlook("10 minutes", 1.0, 0)),
        # By the present speed, by the mean if there is none, or not at all.
        ({"games": 4000}, {"seconds": 9, "games": 100}, {"games": 50}, Outlook("4,000 games", 0.025, 78)),
        ({"rows": 400}, {"seconds": 10, "rows": 100}, {}, Outlook("400 rows", 0.25, 30)),
        ({"steps": 400}, {"seconds": 10}, {}, Outlook("400 steps", 0.0, None)),
        # The part that is reached first.
        ({"minutes": 10, "rows": 70}, {"seconds": 60, "rows": 10}, {"rows": 1}, Outlook("70 rows", 1 / 7, 60)),
        ({"minutes": 1.5, "rows": 70}, {"seconds": 60, "rows": 10}, {"rows": 1}, Outlook("1.5 minutes", 2 / 3, 30)),
        ({"steps": 0}, {}, {}, Outlook("0 steps", 1.0, 0)),
    ],
)
def test_outlook(
    goal: dict[str, float], counts: dict[str, float], speeds: dict[str, float], expected: Outlook | None
) -> None:
    found = outlook(GoalSection(**{**NONE, **goal}), RunCounts(**counts), 0, speeds)
    if expected is None or found is None:
        assert found is expected
        return
    assert (found.goal, found.share) == (expected.goal, pytest.approx(expected.share))
    assert found.left == (None if expected.left is None else pytest.approx(expected.left))


def test_an_outlook_in_words() -> None:
    assert str(Outlook("10 minutes", 0.256, 445.9)) == "26 % of 10 minutes, 00:07:25 left"
    assert str(Outlook("400 steps", 0, None)) == "0 % of 400 steps"
