"""How strong a network became, in words, and what would make it stronger, judged by its results."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tengen.match.ratings import Ratings
from tengen.match.results import MatchResult
from tengen.run.networks import UNTRAINED
from tengen.words import clock

_WINS = 0.97  # share of the points above which an opponent is too weak to measure against
_TOWER = re.compile(r"b(\d+)c(\d+)(.*)")
_LAYERS = re.compile(r"mlp(\d+)x(\d+)(.*)")


@dataclass(frozen=True)
class StrengthGain:
    since: float  # seconds of the run
    network: str
    elo: float
    error: float

    @property
    def certain(self) -> bool:
        return self.elo > self.error


@dataclass(frozen=True)
class RatedStrength:
    """The rated networks of a run, in the order of time: (seconds of the run, name)."""

    ratings: Ratings
    results: Sequence[MatchResult]
    networks: Sequence[tuple[float, str]]

    @property
    def newest(self) -> str:
        return self.networks[-1][1]

    def score(self, opponent: str) -> MatchResult | None:
        """Result of the newest network against an opponent; None if they never met."""
        met = [one for one in self.results if (one.a, one.b) == (self.newest, opponent)]
        totals = (sum(getattr(one, what) for one in met) for what in ("wins", "draws", "losses"))
        return MatchResult(self.newest, opponent, *totals) if met else None

    @property
    def references(self) -> list[str]:
        """Opponents of the newest network besides networks of the run, strongest first."""
        own = {name for _, name in self.networks}
        return [one.name for one in self.ratings.players if one.name not in own and self.score(one.name) is not None]

    def gain(self) -> StrengthGain | None:
        """The gain since about half the time; None if that is not known."""
        earlier = [one for one in self.networks[:-1] if one[0] <= self.networks[-1][0] / 2]
        if not earlier:
            return None
        return StrengthGain(*earlier[-1], *self.ratings.difference(self.newest, earlier[-1][1]))


def in_words(rated: RatedStrength, elapsed: float) -> str:
    """One paragraph about the newest network."""
    ratings, name = rated.ratings, rated.newest
    if name == UNTRAINED:
        return ""
    scores = [_against(score) for other in rated.references if (score := rated.score(other)) is not None]
    known = {one.name for one in ratings.players}
    text = f"After {clock(elapsed)} the network scores {', '.join(scores)}." if scores else ""
    above = []
    if ratings.anchor != name:
        above.append(_above(ratings, name, ratings.anchor, "play" if ratings.anchor == "random" else ""))
    if UNTRAINED in known and ratings.anchor != UNTRAINED:
        above.append(_above(ratings, name, UNTRAINED, "", "the untrained network"))
    if above:
        text = f"{text} It is {' and '.join(above)}.".lstrip()
    return text


def hints(rated: RatedStrength | None, more_search: str, larger: str, references: Sequence[str]) -> list[str]:
    """What would make it stronger, most promising first; `more_search` and `larger` are commands."""
    longer = "train it further (the command is below)"
    if rated is None or rated.newest == UNTRAINED:
        return [longer]
    gain = rated.gain()
    flat = gain is not None and not gain.certain and gain.network != UNTRAINED
    if gain is None:
        found = [f"{longer}: there are too few ratings to see whether it still improves"]
    elif gain.certain:
        found = [f"{longer}: it still improves, by {gain.elo:.0f} +-{gain.error:.0f} Elo since {clock(gain.since)}"]
    elif flat:
        what = f"{gain.elo:+.0f} +-{gain.error:.0f} Elo since {clock(gain.since)}"
        found = [f"{longer}; it is not certain that this helps: {what}"]
    else:
        found = [f"{longer}: it has not learned enough yet to be certainly stronger than the untrained network"]
    if more_search:
        found.append(f"let it search more when it plays: {more_search}")
    if larger:
        found.append(f"begin again with a larger network, which needs more time: {larger}")
    if flat:
        found = [*found[1:], found[0]]
    missed = [name for name in references if rated.score(name) is None]
    scores = [score for name in rated.references if (score := rated.score(name))]
    if missed:
        found.append(
            f"to see how strong it is, give it more time: there was none for matches against {', '.join(missed)}"
        )
    elif scores and all(score.points >= _WINS * score.games for score in scores):
        counts = [int(name.removeprefix("mcts:")) for name in references if name.startswith("mcts:")]
        listed = ", ".join((*references, f"mcts:{min(4 * max(counts, default=25), 9999)}"))
        found.append(f"to see how strong it is, add a stronger opponent: --set 'rating.references=[{listed}]'")
    return found


def larger_network(name: str) -> str:
    """The name of a network with about four times as many parameters; empty for names of other forms."""
    if match := _TOWER.fullmatch(name):
        blocks, channels = int(match[1]), int(match[2])
        return f"b{math.ceil(1.5 * blocks)}c{math.ceil(1.6 * channels / 8) * 8}{match[3]}"
    if match := _LAYERS.fullmatch(name):
        return f"mlp{match[1]}x{2 * int(match[2])}{match[3]}"
    return ""


def _against(score: MatchResult) -> str:
    low, high = score.interval
    sure = f"{100 * low:.0f} to {100 * high:.0f} %, {score.games} games"
    return f"{100 * score.share:.0f} % against {score.b} ({sure})"


def _above(ratings: Ratings, name: str, other: str, kind: str, called: str = "") -> str:
    gap, error = ratings.difference(name, other)
    where = "above" if gap >= 0 else "below"
    return f"{abs(gap):.0f} +-{error:.0f} Elo {where} {called or f'{other} {kind}'.strip()}"
