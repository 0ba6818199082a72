"""Whether a goal is reached, and how to go further."""

import pytest

from tengen.config.settings.run import GoalSection
from tengen.run.counts import RunCounts, further, progress, reached

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
