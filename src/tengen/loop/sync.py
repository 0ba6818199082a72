"""The pipeline in one process: self-play, shuffle, train, export and gate one after the other, round after round."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax

from tengen.data.shuffle.folders import newest as newest_shuffle
from tengen.data.store.store import Store
from tengen.loop import resuming
from tengen.loop.in_process import SESSION, TRAINER, RatedRun
from tengen.loop.parts.export import ExportPart
from tengen.loop.parts.gate import GatePart
from tengen.loop.parts.running import NO_SPACE, attempt, patiently, pause
from tengen.loop.parts.selfplay import SelfplayPart
from tengen.loop.parts.shuffle import ShufflePart
from tengen.loop.parts.train import TrainPart
from tengen.run import goals, networks
from tengen.run.goals import RunCounts
from tengen.run.part import Part, Progress, Stop
from tengen.run.status import RunStatus


class Sync(RatedRun):
    """One run in the directory `base`. `prepare` builds the parts; `run` runs them in turn."""

    kind = "sync"
    _stage = "starting"

    def __init__(self, config: Any, base: Path, display: Any, **options: Any) -> None:
        super().__init__(config, base, display, **options)
        self._judging = 0.0  # seconds of the last export and gate
        self._asked: Stop = lambda: False
        self._before = RunCounts()  # when this process began
        self._parts: list[Any] = []

    def prepare(self) -> None:
        """Build the parts, which resume where earlier processes stopped."""
        config, base = self.config, self.base
        self._open(parts_report=True)
        self.reporter.show("counting the rows", RunStatus(self.counts))
        self._before = self.counts = resuming.since(RunCounts(), -1, Store(base / "selfplay"))
        self.reporter.show("building the network", RunStatus(self._now()))
        say, stop = self.reporter.say, self._stop
        self.train = self._part(TrainPart(config, base, stop, say, name=TRAINER, elapsed=lambda: self._metrics.elapsed))
        self.trainer, self.session = self.train.trainer, self.train.session
        learned = self.trainer.config
        self.selfplay = self._part(SelfplayPart(config, base, stop, say))
        self.shuffle = self._part(ShufflePart(config, learned.game, base, stop, say, single=True))
        self.export = self._part(ExportPart(config, base, stop, say))
        self.gate = self._part(GatePart(config, base, stop, say))
        self.reporter.write(SESSION, {"steps": self.trainer.step, "mode": "sync"})
        self._open_rater(learned.game, learned.spec, self.selfplay.playing.evaluate)
        self.key = jax.random.fold_in(jax.random.key(config.run.seed), self._before.rows)
        newest = networks.newest(base)
        self._rated = newest.name if newest else ""
        self._before_exit(self.selfplay.flush, self.train.flush)
        # Whether the network that plays the first games is still to be rated.
        self._untrained = not (self.trainer.step or self.networks.newest or self.rater.rating(networks.UNTRAINED))

    def _part(self, part: Any) -> Any:
        self._closing.callback(part.close)
        part.show = self._show_part
        self._parts.append(part)
        return part

    def _change(self, config: Any) -> None:
        super()._change(config)
        for part in self._parts:
            part.change(config)

    @property
    def network_path(self) -> Path | None:
        found = networks.newest(self.base)
        return found.path if found else None

    def _stop(self) -> bool:
        return self._asked()

    def run(self, stop: Stop) -> None:
        """Run round after round until the goal is reached or `stop` says so; then write everything."""
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
            if self._rating_is_due:
                self._rate_newest(self._for_rating())
            self._take_changes()
        self._finish()

    def _play(self) -> None:
        ring, start = self.config.ring, self._now()

        def enough() -> bool:
            games = ring.selfplay_games
            new_games = self.counts.games - start.games
            return self.counts.rows - start.rows >= ring.selfplay_rows or (games is not None and new_games >= games)

        while not self._stop() and not self.reason and not enough():
            self._step("selfplay", self.selfplay)
            if self._untrained and self.selfplay.playing.spec == self.networks.spec:
                # The curve begins with the network that plays the first games and finds all moves equally good.
                self._untrained = False
                self._rate(networks.UNTRAINED, self.selfplay.playing.no_weights(), self._for_rating())
            self.reporter.look(self.selfplay.rounds.board)
        self._patiently("selfplay", self.selfplay.flush)

    def _work(self, stage: str, part: Part) -> None:
        goal = replace(self.config.goal, games=None, rows=None)  # the last rows are learned from as well
        while not self._stop() and not goals.reached(goal, self._planned(), self.trainer.step):
            progress = self._step(stage, part)
            if not progress.worked or progress.ended:
                return

    def _step(self, stage: str, part: Part) -> Progress:
        """Let a part do one piece of work; waits while the disk is full."""
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
        patiently(write, partial(self._note, stage), self._stop, self.config.ring.poll_seconds)

    def _note(self, stage: str, progress: Progress) -> None:
        self._stage = stage
        self._show_part(progress)
        self.reporter.report(self._standing())

    def _show_part(self, progress: Progress) -> None:
        played = self.selfplay
        self.counts = self._before.plus(played.games, played.rows, played.evaluations)
        self.counts = self._now()
        self._status_writer.show(replace(progress, words=f"{self._stage}: {progress.words}"))
        self.reporter.show(f"{self._stage}: {progress.words}", self._standing())

    def _rate_newest(self, seconds: float, *, last: bool = False) -> None:
        found = networks.newest(self.base)
        if found is None or found.name == self._rated or self._stop():
            return
        self.networks.look()
        self.rater.refresh()
        if self.selfplay.playing.spec != self.networks.spec:
            return
        self._rate(found.name, self.networks.parameters(found.name), seconds, last=last)
        self._rated = found.name

    def _rate(self, name: str, weights: Any, seconds: float, *, last: bool = False) -> None:
        self._stage = "rating"
        show = lambda words: self._show_part(Progress(words))  # noqa: E731
        self._play_matches(name, weights, seconds, show, self._stop, last=last)

    def _draw(self) -> None:
        self.networks.look()
        super()._draw()

    def _end(self) -> float:
        """Seconds to reserve for the last network: to judge it, to rate it and to write everything."""
        budget = self._budget
        matches = budget.for_last_rating(self.rater.expected, self.rater.spent)
        return matches + min(self._judging, 0.2 * (budget.goal or 0.0)) + budget.for_writing(None)

    def _finish(self) -> None:
        """Write everything; unless stopped, also export the last network and judge it."""
        over = self._is_over
        self._patiently("selfplay", self.selfplay.flush)
        if not self._stop() and self.train.export_now():
            while not self._stop() and self._step("export", self.export).worked:
                pass
            # A network that there is no time to judge stays a candidate, and is judged when the run goes on.
            while not self._stop() and self._until_closing() > 0 and self._step("gate", self.gate).worked:
                pass
        self._patiently("train", self.train.flush)
        self._rate_newest(self._until_closing(), last=True)
        self._use_up(over)
        self._stage = "done"
        self.reporter.report(self._standing(), now=True)
        self._draw()

    def _until_closing(self) -> float:
        return self._budget.until_closing(self._now().seconds)

    def _standing(self) -> RunStatus:
        found = newest_shuffle(self.base)
        window = found.window[1] - found.window[0] if found else 0
        network = self.selfplay.network
        counted = (self._now(), self.trainer.step, self.trainer.samples, window, network, self.figures or None)
        return RunStatus(*counted, played=self.selfplay.played)
