"""The plan of a sweep: the configuration, what is varied in it, the strategy, and the budget of a trial.

A plan is made and checked before anything starts, kept as `plan.json` beside the configuration, and never changes.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tengen import config as configuration
from tengen import schema
from tengen.config.trainers import ROLES
from tengen.errors import ConfigError, OptionError
from tengen.sweep import space, strategies
from tengen.sweep.scoring import RATING, more_is_better
from tengen.sweep.space import Settings, Space
from tengen.sweep.strategies import Job, Number, Round, Strategy

UNITS = ("minutes", "steps", "games", "rows")
_LEARNED = ("game", "net", "run", "buffer")  # sections that what was learned depends on
_ROLE_LEARNED = ("games", "n_step", "dueling")  # settings of a role that its games and values depend on
_SHOWN = 10  # problems that are listed
Kind = Literal["grid", "random", "halving", "population"]


@dataclass(frozen=True)
class SweepPlan:
    """The plan without the configuration. `budget` is that of a full trial in `unit`; None: the configuration's."""

    strategy: Kind
    axes: tuple[Mapping[str, Any], ...]
    metric: str
    highest: bool
    unit: str | None = None
    budget: Number | None = None
    trials: int | None = None
    eta: int = 3
    population: int | None = None
    generations: int | None = None
    seed: int = 0
    schema: Literal[1] = 1

    @property
    def decides(self) -> bool:
        """Whether scores decide which trials go on."""
        return self.strategy in ("halving", "population")


