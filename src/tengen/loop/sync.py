"""The ring in one process: self-play, shuffle, train, export and gate one after the other, round after round."""

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import jax

from tengen import games, nets
from tengen.analysis import run_chart
from tengen.config.sections import Config
from tengen.data.shuffle.folders import newest as newest_shuffle
from tengen.data.store.store import Store
from tengen.loop import resuming
from tengen.loop.parts.export import ExportPart
from tengen.loop.parts.gate import GatePart
from tengen.loop.parts.running import NO_SPACE, attempt, pause
from tengen.loop.parts.selfplay import SelfplayPart
from tengen.loop.parts.shuffle import ShufflePart
from tengen.loop.parts.train import TrainPart
from tengen.loop.rating import UNTRAINED, Rater
from tengen.monitor.display import Display
from tengen.monitor.reporting import RunReporter
from tengen.run import counts, registry, safe_exit
from tengen.run.counts import RunCounts
from tengen.run.metrics import Metrics, TensorBoard
from tengen.run.networks import RunNetworks
from tengen.run.part import Part, Progress, Stop
from tengen.run.part_status import StatusWriter
from tengen.run.status import RatedNetwork, RunStatus
from tengen.run.time_budget import TimeBudget

TRAINER = "main"


class Sync:
    """One run in the directory `base`. `prepare` builds the parts, `run` drives them round."""

    def __init__(
        self, config: Config, base: Path, display: Display, *, tensorboard: bool = False, began: float | None = None
    ) -> None:
        """`began` is when the process did, by `time.monotonic`."""
        self.config, self.base, self._began = config, base, began
        self._budget, self._judging = (
            TimeBudget.of(config.goal, config.rating.minutes),
            0.0,
        )  # seconds of the last export and gate
        self.counts = RunCounts()
        self._display, self._tensorboard = display, tensorboard
        self._asked: Stop = lambda: False
        self._closing = contextlib.ExitStack()
        self._before = RunCounts()  # when this process began
        self._rated_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.close()

    def prepare(self) -> None:
        """Build the parts; they go on where earlier processes stopped."""
        config, base, closing = self.config, self.base, self._closing
        tensorboard = closing.enter_context(TensorBoard(base)) if self._tensorboard else None
        self._metrics = closing.enter_context(Metrics(base, since=self._began))
        self.reporter = RunReporter(self._display, self._metrics, config.goal, tensorboard)
        self._notice = closing.enter_context(StatusWriter(base, "sync", "sync"))
        self.reporter.show("counting the rows", RunStatus(self.counts))
        self._before = resuming.since(RunCounts(), -1, Store(base / "selfplay"))
        self.counts = self._before
        self.reporter.show("building the network", RunStatus(self._now()))
        game = games.make(config.game.name, **asdict(config.game.options))
        say, stop = self.reporter.say, self._stop
        self.train = self._part(TrainPart(config, base, stop, say, name=TRAINER, elapsed=lambda: self._metrics.elapsed))
        self.selfplay = self._part(SelfplayPart(config, base, stop, say))
        self.shuffle = self._part(ShufflePart(config, game, base, stop, say, single=True))
        self.export = self._part(ExportPart(config, base, stop, say))
        self.gate = self._part(GatePart(config, base, stop, say))
        self.reporter.write(resuming.SESSION, {"steps": self.trainer.step, "mode": "sync"})
        spec = nets.spec(config.net.name, config.net.heads)
        self.networks = RunNetworks(base / registry.ACCEPTED, game, spec, config.net.dtype)
        self.rater = Rater(base / "ratings", game, self.selfplay.evaluate, config.search, config.rating, self.networks)
        self.key = jax.random.fold_in(jax.random.key(config.run.seed), self._before.rows)
        self._rated = newest.name if (newest := registry.newest(base)) else ""
        closing.enter_context(safe_exit.before(lambda: self.reporter.report(self._standing(), now=True)))
        for part in (self.selfplay, self.train):
            closing.enter_context(safe_exit.before(part.flush))
        self._begins = newest is None and self.trainer.step == 0 and self.rater.rating(UNTRAINED) is None

    def _part(self, part: Any) -> Any:
        self._closing.callback(part.close)
        part.show = self._show
        return part

    @property
    def trainer(self) -> Any:
        """What learns."""
        return self.train.trainer

    @property
    def figures(self) -> dict[str, float]:
        """What it said last."""
        return self.train.figures

    @property
    def network_path(self) -> Path | None:
        """Where the newest accepted network is."""
        found = registry.newest(self.base)
        return found.path if found else None

    @property
    def reason(self) -> str:
        """Which part of the goal is reached, in words; empty if none is."""
        return counts.reached(self.config.goal, self._planned(), self.trainer.step)

    def _stop(self) -> bool:
        """Whether a person has asked for the end."""
        return self._asked()

    def run(self, stop: Stop) -> None:
        """Round after round until the goal is reached, or until `stop` says so; then write everything."""
        self._asked = stop
        while not self._stop() and not self.reason:
            self._play()
            self._work("shuffle", self.shuffle)
            self._work("train", self.train)
            began = time.monotonic()
            self._work("export", self.export)
            self._work("gate", self.gate)
            self._judging = time.monotonic() - began
            self.selfplay.look_now()
            self._rate_when_due()
        self._finish()

    def _play(self) -> None:
        """Until there are enough new rows or games, or a goal is reached."""
        ring, start = self.config.ring, self._now()

        def enough() -> bool:
            fresh = replace(self.counts, rows=self.counts.rows - start.rows, games=self.counts.games - start.games)
            games = ring.selfplay_games
            return fresh.rows >= ring.selfplay_rows or (games is not None and fresh.games >= games)

        while not self._stop() and not self.reason and not enough():
            self._step("selfplay", self.selfplay)
            self._rate_untrained()
            self.reporter.look(self.selfplay.board)
        self._patiently("selfplay", self.selfplay.flush)

    def _work(self, stage: str, part: Part) -> None:
        """Until the part has nothing to do."""
        goal = replace(self.config.goal, games=None, rows=None)  # the last rows are learned from as well
        while not self._stop() and not counts.reached(goal, self._planned(), self.trainer.step):
            progress = self._step(stage, part)
            if not progress.worked or progress.ended:
                return

    def _step(self, stage: str, part: Part) -> Progress:
        """One piece of work of a part; a full disk is waited for."""
        self._stage = stage
        while True:
            progress = attempt(part.run_once)
            full = progress.words.startswith(NO_SPACE)
            if progress.worked or full:
                self._note(stage, progress)
            if not full or self._stop():
                return progress
            pause(self.config.ring.poll_seconds, self._stop)

    def _patiently(self, stage: str, write: Callable[[], object]) -> None:
        """Write, and wait for space if there is none; what cannot be written before the end is an error."""
        done = Progress(f"{stage}: written")
        while (found := attempt(lambda: (write(), done)[1])) is not done:
            self._note(stage, found)
            if self._stop():
                write()
                return
            pause(self.config.ring.poll_seconds, self._stop)

    def _note(self, stage: str, progress: Progress) -> None:
        self._stage = stage
        self._show(progress)
        self.reporter.report(self._standing())

    _stage = "starting"

    def _show(self, progress: Progress) -> None:
        self.counts = self._counted()
        self._notice.show(replace(progress, words=f"{self._stage}: {progress.words}"))
        self.reporter.show(f"{self._stage}: {progress.words}", self._standing())

    def _rate_when_due(self) -> None:
        left = (self._budget.goal or math.inf) - self._planned().seconds
        # Shortly before the end it is the last rating that counts.
        if self._now().seconds - self._rated_at >= self._budget.every and left > self._budget.every / 2:
            self._rate_newest(self._budget.for_rating(self._now().seconds, self.rater.spent, self._end()))

    def _rate_newest(self, seconds: float) -> None:
        """The newest network, if it was not rated yet."""
        found = registry.newest(self.base)
        if found is None or found.name == self._rated or self._stop():
            return
        self.networks.look()
        self.rater.refresh()
        if self.selfplay.spec != self.networks.spec:
            return
        self._rate(found.name, self.networks.parameters(found.name), seconds)
        self._rated = found.name

    def _rate_untrained(self) -> None:
        """Where the curve begins: a network that finds all moves equally good, which plays the first games."""
        if self._begins and self.selfplay.spec == self.networks.spec:
            self._begins = False
            seconds = self._budget.for_rating(self._now().seconds, self.rater.spent, self._end())
            self._rate(UNTRAINED, self.selfplay.no_weights(), seconds)

    def _rate(self, name: str, params: Any, seconds: float) -> None:
        """Matches, for so long at most."""
        self._stage, end = "rating", self._metrics.elapsed + seconds
        key, self.key = jax.random.split(self.key)
        about = {"left": lambda: end - self._metrics.elapsed, "stop": self._stop}
        for match in self.rater.rate(name, params, key, show=lambda words: self._show(Progress(words)), **about):
            self.reporter.say(str(match))
        for note in self.rater.notes:
            self.reporter.say(note)
        self.rater.notes.clear()
        self._rated_at = self._now().seconds
        self.reporter.paused()
        ratings, rating = self.rater.ratings, self.rater.rating(name)
        if ratings is not None and rating is not None:
            self.reporter.rated(RatedNetwork(rating.elo, rating.error, ratings.anchor))
            figures = {"network": name, "elo": rating.elo, "error": rating.error, "against": ratings.anchor}
            self.reporter.write("rating", {**figures, "steps": self.trainer.step})
        self._draw()

    def _draw(self) -> None:
        """RUN/chart.svg, as things stand."""
        self.networks.look()
        if note := run_chart.write(self.base, self.config.run.name, self.rater.ratings, self.rater.curve()):
            self.reporter.say(note)

    def _end(self) -> float:
        """Seconds to keep for the last network: to judge it, to rate it and to write everything."""
        budget = self._budget
        matches = budget.for_last_rating(self.rater.expected, self.rater.spent)
        return matches + min(self._judging, 0.2 * (budget.goal or 0.0)) + budget.for_writing(None)

    def _planned(self) -> RunCounts:
        """The counts, as if the time that the end takes were over when it begins."""
        now = self._now()
        return replace(now, seconds=self._budget.stretched(now.seconds, self._end()))

    def _finish(self) -> None:
        """Everything on the disk; and, if nobody is in a hurry, the last state as a network that was judged."""
        goal = self._budget.goal
        over = goal is not None and self._planned().seconds >= goal
        self._patiently("selfplay", self.selfplay.flush)
        if not self._stop() and self.train.hand_on_now():
            while not self._stop() and self._step("export", self.export).worked:
                pass
            # A network that there is no time to judge stays a candidate, and is judged when the run goes on.
            while not self._stop() and self._left() > 0 and self._step("gate", self.gate).worked:
                pass
        self._patiently("train", self.train.flush)
        self._rate_newest(self._left())
        if over and goal is not None:
            self._metrics.reach(goal)
        self.counts = self._now()
        self._stage = "done"
        self.reporter.report(self._standing(), now=True)
        self._draw()

    def _left(self) -> float:
        """Seconds until nothing may be begun any more."""
        return self._budget.until_closing(self._now().seconds)

    def _counted(self) -> RunCounts:
        """With what this process has played."""
        before = self._before
        return replace(
            before,
            games=before.games + self.selfplay.games,
            rows=before.rows + self.selfplay.rows,
            evaluations=before.evaluations + self.selfplay.evaluations,
            seconds=self._metrics.elapsed,
        )

    def _now(self) -> RunCounts:
        return replace(self.counts, seconds=self._metrics.elapsed)

    def _standing(self) -> RunStatus:
        found = newest_shuffle(self.base)
        window = found.window[1] - found.window[0] if found else 0
        network = self.selfplay.network
        return RunStatus(self._now(), self.trainer.step, self.trainer.samples, window, network, self.figures or None)
