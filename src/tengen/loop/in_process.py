"""What runs in one process have in common: how they are opened, reported, rated and closed."""

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from tengen.analysis import run_chart
from tengen.config.settings.train import CheckpointSettings
from tengen.errors import TengenError
from tengen.loop.rating import Rater
from tengen.match.results import MatchResult
from tengen.monitor.display import Display
from tengen.monitor.reporting import RunReporter
from tengen.run import goals, safe_exit
from tengen.run.config_file import ConfigWatch
from tengen.run.goals import RunCounts, SteadyProgress, TimeBudget
from tengen.run.metrics import FIRST, Metrics, TensorBoard
from tengen.run.networks import RunNetworks
from tengen.run.part import Stop
from tengen.run.part_status import StatusWriter
from tengen.run.status import RatedNetwork, RunStatus
from tengen.train.session import TrainingSession

TRAINER = "main"
SESSION = "session"  # the kind of metrics with which every start of a run begins


class InProcessRun(contextlib.AbstractContextManager):
    """One run in the directory `base`. Subclasses have `prepare`, which resumes it, and `run`."""

    kind = ""  # as `tengen status` shows it
    trainer: Any
    session: TrainingSession[Any]

    def __init__(
        self, config: Any, base: Path, display: Display, *, tensorboard: bool = False, began: float | None = None
    ) -> None:
        """`began` is when the process began, by `time.monotonic`."""
        self.config, self.base, self._began = config, base, began
        self.counts = RunCounts()
        self._begun: set[str] = set()  # what this process has done for the first time
        self._display, self._tensorboard = display, tensorboard
        self._closing = contextlib.ExitStack()

    def __exit__(self, kind: object = None, error: BaseException | None = None, trace: object = None) -> None:
        if error is None:
            self._closing.close()
        else:  # the first error is the one to show
            with contextlib.suppress(TengenError):
                self._closing.close()

    def _open(self, *, parts_report: bool = False) -> None:
        """Open the metrics and the status file. With `parts_report`, the status shows what the parts say."""
        closing = self._closing
        tensorboard = closing.enter_context(TensorBoard(self.base)) if self._tensorboard else None
        self._metrics = closing.enter_context(Metrics(self.base, since=self._began))
        self._status_writer = closing.enter_context(StatusWriter(self.base, self.kind, self.kind))
        writer = None if parts_report else self._status_writer
        self.reporter = RunReporter(self._display, self._metrics, self.config.goal, tensorboard, status_writer=writer)
        for note in self._metrics.notes:
            self.reporter.say(note)
        self._watch = ConfigWatch(self.base, self.config, self.reporter.say)

    def _open_session(self, settings: CheckpointSettings, folder: Path | None = None, *, new: bool = False) -> None:
        """Open the training session with the checkpoints in `folder`, or in the usual one; a `new` one reads none."""
        folder = folder or self.base / "train" / TRAINER
        self.session = TrainingSession(self.trainer, folder, settings, self.reporter.say, new=new)
        self._closing.callback(self.session.close)

    @property
    def figures(self) -> Mapping[str, float]:
        """The trainer's last figures."""
        return self.session.figures

    def _show(self, stage: Any, waiting: str = "") -> None:
        self.reporter.show(stage, self._standing(), waiting)

    def _tell_first(self, what: str) -> None:
        if what not in self._begun:
            self._begun.add(what)
            self.reporter.write(FIRST, {"what": what})

    def _before_exit(self, *flushes: Callable[[], object]) -> None:
        """While the run is open, a process that must end at once calls these, the last one first, then reports."""
        for callback in (lambda: self.reporter.report(self._standing(), now=True), *flushes):
            self._closing.enter_context(safe_exit.before(callback))

    def _take_changes(self) -> None:
        if (config := self._watch.look()) is not None:
            self.config = config
            self.reporter.goal(config.goal)
            self._change(config)

    def _change(self, config: Any) -> None:
        """Use the new settings besides the goal."""

    @property
    def reason(self) -> str:
        """Which part of the goal is reached, in words; empty if none is."""
        return goals.reached(self.config.goal, self._planned(), self.trainer.step)

    @property
    def _steps_left(self) -> float:
        """Steps until the goal; infinite if it has no number of steps."""
        steps = self.config.goal.steps
        return math.inf if steps is None else max(steps - self.trainer.step, 0)

    def _now(self) -> RunCounts:
        return replace(self.counts, seconds=self._metrics.elapsed)

    def _planned(self) -> RunCounts:
        """The counts against which the goal is checked."""
        return self._now()

    def _standing(self) -> RunStatus:
        raise NotImplementedError

    def _draw(self) -> None:
        if note := run_chart.write(self.base, self.config.run.name):
            self.reporter.say(note)