@dataclass(frozen=True)
class PlannedTrial:
    """A plan with its configuration."""

    plan: SweepPlan
    source: str  # the configuration's name or file
    sets: tuple[str, ...] = ()  # overrides of it that all trials have
    notes: tuple[str, ...] = ()  # for people

    @functools.cached_property
    def config(self) -> Any:
        return configuration.load_any(self.source, self.sets)

    @property
    def space(self) -> Space:
        return space.restored(self.plan.axes, self.problems)

    @property
    def strategy(self) -> Strategy:
        plan, names = self.plan, ("trials", "eta", "population", "generations", "seed")
        kept = frozenset(key for axis in plan.axes if _is_kept(key := axis["key"], self.config))
        options = {name: getattr(plan, name) for name in names}
        return strategies.make(plan.strategy, self.space, plan.budget, kept=kept, **options)

    def problems(self, settings: Settings) -> Sequence[str]:
        """The problems of these settings together."""
        return self._wrong([space.override(key, value) for key, value in settings.items()])

    def overrides(self, job: Job, first: Round) -> tuple[str, ...]:
        """The settings of a trial for `tengen run`; only the budget differs between the rounds of a trial."""
        changes = dict(job.settings)
        alike = [other for other in first.jobs if other.settings == job.settings and other.trial < job.trial]
        apart = int(job.trial) if self.plan.strategy == "population" else len(alike)
        if apart and "run.seed" not in changes:  # the same settings with the same seed would be the same run
            changes["run.seed"] = (self.config.run.seed + apart) % 2**32
        if self.plan.unit is not None:
            changes[f"goal.{self.plan.unit}"] = job.budget
        return tuple(space.override(key, value) for key, value in changes.items())

    def check(self) -> None:
        """ConfigError or OptionError if the first round could not be started."""
        rating = getattr(self.config, "rating", None)
        if self.plan.metric == RATING and rating is not None and not rating.references:
            raise OptionError(
                "--metric rating: needs players that all trials meet; "
                "give some, as with --set 'rating.references=[random, mcts:100]'"
            )
        first = self.strategy.following(())
        assert first is not None
        problems = [each for job in first.jobs for each in self._wrong(self.overrides(job, first))]
        if problems := list(dict.fromkeys(problems)):
            more = [f"... and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
            raise ConfigError([*problems[:_SHOWN], *more])

    def _wrong(self, changes: Sequence[str]) -> tuple[str, ...]:
        try:
            configuration.load_any(self.source, merged(self.sets, changes))
        except ConfigError as error:
            return error.problems
        return ()


def make(
    config: str,
    overrides: Sequence[str],
    grids: Sequence[str],
    randoms: Sequence[str],
    *,
    strategy: Kind | None = None,
    metric: str | None = None,
    best: str | None = None,
    budgets: Mapping[str, Number | None],
    **options: Any,
) -> PlannedTrial:
    """The plan from the command line. ConfigError and OptionError say what is wrong."""
    given = {unit: amount for unit, amount in budgets.items() if amount is not None}
    if len(given) > 1:
        words = " and ".join(f"--{unit}" for unit in given)
        raise OptionError(f"{words}: a trial has one budget; give the other limit with --set goal.KEY=N")
    loaded = configuration.load_any(config, overrides)
    axes = space.parse(grids, randoms, loaded)
    ranged = any(isinstance(axis, space.ValueRange) for axis in axes)
    kind: Kind = strategy or ("random" if options.get("trials") is not None or ranged else "grid")
    if options.get("eta") is not None and kind != "halving":
        raise OptionError(f"--eta: is for --strategy halving, not for {kind}")
    unit, budget = next(iter(given.items()), (None, None))
    keys = {_key(text) for text in overrides}
    if both := [axis.key for axis in axes if axis.key in keys]:
        raise OptionError(f"{both[0]}: is both varied and given with --set; leave one of them out")
    sets = tuple(overrides)
    if unit is not None:
        others = [f"goal.{other}=null" for other in UNITS if other != unit and f"goal.{other}" not in keys]
        sets = merged(sets, [*others, space.override(f"goal.{unit}", budget)])
        configuration.load_any(config, sets)
    elif kind in ("halving", "population"):
        unit, budget = _own_goal(loaded, kind)
    elif all(getattr(loaded.goal, each) is None for each in UNITS):
        raise OptionError("trials would never end: give --minutes, --steps, --games or --rows")
    metric = metric or _usual_metric(loaded)
    given = {name: value for name, value in options.items() if value is not None}
    varied = tuple(schema.to_dict(axis) for axis in axes)
    plan = SweepPlan(kind, varied, metric, more_is_better(metric, best), unit, budget, **given)
    planned = PlannedTrial(plan, config, sets)
    if plan.decides:
        planned = _scheduled(planned, {axis.key for axis in axes})
    planned.check()
    return planned


def merged(sets: Sequence[str], changes: Sequence[str]) -> tuple[str, ...]:
    """The overrides, with the changes in place of those of the same setting."""
    changed = {_key(text) for text in changes}
    return (*(text for text in sets if _key(text) not in changed), *changes)


def _key(override: str) -> str:
    return override.partition("=")[0].strip()


def _own_goal(config: Any, kind: str) -> tuple[str, Number]:
    goal = {unit: amount for unit in UNITS if (amount := getattr(config.goal, unit)) is not None}
    if len(goal) != 1:
        raise OptionError(f"--strategy {kind}: divides a budget; give --minutes, --steps, --games or --rows")
    return next(iter(goal.items()))


def _scheduled(planned: PlannedTrial, varied: set[str]) -> PlannedTrial:
    """Let the learning rate fall over a whole trial, not over each round."""
    plan, config = planned.plan, planned.config
    schedule = getattr(getattr(config, "train", None), "schedule", None)
    if schedule is None or schedule.kind != "cosine" or schedule.length or "train.schedule.length" in varied:
        return planned
    if plan.unit == "steps" and isinstance(plan.budget, int) and plan.budget > schedule.warmup:
        sets = merged(planned.sets, [space.override("train.schedule.length", plan.budget)])
        note = f"the learning rate falls over all {plan.budget:,} steps of a full trial"
        return replace(planned, sets=sets, notes=(note,))
    note = (
        "train.schedule: the learning rate falls to its lowest at the end of every round and rises again; with --steps "
        "it would fall over a whole trial, with --set train.schedule.kind=constant it would stay"
    )
    return replace(planned, notes=(note,))


def _usual_metric(config: Any) -> str:
    """The strength of networks if it is measured, otherwise the loss.

    For trainers of roles it is the result against a player that does not learn: losses of deep Q-learning say little,
    and in games against each other both sides change.
    """
    if isinstance(config, configuration.TrainerConfig):
        learning = [role for role, settings in config.roles.items() if settings is not None]
        role, others = learning[0], [name for name in config.roles if name != learning[0]]
        if not others:
            return role
        fixed = [name for name in config.evaluation.against if name in ("random", "first", "last")]
        return f"{role}_vs_{fixed[0]}" if len(learning) > 1 and fixed else f"{role}_vs_{others[0]}"
    return RATING if getattr(getattr(config, "rating", None), "references", ()) else "loss"


def _is_kept(key: str, config: Any) -> bool:
    """Whether what was learned depends on the setting: the game, a network, the kind of an optimiser."""
    parts = key.split(".")
    is_role = isinstance(config, configuration.TrainerConfig) and parts[0] in (*ROLES, *config.roles)
    if is_role and parts[-1] in _ROLE_LEARNED:
        return True
    return any(part in _LEARNED for part in parts[:-1]) or parts[-1] == "kind" or key == "reward"
