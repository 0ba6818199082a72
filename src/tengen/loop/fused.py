"""Self-play and learning in one process: games, search and training on one device, in turn.

New parameters are the next argument of the same compiled function, rows go from the games to the learner through the
device's memory, and everything that must survive is written in the background.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tengen.ahead import Ahead, Jobs, done, finish
from tengen.data.store.store import Store
from tengen.data.store.window import power_law
from tengen.data.store.writer import Writer
from tengen.errors import Diverged, OptionError, TengenError
from tengen.interop.katago import base as katago
from tengen.loop import growth, resuming
from tengen.loop.components import Components, session_key
from tengen.loop.in_process import SESSION, TRAINER, RatedRun
from tengen.nets.network import Network
from tengen.run import first_network, goals, grown, networks, safe_exit
from tengen.run.part import Stop
from tengen.run.status import RunStatus
from tengen.selfplay.collector import Collector, on_host
from tengen.selfplay.driver import NoFiniteNumbers, PlayedRound, PlayRounds

_SAVED_UP = 2  # seconds of learning to save up for a call to the games: if they ran out, a core would be idle
_PIECES = 8  # of a second of learning while games are played, because these wait for the last piece
_COMPILING_SHARE = 0.5  # a guess: compiling the learner or the first match takes this share of compiling the games


class Fused(RatedRun):
    """One run in the directory `base`. `prepare` resumes where an earlier process stopped; `run` plays and learns."""

    kind = "fused"
    plays = True  # whether this process plays the games too
    _all_at_once = True  # whether everything that may be learned is learned before the next games are collected

    def __init__(self, config: Any, base: Path, display: Any, **options: Any) -> None:
        super().__init__(config, base, display, **options)
        self._writing: float | None = None  # seconds that saving a network took last
        self._compiling = 0.0  # seconds that compiling the learner may take
        self._pending: list[PlayedRound] = []
        self._playing = 0.0  # seconds of playing, without compiling
        self._beside = 0.0  # seconds of learning meanwhile
        self._ahead = self._closing.enter_context(Ahead())
        self._learner: Jobs = ()  # its program, as it is compiled in a thread
        self._grown = 0  # times that the network has grown

    def prepare(self) -> None:
        """Open the directory, build everything, and resume where an earlier process stopped."""
        config, closing = self.config, self._closing
        self._ahead.call(lambda: jax.random.split(session_key(config)))  # small programs would wait behind large ones
        self._open()
        self.reporter.show("building the network", RunStatus(self._now()))
        ahead = self._ahead if self.plays else None
        checkpoints = self.base / "train" / TRAINER
        self._grown = times = grown.times_grown(checkpoints)
        if times > len(config.net.growth):
            raise TengenError(f"{checkpoints}: the network has grown {times} times; net.growth must say to what")
        if grown.damaged(larger := grown.folder(checkpoints, times + 1)):
            self.reporter.say(f"{larger}: no good checkpoint is left, so the network before it goes on and grows again")
        own = config.grown(times) if times else first_network.local(config, self.base)
        self.components = parts = Components(own, ahead)
        self._learner = parts.learner_jobs
        parts.check_memory(self.plays)
        self.trainer, game = parts.trainer, parts.game
        self._open_networks()
        for note in self.networks.notes:
            self.reporter.say(note)
        # The network that plays the first games, until it is rated. A run may have been stopped before that.
        untrained = parts.unfolded() if self.rater.rated() is None and not times else None
        self._open_session(config.train.checkpoints, grown.folder(checkpoints, times))
        store = Store(self.base / "selfplay", alone=True)
        found = resuming.resume(
            *(self.base, self.session, store, game, parts.capacity, parts.form, config.data.max_chunk_rows)
        )
        self._metrics.advance(found.counts.seconds)
        self.counts = found.counts
        self.counts = self._now()
        for note in found.notes:
            self.reporter.say(note)
        self.buffer = parts.load(parts.make_buffer(), found.rows, found.kept)
        self._feed(max(self.counts.rows - self.trainer.bucket.rows, 0))
        about = {"session": self.counts.sessions, "steps": self.trainer.step, "mode": self.kind}
        self.reporter.write(SESSION, about)
        newest = self.networks.newest
        self._saved_step, self._rated_at = (newest.step, newest.seconds) if newest else (0, 0.0)
        self._saved_step = min(self._saved_step, self.trainer.step)  # if a damaged checkpoint was set aside
        writer = closing.enter_context(Writer())
        label = newest.name if newest else self.name
        self.collector = Collector(
            *(self.base, store, game, parts.form, writer, config.data, label, self.counts.sessions),
            parts.playing.opponents,
        )
        self._show_rating(label)
        self._untrained = None if untrained is None else parts.weights(untrained)
        self.weights = parts.weights()
        self.key = session_key(config, self.counts.sessions)
        self._before_exit(self._keep_games)

    @property
    def name(self) -> str:
        return networks.name_of(self.config.run.name, TRAINER, self.trainer.samples, self.counts.rows)

    @property
    def network_path(self) -> Path | None:
        newest = self.networks.newest
        return self.networks.path(newest.name) if newest else None

    def run(self, stop: Stop) -> None:
        """Play and learn until the goal is reached or `stop` says so; then write everything.

        Whatever fails, such as the network of a user, games that have ended and steps that were learned are kept.
        """
        try:
            if not self.reason:
                self._start_playing()
            while not stop() and not self.reason:
                self._play(stop)
                self._learn(stop)
                self._save_when_due(stop)
                self._grow_when_due()
                self.reporter.report(self._standing())
                self._take_changes()
            self._finish(stop)
            with safe_exit.possible():
                finish(self._learner)
        except Diverged:
            self._keep_games()  # they are still good
            with self.session.watching():
                raise
        except Exception:
            with contextlib.suppress(Exception):  # the first error is the one to show
                self._checkpoint()
                self.session.wait()
            raise

    def _change(self, config: Any) -> None:
        super()._change(config)
        self.collector.settings = config.data
        if self._changes_selfplay(config):
            self._rounds.change(self.components.lanes)
        self._next = self._next.changed(self.config)

    def _changes_selfplay(self, config: Any) -> bool:
        """Let the components use these settings; whether self-play has changed. It stays if memory does not suffice."""
        try:
            return self.components.change(config.grown(self._grown))
        except OptionError as error:
            self.config = config.with_selfplay_of(self.components.config)
            self.reporter.say(f"self-play stays as it is: {error}")
            return False

    def _start_playing(self) -> None:
        start, self.key = jax.random.split(self.key)
        self._rounds = PlayRounds(self.components.lanes, self.counts.sessions, start)

    def _open_networks(self) -> None:
        parts, net = self.components, self.config.net
        others = (net.grown(times).architecture() for times in range(len(net.growth) + 1) if times != self._grown)
        self._open_rater(parts.game, parts.spec, parts.evaluate, others)
        self._next = growth.NextNetwork(self.config, self._grown, self._ahead if parts.compiles_learner() else None)

    def _grow_when_due(self) -> None:
        """Let the next, larger network take over if it is time."""
        if not self.plays or not self.session.started:
            return
        following, before, learned = self._next, self.trainer, self.session.seconds
        try:
            if not following.due(self._progress, self.counts.rows):
                return
            self._show(f"growing the network to {following.name}")
            with safe_exit.possible():
                parts = following.components()
        except OptionError as error:  # the device has too little memory
            self.reporter.say(f"the network does not grow: {error}")
            self._next = following.abandoned()
            return
        self._save_network()
        parts.trainer.grow_from(before)
        self.session.close()
        self.components, self.trainer, self._learner = parts, parts.trainer, parts.learner_jobs
        folder = grown.folder(self.base / "train" / TRAINER, following.times)
        self._open_session(self.config.train.checkpoints, folder, new=True)
        self.session.seconds = learned
        self._checkpoint()
        self.session.wait()
        self.reporter.say(f"the network has grown to {following.name}")
        self._grown, self._untrained = following.times, None  # the untrained network had the small architecture
        rater = self.rater
        self._open_networks()
        self.rater.spent, self.rater.compiling = rater.spent, rater.compiling  # its budget is that of the run
        self._changes_selfplay(self.config)  # if settings have changed since it was built
        self._rounds.change(parts.lanes)
        self._feed(0)
        self.weights = parts.weights()

    @property
    def _waiting(self) -> str:
        """What learning waits for before its first step, in words."""
        first = self.config.data.first_rows
        return f"{self.counts.rows:,} of {first:,} rows until learning begins" if self.counts.rows < first else ""

    def _play(self, stop: Stop) -> None:
        """Make one call to the games; while the device plays, the host handles the results of the call before.

        If several cores of a CPU play, one of them learns meanwhile: small networks learn hardly faster with more.
        """
        rounds, errors = self._rounds, []

        def learn(done: Callable[[], bool]) -> None:
            try:
                self._learn_beside(lambda: done() or stop())
            except Exception as error:
                errors.append(error)  # to be raised when the games of this call are safe

        beside = learn if rounds.compiled and 0 < self._saved_up <= self.trainer.affordable else None
        self._show("playing" if rounds.compiled else "compiling the games", self._waiting)
        budgets = self._enter_stage()
        began, compiled = time.monotonic(), rounds.compiled
        try:
            with safe_exit.possible(not compiled):
                finish(self.components.start_jobs)
                rounds.begin()
                finish(self.components.play_jobs)
                self._pending = rounds.play(self.weights, self._collect, budgets, beside)
        except NoFiniteNumbers as error:
            raise Diverged.at(self.trainer.step, str(error)) from error
        if not compiled:
            self._compiling = _COMPILING_SHARE * (time.monotonic() - began)
            self.rater.compiling = self.rater.compiling or self._compiling  # a guess until a match was compiled
            self._tell_first("move")
        self._playing = rounds.seconds
        self.reporter.look(rounds.board)
        before = self.counts.rows
        for block, evaluations, _ in self._pending:
            self.buffer = self.components.append(self.buffer, block.rows, block.rows_count)
            rows, games = jax.device_get((block.rows_count, block.games_count))
            self.counts = self._now().plus(int(games), int(rows), evaluations)
        self._feed(self.counts.rows - before)
        if errors:
            raise errors[0]

    def _enter_stage(self) -> tuple[int, int]:
        """Enter the current stage of the run; returns the simulations of its full and cheap searches."""
        stage = self.config.stage(self._progress)
        budgets = stage.simulations, stage.cheap
        if self.config.selfplay.stages and budgets != self.collector.visits:
            self.reporter.say(f"self-play searches with {budgets[0]} and {budgets[1]} simulations from now on")
        self.collector.visits, self.trainer.stage_rate = budgets, stage.rate
        return budgets

    @property
    def _saved_up(self) -> int:
        """How many steps are saved up and then taken while games are played; 0: steps are taken between games."""
        settings, ends = self.config.train, bool(self.reason) or self._left < 2 * _SAVED_UP
        if ends or not (self.plays and self.components.lanes.shares_cores and self.session.started):
            return 0
        return min(round(_SAVED_UP * self.session.pace.units), int(settings.largest_debt // settings.batch) // 2)

    def _learn_beside(self, stop: Stop) -> None:
        """Take the steps that are saved up until `stop` says so, while games are played."""
        session, trainer, before = self.session, self.trainer, self.session.seconds
        piece = max(session.pace.units // _PIECES, 1)
        trainer.progress = self._progress
        session.learn(int(min(trainer.affordable, self._steps_left)), lambda steps: trainer.pieces(steps, piece, stop))
        self._beside += session.seconds - before
        self.weights = self.components.weights()

    def _learn(self, stop: Stop) -> None:
        """Learn as much as the rows so far allow, a second at a time, except for the steps that are saved up."""
        session, goal = self.session, replace(self.config.goal, games=None, rows=None)  # learn from the last rows too
        if self.counts.rows < self.config.data.first_rows:
            return
        if not session.started:
            if self._left < self._compiling:
                return  # games are played on, because the run would be over before the first step
            self._wait_for_learner()

        def allowed() -> int:
            left, affordable = self._steps_left, self.trainer.affordable
            saved = self._saved_up if affordable < left else 0
            return int(min(max(affordable - saved, 0), session.pace.units, left))

        while steps := allowed():
            if stop() or goals.reached(goal, self._planned(), self.trainer.step):
                break
            self._show("learning" if session.started else "compiling the learner")
            self.trainer.progress = self._progress
            session.learn(steps)
            self._tell_first("step")
            self.counts = self._now()
            self.reporter.report(self._standing())
            if not self._all_at_once:
                break
        self.weights = self.components.weights()

    def _wait_for_learner(self) -> None:
        """Games of an untrained network are worth little, and XLA tries programs out on the device that plays them."""
        if not done(self._learner):
            self._show("compiling the learner")
            with safe_exit.possible():
                finish(self._learner)

    def _feed(self, rows: int) -> None:
        window = min(power_law(self.counts.rows, self.config.data.window), self.components.capacity)
        self.window = min(window, self.counts.rows)
        self.trainer.feed((self.buffer, np.int32(max(self.window, 1))), rows)

    def _save_when_due(self, stop: Stop) -> None:
        if self.session.due:
            self._show("writing a checkpoint")
            self._checkpoint()
        if self._rating_is_due and (name := self._to_rate(stop)):
            self._rate_untrained(self._for_rating(), stop)
            self._rate(name, self._for_rating(), stop)

    def _to_rate(self, stop: Stop) -> str:
        """The name of the network to rate now, which is saved; empty if there is none."""
        return self._save_network() if self.trainer.step > self._saved_step else ""

    def _end(self) -> float:
        fresh = self.trainer.step > self._saved_step  # else there will be nothing to rate
        matches = self._budget.for_last_rating(self.rater.expected, self.rater.spent) if fresh else 0.0
        return matches + self._budget.for_writing(self._writing)

    def _collect(self) -> None:
        while self._pending:  # if one of them fails, it is not added twice, and the others are not lost
            finished, evaluations, game = self._pending.pop(0)
            self.collector.add(on_host(finished), evaluations, game)

    def _keep_games(self) -> None:
        self._collect()
        self.collector.flush()

    def _checkpoint(self) -> None:
        """Save all rows that were played, then the state of training, if it has changed."""
        self._keep_games()
        if self.session.checkpoint(resuming.extras(self._now(), self.collector.chunk)):
            self.collector.counted()

    def _save_network(self) -> str:
        """Save the network and return its name. The checkpoint comes first, so that no run is behind its networks."""
        self._show("saving the network")
        began = time.monotonic()
        self._checkpoint()
        self.session.wait()
        name = self.name
        info = {"run": self.config.run.name, "samples": self.trainer.samples, **asdict(self._now())}
        self._keep_network(self.trainer.network(), name, info)
        self._saved_step = self.trainer.step
        self._writing = time.monotonic() - began
        return name

    def _keep_network(self, net: Network, name: str, info: Mapping[str, Any]) -> None:
        self.networks.save(net, name, self.trainer.step, info)
        self._take_network(net, name)

    def _take_network(self, net: Network, name: str) -> None:
        if note := katago.add_model(self.base, self.networks.path(name), net, self.components.game, name):
            self.reporter.say(note)
        self.collector.network = name

    def _rate(self, name: str, seconds: float, stop: Stop, *, last: bool = False) -> None:
        """Rate the current network under that name, for at most that long; `last`: it is the last of the run."""
        self._play_matches(name, self.weights, seconds, self._show, stop, last=last)

    def _rate_untrained(self, seconds: float, stop: Stop) -> None:
        """Rate the network that played the first games, with the first that has learned: nothing waits for it."""
        if self._untrained is not None:
            weights, self._untrained = self._untrained, None
            self._play_matches(networks.UNTRAINED, weights, seconds, self._show, stop, last=False)

    def _finish(self, stop: Stop) -> None:
        over = self._is_over
        self._show("writing")
        self._collect()
        if (name := self._to_rate(stop)) and self.session.started and not stop():
            self._rate_untrained(self._budget.until_closing(self._metrics.elapsed) / 2, stop)
            self._rate(name, self._budget.until_closing(self._metrics.elapsed), stop, last=True)
        self._checkpoint()
        self.session.wait()
        self._use_up(over)
        self._show("done; waiting for the compiler" if self._ahead.compiles else "done")
        self.reporter.report(self._standing(), now=True)
        self._draw()

    def _standing(self) -> RunStatus:
        return RunStatus(
            *(self._now(), self.trainer.step, self.trainer.samples, self.window, self.name),
            *(self.figures or None, self._playing, self.session.seconds),
            played=self.collector.tally.values() if self.collector.tally.games else None,
        )