class RatedRun(InProcessRun):
    """A run whose networks are rated now and then, within a goal of minutes if it has one."""

    networks: RunNetworks
    rater: Rater

    def __init__(self, config: Any, base: Path, display: Display, **options: Any) -> None:
        super().__init__(config, base, display, **options)
        self._budget = TimeBudget.of(config.goal, config.rating.minutes)
        self._rated_at = 0.0  # seconds of the run
        self._steady = SteadyProgress()

    def _open_rater(self, game: Any, spec: Any, evaluate: Any, others: Iterable[Any] = ()) -> None:
        """Open the run's networks, of this architecture and of `others` that it has had, and what rates them."""
        config = self.config
        self.networks = RunNetworks(self.base, game, spec, config.net.dtype, others)
        self.rater = Rater(self.base / "ratings", game, evaluate, config.search, config.rating, self.networks)

    def _change(self, config: Any) -> None:
        self._budget = TimeBudget.of(config.goal, config.rating.minutes)
        self.rater.change(config.search, config.rating)

    def _end(self) -> float:
        """Seconds to reserve for the last rating and for writing everything."""
        raise NotImplementedError

    def _planned(self) -> RunCounts:
        """The counts, with the time stretched so that the goal is reached when the end must begin."""
        now = self._now()
        return replace(now, seconds=self._budget.stretched(now.seconds, self._end()))

    @property
    def _progress(self) -> float:
        goal, now = self.config.goal, self._now()
        share = goals.progress(replace(goal, minutes=None), now, self.trainer.step)
        if self._budget.goal is None:
            return share
        return max(share, self._steady.at(now.seconds, self._budget.goal - self._end() - now.seconds))

    @property
    def _left(self) -> float:
        return (self._budget.goal or math.inf) - self._planned().seconds

    @property
    def _rating_is_due(self) -> bool:
        # Shortly before the end, the last rating is enough.
        every = self._budget.every
        return self._now().seconds - self._rated_at >= every and self._left > every / 2

    def _for_rating(self) -> float:
        return self._budget.for_rating(self._now().seconds, self.rater.spent, self._end())

    def _play_matches(
        self, name: str, weights: Any, seconds: float, show: Callable[[str], None], stop: Stop, *, last: bool
    ) -> None:
        """Rate a network with these weights, for at most that long; the `last` also plays those it is sure to beat."""
        end = self._metrics.elapsed + seconds
        key, self.key = jax.random.split(self.key)
        matches = self.rater.rate(
            *(name, weights, key), left=lambda: end - self._metrics.elapsed, show=show, stop=stop, everybody=last
        )
        self._note_matches(name, matches)

    def _note_matches(self, name: str, matches: Iterable[MatchResult]) -> None:
        for match in matches:
            self.reporter.say(str(match))
        for note in self.rater.notes:
            self.reporter.say(note)
        self.rater.notes.clear()
        self.counts = self._now()
        self._rated_at = self.counts.seconds
        self.reporter.paused()
        rated = self._show_rating(name)
        if rated is not None:
            figures = {"network": name, "elo": rated.elo, "error": rated.error, "against": rated.against}
            self.reporter.write("rating", {**figures, "steps": self.trainer.step})
        self._draw()

    def _show_rating(self, name: str) -> RatedNetwork | None:
        ratings, rating = self.rater.ratings, self.rater.rating(name)
        if ratings is None or rating is None:
            return None
        rated = RatedNetwork(rating.elo, rating.error, ratings.anchor)
        self.reporter.rated(rated)
        return rated

    def _use_up(self, over: bool) -> None:
        """If the time of the run is over, count what was reserved for the end and not needed as used."""
        if over and self._budget.goal is not None:
            self._metrics.reach(self._budget.goal)
        self.counts = self._now()

    @property
    def _is_over(self) -> bool:
        return self._left <= 0

    def _draw(self) -> None:
        if note := run_chart.write(self.base, self.config.run.name, self.rater.ratings, self.rater.curve()):
            self.reporter.say(note)
