"""Strategies: which trials come next, with which settings and budget, from the scores of earlier ones.

A strategy is a pure function from the rounds so far, each with the scores of its trials, to the next round; its random
numbers depend on the seed and the round alone.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tengen.errors import OptionError
from tengen.sweep.space import MOST, Settings, Space

Number = int | float
Scores = Mapping[str, float | None]  # by trial: the higher the better; None if it failed or has none


@dataclass(frozen=True)
class Job:
    """A trial's part in a round: it goes on until the whole budget is used."""

    trial: str  # its number, as "007"
    settings: Settings
    budget: Number | None  # None: the configuration's own goal
    source: str | None = None  # the trial whose run it begins with a copy of


@dataclass(frozen=True)
class Round:
    """Trials that run side by side. `scores` are there when all of them have ended."""

    jobs: tuple[Job, ...]
    scores: Scores | None = None


class Strategy(Protocol):
    def following(self, rounds: Sequence[Round]) -> Round | None:
        """The next round, after all earlier ones were scored; None when there is nothing more to do."""
        ...


@dataclass(frozen=True)
class OneRound:
    """Every combination, or `trials` of them drawn at random, each with the whole budget."""

    space: Space
    budget: Number | None
    trials: int | None
    seed: int

    def following(self, rounds: Sequence[Round]) -> Round | None:
        return None if rounds else _beginning(_first(self.space, self.trials, self.seed), self.budget)


@dataclass(frozen=True)
class Halving:
    """Many trials begin with a small budget; after each round, the best 1/eta go on with eta times as much.

    The last round has the whole budget. If `trials` is None, it begins with every combination.
    """

    space: Space
    budget: Number
    trials: int | None
    eta: int
    seed: int

    def following(self, rounds: Sequence[Round]) -> Round | None:
        if not rounds:
            first = _first(self.space, self.trials, self.seed)
            return _beginning(first, self._budget(0, len(first)))
        began, number = len(rounds[0].jobs), len(rounds)
        wanted = began // self.eta**number
        best = ranked(rounds[-1])[:wanted]
        if not best:
            return None
        budget = self._budget(number, began)
        return Round(tuple(Job(job.trial, job.settings, budget) for job in best))

    def _budget(self, number: int, began: int) -> Number:
        last = 0  # round, with one trial left
        while began >= self.eta ** (last + 1):
            last += 1
        return _part(self.budget, 1, self.eta ** (last - number))


@dataclass(frozen=True)
class Population:
    """All trials go on, generation by generation; after each, perturbed copies of the best replace the worst.

    `kept` are settings that a copy does not perturb, since what was learned depends on them.
    """

    space: Space
    budget: Number
    population: int
    generations: int
    seed: int
    share: float = 0.25  # of the population that is replaced, and that is copied from
    kept: frozenset[str] = frozenset()

    def following(self, rounds: Sequence[Round]) -> Round | None:
        number = len(rounds)
        if number == self.generations:
            return None
        budget = _part(self.budget, number + 1, self.generations)
        source = _source(self.seed, number)
        if not rounds:
            return _beginning(self.space.draw(self.population, source), budget)
        order = ranked(rounds[-1])
        if not order:
            return None
        few = max(1, math.floor(self.share * self.population))
        best = order[:few]
        # Failed trials are always replaced, others among the worst only if there are better ones.
        replaced = max(self.population - len(order), min(few, self.population - len(best)))
        staying = order[: self.population - replaced]
        used = len({job.trial for earlier in rounds for job in earlier.jobs})
        jobs = [Job(job.trial, job.settings, budget) for job in staying]
        for _ in range(replaced):
            parent = source.choice(best)
            settings = self.space.perturb(parent.settings, source, self.kept)
            jobs.append(Job(_name(used), settings, budget, parent.trial))
            used += 1
        return Round(tuple(jobs))


def make(
    kind: Literal["grid", "random", "halving", "population"],
    space: Space,
    budget: Number | None,
    *,
    trials: int | None = None,
    eta: int = 3,
    population: int | None = None,
    generations: int | None = None,
    seed: int = 0,
    kept: frozenset[str] = frozenset(),
) -> Strategy:
    """The strategy of that name. OptionError says which option is missing, wrong, or for another strategy."""
    given = {"trials": (trials, 1, MOST), "population": (population, 2, MOST), "generations": (generations, 1, 10_000)}
    for name, (value, low, high) in given.items():
        owners = ("random", "halving") if name == "trials" else ("population",)
        if value is not None and kind not in owners:
            raise OptionError(f"--{name}: is for --strategy {' or '.join(owners)}, not for {kind}")
        if value is not None and not low <= value <= high:
            raise OptionError(f"--{name}: expected a whole number from {low} to {high}, got {value}")
    if kind in ("halving", "population") and budget is None:
        raise OptionError(f"--strategy {kind}: divides a budget; give --minutes, --steps, --games or --rows")
    if kind == "grid" or (kind == "halving" and trials is None):
        if space.size is None:
            ranges = ", ".join(axis.key for axis in space.axes if not hasattr(axis, "values"))
            need = "takes lists alone" if kind == "grid" else "needs --trials N"
            raise OptionError(f"--strategy {kind}: {need}, because {ranges} is a range")
        if space.size > MOST:
            raise OptionError(
                f"the grid has {space.size:,} combinations, more than {MOST:,}; try some: --strategy random --trials N"
            )
    if kind == "random" and trials is None:
        raise OptionError("--strategy random: needs --trials N, how many settings to draw")
    if kind in ("grid", "random"):
        return OneRound(space, budget, trials, seed)
    assert budget is not None
    if kind == "halving":
        if not 2 <= eta <= 100:
            raise OptionError(f"--eta: expected a whole number from 2 to 100, got {eta}")
        return Halving(space, budget, trials, eta, seed)
    if population is None or generations is None:
        raise OptionError("--strategy population: needs --population N and --generations G")
    return Population(space, budget, population, generations, seed, kept=kept)


def ranked(finished: Round) -> list[Job]:
    """The jobs of a round that have a score, the best first; of equal ones the earlier."""
    scores = finished.scores or {}
    scored = [(score, job) for job in finished.jobs if (score := scores.get(job.trial)) is not None]
    return [job for _, job in sorted(scored, key=lambda pair: -pair[0])]


def _first(space: Space, trials: int | None, seed: int) -> Sequence[Settings]:
    return list(space.all()) if trials is None else space.draw(trials, _source(seed, 0))


def _beginning(settings: Sequence[Settings], budget: Number | None) -> Round:
    return Round(tuple(Job(_name(number), each, budget) for number, each in enumerate(settings)))


def _part(whole: Number, over: int, under: int) -> Number:
    """The share over / under of the budget; steps, games and rows are whole numbers of at least 1."""
    if isinstance(whole, int):
        return max(1, -(-whole * over // under))
    return whole * over / under


def _name(number: int) -> str:
    return f"{number:03}"


def _source(seed: int, number: int) -> random.Random:
    return random.Random(f"tengen sweep {seed} {number}")
