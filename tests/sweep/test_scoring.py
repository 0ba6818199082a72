"""Figures by their names, and one scale for the strength of all trials."""

import math

import pytest

from tengen.errors import OptionError
from tengen.sweep import scoring
from tengen.sweep.trial import TrialResult


def elo(share: float) -> float:
    return 400 * math.log10(share / (1 - share))


def test_directions() -> None:
    assert scoring.more_is_better("rating")
    assert not scoring.more_is_better("value_loss")
    assert scoring.more_is_better("value_loss", "high")
    assert not scoring.more_is_better("moves", "low")


def test_a_figure_by_its_full_name_or_the_end_of_it() -> None:
    values = {"evaluation.loss": 9.0, "progress.loss": 1.0, "progress.figures.loss": 2.0, "progress.figures.none": None}
    assert scoring.figure(values, "loss") == 2.0
    assert scoring.figure(values, "progress.loss") == 1.0
    assert scoring.figure(values, "evaluation.loss") == 9.0
    assert scoring.figure(values, "none") is None
    assert scoring.figure(values, "oss") is None
    assert scoring.figure({"rating.elo": 5.0}, "rating") == 5.0


def test_scores_are_of_those_that_did_not_fail() -> None:
    results = {
        "000": TrialResult("done", {"progress.loss": 2.0}),
        "001": TrialResult("failed", {"progress.loss": 1.0}),
        "002": TrialResult("done", {"progress.loss": None}),
        "003": TrialResult("stopped", {"progress.loss": 3.0}),
    }
    found = scoring.scores(results, "loss")
    assert {trial: score.value for trial, score in found.items()} == {"000": 2.0, "003": 3.0}
    assert scoring.comparable(found, False) == {"000": -2.0, "003": -3.0}


def test_ratings_share_their_references() -> None:
    """Both beat random alike; only that one does better against mcts:100 makes it stronger, on the same scale."""
    weak = TrialResult("done", matches=(("n", "random", 40, 0, 0), ("n", "mcts:100", 10, 0, 30)))
    strong = TrialResult("done", matches=(("n", "random", 40, 0, 0), ("n", "mcts:100", 30, 0, 10)))
    found = scoring.scores({"000": weak, "001": strong}, "rating")
    # A drawn game is added between those who met, so 30.5 of 41 and 10.5 of 41.
    assert found["001"].value - found["000"].value == pytest.approx(elo(30.5 / 41) - elo(10.5 / 41), rel=0.1)
    assert found["000"].error is not None


def test_only_the_newest_network_counts() -> None:
    before = (("old", "random", 0, 0, 10), ("old", "older", 10, 0, 0))
    played = (("new", "random", 5, 0, 5), ("new", "old", 10, 0, 0))
    found = scoring.scores({"000": TrialResult("done", matches=(*before, *played))}, "rating")
    assert found["000"].value == pytest.approx(0.0, abs=1e-6)


def test_without_references_there_is_no_scale() -> None:
    assert scoring.scores({"0": TrialResult("done", matches=(("a", "b", 1, 0, 0),))}, "rating") == {}
    assert scoring.scores({"0": TrialResult("done")}, "rating") == {}


def test_a_figure_that_nobody_writes() -> None:
    result = TrialResult("done", {"progress.figures.value_loss": 1.0, "progress.loss": None})
    for name in ("loss", "value_loss", "figures.value_loss", "progress.loss", "rating"):
        scoring.check(result, name)
    with pytest.raises(OptionError, match="--metric value_los: unknown figure, did you mean value_loss"):
        scoring.check(result, "value_los")
    scoring.check(TrialResult("failed", result.values), "value_los")
