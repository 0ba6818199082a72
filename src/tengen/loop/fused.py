"""Self-play and learning in one process: games, search and training on one device, in turn.

New parameters are the next argument of the same compiled function, rows go from the games to the learner through the
device's memory, and everything that must survive is written in the background.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import jax
import jax.numpy as jnp

from tengen.analysis import run_chart
from tengen.config.sections import Config
from tengen.data.store.store import Store
from tengen.data.store.window import power_law
from tengen.data.store.writer import Writer
from tengen.errors import Diverged
from tengen.loop import resuming
from tengen.loop.closing import Closing
from tengen.loop.components import Components
from tengen.loop.rating import UNTRAINED, Rater
from tengen.monitor.display import Display
from tengen.monitor.reporting import RunReporter
from tengen.run import counts as counting
from tengen.run import safe_exit
from tengen.run.counts import RunCounts
from tengen.run.metrics import Metrics, TensorBoard
from tengen.run.networks import RunNetworks
from tengen.run.part_status import StatusWriter
from tengen.run.status import RatedNetwork, RunStatus
from tengen.run.time_budget import TimeBudget
from tengen.selfplay.collector import Collector
from tengen.selfplay.driver import NoFiniteNumbers, PlayedRound, PlayRounds
from tengen.selfplay.finished import on_host
from tengen.selfplay.pacing import Pace
from tengen.train.checkpoints import Checkpoints

TRAINER = "main"
_SECONDS = 1.0  # that one call to the device should take
_OF_THE_GAMES = 0.5  # of the time that compiling the games takes, the first match or the learner does, at a guess
Stop = Callable[[], bool]


class Fused(Closing):
    """One run in the directory `base`. `prepare` goes on where an earlier process stopped; `run` plays and learns."""

    def __init__(
        self, config: Config, base: Path, display: Display, *, tensorboard: bool = False, began: float | None = None
    ) -> None:
        """`began` is when the process did, by `time.monotonic`."""
        super().__init__()
        self.config, self.base, self._began = config, base, began
        self._budget = TimeBudget.of(config.goal, config.rating.minutes)
        self._writing: float | None = None  # seconds that saving a network took last
        self._compiling = 0.0  # seconds that compiling the learner may take
        self.counts = RunCounts()
        self.figures: dict[str, float] = {}  # what the trainer said last
        self._display, self._tensorboard = display, tensorboard
        self._learning = Pace(_SECONDS, amount=10)
        self._pending: list[PlayedRound] = []
        self._learned = False  # by this process
        self._seconds = [0.0, 0.0]  # of playing and learning, without compiling

    def prepare(self) -> None:
        """Open the directory, build everything, and go on where an earlier process stopped."""
        config, closing = self.config, self._closing
        tensorboard = closing.enter_context(TensorBoard(self.base)) if self._tensorboard else None
        metrics = closing.enter_context(Metrics(self.base, since=self._began))
        notice = closing.enter_context(StatusWriter(self.base, "fused", "fused"))
        self.reporter = RunReporter(self._display, metrics, config.goal, tensorboard, notice=notice)
        self._metrics = metrics
        self.reporter.show("building the network", RunStatus(self._now()))
        self.parts = Components(config)
        self.parts.check_memory()
        self.trainer, game = self.parts.trainer, self.parts.game
        self.networks = RunNetworks(self.base / "models", game, self.parts.spec, config.net.dtype)
        self.rater = Rater(
            self.base / "ratings", game, self.parts.evaluate, config.search, config.rating, self.networks
        )
        self.checkpoints = Checkpoints(self.base / "train" / TRAINER, config.train.checkpoints)
        closing.callback(self.checkpoints.close)
        store = Store(self.base / "selfplay")
        found = resuming.resume(
            *(self.base, self.trainer, self.checkpoints, store, self.parts.capacity, self.parts.form),
            max_chunk_rows=config.data.max_chunk_rows,
        )
        metrics.advance(found.counts.seconds)
        self.counts = found.counts
        self.counts = self._now()
        for note in (*metrics.notes, *self.networks.notes, *found.notes):
            self.reporter.say(note)
        self.ring = self.parts.load(self.parts.make_ring(), found.rows, found.kept)
        self._feed(max(self.counts.rows - self.trainer.bucket.rows, 0))
        about = {"session": self.counts.sessions, "steps": self.trainer.step, "mode": "fused"}
        self.reporter.write(resuming.SESSION, about)
        newest = self.networks.newest
        self._saved_step, self._rated_at = (newest.step, newest.seconds) if newest else (0, 0.0)
        self._saved_step = min(self._saved_step, self.trainer.step)  # if a damaged checkpoint was set aside
        self._checkpointed = self.trainer.step
        self._begins = self.trainer.step == 0 and newest is None and self.rater.rating(UNTRAINED) is None
        writer = closing.enter_context(Writer())
        label = newest.name if newest else self.name
        self.collector = Collector(
            self.base,
            store,
            game,
            self.parts.form,
            writer,
            config.data,
            label,
            self.counts.sessions,
            self.parts.playing.opponents,
        )
        self._show_rating(label)
        self.weights = self.parts.weights()
        self.key = jax.random.fold_in(jax.random.key(config.run.seed), self.counts.sessions)
        closing.enter_context(safe_exit.before(lambda: self.reporter.report(self._standing(), now=True)))
        closing.enter_context(safe_exit.before(self._keep_games))

    @property
    def name(self) -> str:
        """What the network is called as it now is."""
        return f"{self.config.run.name}-{TRAINER}-s{self.trainer.samples}-d{self.counts.rows}"

    @property
    def network_path(self) -> Path | None:
        """Where the newest saved network is."""
        newest = self.networks.newest
        return self.networks.path(newest.name) if newest else None

    @property
    def reason(self) -> str:
        """Which part of the goal is reached, in words; empty if none is."""
        return counting.reached(self.config.goal, self._planned(), self.trainer.step)

    def run(self, stop: Stop) -> None:
        """Play and learn until the goal is reached or `stop` says so; then write everything."""
        start, self.key = jax.random.split(self.key)
        rounds = PlayRounds(self.parts.lanes, self.counts.sessions, start)
        try:
            while not stop() and not self.reason:
                self._play(rounds)
                self._rate_untrained(stop)
                self._learn(stop)
                self._save_when_due(stop)
                self.reporter.report(self._standing())
            self._finish(stop)
        except Diverged as error:
            self._collect()  # the games are good all the same
            self.collector.flush()
            for text in self.trainer.set_dead_ends_aside(self.checkpoints, error):
                self.reporter.say(text)
            raise

    def _play(self, rounds: PlayRounds) -> None:
        """One call to the games; the host deals with what the call before gave while the device plays."""
        self._show("playing" if rounds.compiled else "compiling the games", self._waited_for())
        began, compiled = time.monotonic(), rounds.compiled
        try:
            with safe_exit.possible(not compiled):
                self._pending = rounds.play(self.weights, self._collect)
        except NoFiniteNumbers as error:
            raise Diverged.at(self.trainer.step, str(error)) from error
        if not compiled:
            self.rater.compiling = self._compiling = _OF_THE_GAMES * (time.monotonic() - began)
        self._seconds[0] = rounds.seconds
        self.reporter.look(rounds.board)
        before = self.counts.rows
        for block, evaluations, _ in self._pending:
            self.ring = self.parts.append(self.ring, block.rows, block.rows_count)
            rows, games = jax.device_get((block.rows_count, block.games_count))
            self.counts = self._now().plus(int(games), int(rows), evaluations)
        self._feed(self.counts.rows - before)

    def _learn(self, stop: Stop) -> None:
        """All that the rows so far allow, a second at a time."""
        if self.counts.rows < self.config.data.first_rows:
            return
        left = (self._budget.goal or math.inf) - self._planned().seconds
        if not self._learning.calls and left < self._compiling:
            return  # the run would be over before the first step
        goal = replace(self.config.goal, games=None, rows=None)  # the last rows are learned from as well

        def enough() -> bool:
            return stop() or bool(counting.reached(goal, self._planned(), self.trainer.step))

        def allowed() -> int:
            left = [] if goal.steps is None else [max(goal.steps - self.trainer.step, 0)]
            return min(self.trainer.affordable, self._learning.units, *left)

        while (steps := allowed()) and not enough():
            self._show("learning" if self._learning.calls else "compiling the learner")
            began = time.monotonic()
            self.trainer.progress = counting.progress(self.config.goal, self._planned(), self.trainer.step)
            with safe_exit.possible(not self._learning.calls):
                self.figures = self.trainer.train(steps)
            self._seconds[1] += (time.monotonic() - began) * bool(self._learning.calls)
            self._learning = self._learning.after(steps, time.monotonic() - began)
            self._learned = True
            self.counts = self._now()
            self.reporter.report(self._standing())
        self.weights = self.parts.weights()

    def _feed(self, rows: int) -> None:
        """Let the trainer know of so many rows more."""
        window = min(power_law(self.counts.rows, self.config.data.window), self.parts.capacity)
        self.window = min(window, self.counts.rows)
        self.trainer.feed((self.ring, jnp.int32(max(self.window, 1))), rows)

    def _waited_for(self) -> str:
        first = self.config.data.first_rows
        return f"{self.counts.rows:,} of {first:,} rows until learning begins" if self.counts.rows < first else ""

    def _save_when_due(self, stop: Stop) -> None:
        if self.trainer.step - self._checkpointed >= self.config.train.checkpoints.interval:
            self._show("writing a checkpoint")
            self._checkpoint()
        since, left = self.counts.seconds - self._rated_at, (self._budget.goal or math.inf) - self._planned().seconds
        # Shortly before the end it is the last rating that counts.
        if since >= self._budget.every and left > self._budget.every / 2 and self.trainer.step > self._saved_step:
            self._rate(self._save_network(), self._for_rating(), stop)

    def _rate_untrained(self, stop: Stop) -> None:
        """Where the curve begins. It also compiles the matches, so that their time is known when it is short."""
        if self._begins:
            self._begins = False
            self._rate(UNTRAINED, self._for_rating(), stop)

    def _for_rating(self) -> float:
        return self._budget.for_rating(self._now().seconds, self.rater.spent, self._end())

    def _end(self) -> float:
        """Seconds to keep for the last rating, if there is something new to rate, and for writing."""
        fresh = self.trainer.step > self._saved_step
        matches = self._budget.for_last_rating(self.rater.expected, self.rater.spent) if fresh else 0.0
        return matches + self._budget.for_writing(self._writing)

    def _collect(self) -> None:
        """Hand the games of the last call to the files."""
        for finished, evaluations, game in self._pending:
            self.collector.add(on_host(finished), evaluations, game)
        self._pending = []

    def _keep_games(self) -> None:
        """All games that have ended, on the disk."""
        self._collect()
        self.collector.flush()

    def _checkpoint(self) -> None:
        """All rows that were played, then all that was learned from them. Nothing if nothing was learned since."""
        self._keep_games()
        if self.trainer.step > self._checkpointed:
            self.checkpoints.save(self.trainer.checkpoint(resuming.extras(self._now(), self.collector.chunk)))
            self.collector.counted()
            self._checkpointed = self.trainer.step

    def _save_network(self) -> str:
        """The network under its name. Its checkpoint comes first: no run will be behind a network that it has saved."""
        self._show("saving the network")
        began = time.monotonic()
        self._checkpoint()
        self.checkpoints.wait()
        name, counts = self.name, self._now()
        info = {"run": self.config.run.name, "samples": self.trainer.samples, **asdict(counts)}
        self.networks.save(self.trainer.network(), name, self.trainer.step, info)
        self._saved_step = self.trainer.step
        self.collector.network = name
        self._writing = time.monotonic() - began
        return name

    def _rate(self, name: str, seconds: float, stop: Stop) -> None:
        """Let the network as it now is play, under that name and for so long at most."""
        end = self._metrics.elapsed + seconds
        play, self.key = jax.random.split(self.key)
        about = {"left": lambda: end - self._metrics.elapsed, "show": self._show, "stop": stop}
        for match in self.rater.rate(name, self.weights, play, **about):
            self.reporter.say(str(match))
        for note in self.rater.notes:
            self.reporter.say(note)
        self.rater.notes.clear()
        self.counts = self._now()
        self._rated_at = self.counts.seconds
        self.reporter.paused()
        rating = self._show_rating(name)
        if rating is not None:
            figures = {"network": name, "elo": rating.elo, "error": rating.error, "against": rating.against}
            self.reporter.write("rating", {**figures, "steps": self.trainer.step})
        self._draw()

    def _show_rating(self, name: str) -> RatedNetwork | None:
        ratings, rating = self.rater.ratings, self.rater.rating(name)
        if ratings is None or rating is None:
            return None
        rated = RatedNetwork(rating.elo, rating.error, ratings.anchor)
        self.reporter.rated(rated)
        return rated

    def _finish(self, stop: Stop) -> None:
        """Everything on disk, and a last rating if there is something new to rate."""
        over = self._budget.goal is not None and self._planned().seconds >= self._budget.goal
        self._show("writing")
        self._collect()
        if self.trainer.step > self._saved_step:
            name = self._save_network()
            if self._learned and not stop():
                self._rate(name, self._budget.until_closing(self._metrics.elapsed), stop)
        self._checkpoint()
        self.checkpoints.wait()
        if over and self._budget.goal is not None:
            self._metrics.reach(self._budget.goal)
        self.counts = self._now()
        self._show("done")
        self.reporter.report(self._standing(), now=True)
        self._draw()

    def _now(self) -> RunCounts:
        """The counts with the time that it is."""
        return replace(self.counts, seconds=self._metrics.elapsed)

    def _planned(self) -> RunCounts:
        """The same, as if the time that the end takes were over when it begins."""
        now = self._now()
        return replace(now, seconds=self._budget.stretched(now.seconds, self._end()))

    def _draw(self) -> None:
        """RUN/chart.svg, as things stand."""
        if note := run_chart.write(self.base, self.config.run.name, self.rater.ratings, self.rater.curve()):
            self.reporter.say(note)

    def _standing(self) -> RunStatus:
        return RunStatus(
            self._now(),
            self.trainer.step,
            self.trainer.samples,
            self.window,
            self.name,
            self.figures or None,
            playing=self._seconds[0],
            learning=self._seconds[1],
        )

    def _show(self, stage: str, waiting: str = "") -> None:
        self.reporter.show(stage, self._standing(), waiting)
