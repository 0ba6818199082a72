"""The scores of trials: a figure from their metrics, or their strength on one scale for all of them.

The ratings of single runs have no common scale, because each estimates again how strong `mcts:100` is. So the matches
of all trials are rated together, with the references as common players.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tengen.errors import OptionError
from tengen.match.ratings import anchor, fit, is_reference, players_in
from tengen.match.results import MatchResult
from tengen.run import metrics
from tengen.schema import unknown
from tengen.sweep.trial import TrialResult

RATING = "rating"


@dataclass(frozen=True)
class TrialScore:
    """The score of one trial in the unit of the metric. `error` is half of a 95 % interval, None if unknown."""

    value: float
    error: float | None = None


def more_is_better(metric: str, best: str | None = None) -> bool:
    """Losses, errors and regrets are better the lower they are, unless `best` ("high" or "low") is given."""
    return best == "high" if best else re.search(r"loss|error|regret", metric) is None


def scores(results: Mapping[str, TrialResult], metric: str) -> dict[str, TrialScore]:
    """The scores of the trials that have one; trials that failed have none."""
    good = {trial: result for trial, result in results.items() if result.status != "failed"}
    if metric == RATING and any(result.matches for result in good.values()):
        return _rated(good)
    found = {trial: figure(result.values, metric) for trial, result in good.items()}
    return {trial: TrialScore(value) for trial, value in found.items() if value is not None}


def comparable(found: Mapping[str, TrialScore], highest: bool) -> dict[str, float]:
    """The scores with signs such that more is better; `highest`: it is already."""
    return {trial: score.value if highest else -score.value for trial, score in found.items()}


def figure(values: Mapping[str, float | None], name: str) -> float | None:
    """The figure of that name: its full name, or the end of one after a dot; `progress` before other kinds."""
    names = {RATING: "rating.elo"}
    wanted = names.get(name, name)
    if wanted in values:
        return metrics.finite(values[wanted])
    ends = [full for full in values if full.endswith(f".{wanted}")]
    # The trainer's own name for a loss comes before the one that is displayed.
    ends.sort(key=lambda full: (not full.startswith("progress."), "figures" not in full, full))
    return metrics.finite(values[ends[0]]) if ends else None


def check(result: TrialResult, metric: str) -> None:
    """OptionError if a trial that has ended well has no figure of that name."""
    known = list(result.values)
    ends = {".".join(parts[start:]) for name in known for parts in [name.split(".")] for start in range(len(parts))}
    if result.status == "done" and known and metric != RATING and metric not in ends:
        short = sorted({name.rpartition(".")[2] for name in known})
        raise OptionError(f"--metric {metric}: {unknown('figure', metric, short)}")


def _rated(results: Mapping[str, TrialResult]) -> dict[str, TrialScore]:
    """The ratings of each trial's newest network by its games against the references."""
    played = [
        MatchResult(f"trial {trial}", b, wins, draws, losses)
        for trial, result in results.items()
        for a, b, wins, draws, losses in result.matches
        if a == result.matches[-1][0] and is_reference(b)
    ]
    if not played:
        return {}
    ratings = fit(played, anchor(players_in(played)))
    found = {trial: ratings[match.a] for match in played if (trial := match.a.removeprefix("trial "))}
    # Rounded, so that equal results are equal scores, whatever the arithmetic did.
    return {trial: TrialScore(round(rating.elo, 6), rating.error) for trial, rating in found.items()}
