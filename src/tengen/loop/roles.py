"""A training of roles as a run: progress, metrics, evaluations, checkpoints, networks, and going on after a kill.

What a step does depends on its number alone, so a run that was killed and goes on from a checkpoint learns what it
would have learned without.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tengen import nets
from tengen.analysis import run_chart
from tengen.config.problems import ConfigError
from tengen.config.trainers import DQNConfig, TrainerConfig
from tengen.errors import TengenError
from tengen.loop.closing import Closing
from tengen.loop.resuming import SESSION, refuse_to_forget
from tengen.monitor.display import Display
from tengen.monitor.reporting import RunReporter
from tengen.roles.dqn.trainer import DQNTrainer
from tengen.roles.trainer import Trainer
from tengen.run import counts, leftovers, registry, safe_exit
from tengen.run.counts import RunCounts
from tengen.run.metrics import Metrics, TensorBoard
from tengen.run.part_status import StatusWriter
from tengen.run.status import RunStatus
from tengen.selfplay.pacing import Pace
from tengen.train.checkpoints import Checkpoints
from tengen.words import figure

TRAINER = "main"
_SECONDS = 1.0  # that one call to the trainer should take
_NEVER = 10**15  # steps


class RoleRun(Closing):
    """One run in the directory `base`. `prepare` goes on where an earlier process stopped; `run` learns."""

    def __init__(
        self,
        config: TrainerConfig,
        base: Path,
        display: Display,
        *,
        tensorboard: bool = False,
        began: float | None = None,
    ) -> None:
        """`began` is when the process did, by `time.monotonic`."""
        super().__init__()
        self.config, self.base, self._began = config, base, began
        self.counts = RunCounts()
        self.figures: Mapping[str, float] = {}
        self.evaluation: Mapping[str, float] = {}  # the last
        self._display, self._tensorboard = display, tensorboard
        self._pace = Pace(_SECONDS, amount=10)
        self.networks: list[Path] = []  # the last that were saved
        self._learning = 0.0  # seconds, without compiling
        self._evaluated = 0  # at which step

    def prepare(self) -> None:
        """Open the directory, build everything, and go on where an earlier process stopped."""
        config, closing = self.config, self._closing
        tensorboard = closing.enter_context(TensorBoard(self.base)) if self._tensorboard else None
        self._metrics = closing.enter_context(Metrics(self.base, since=self._began))
        notice = closing.enter_context(StatusWriter(self.base, "roles", "roles"))
        self.reporter = RunReporter(self._display, self._metrics, config.goal, tensorboard, notice=notice)
        self.reporter.show("building the networks", RunStatus(self.counts))
        leftovers.clean(self.base, alone=True)  # this process alone writes here
        self.trainer = make(config)
        self.checkpoints = Checkpoints(self.base / "train" / TRAINER, config.checkpoints)
        closing.callback(self.checkpoints.close)
        found = self.trainer.resume(self.checkpoints)
        for note in self._metrics.notes:
            self.reporter.say(note)
        if found is None:
            refuse_to_forget(self.checkpoints.folder)
        else:
            self._resume(*found)
        self.counts = self._now(sessions=self.counts.sessions + 1)
        self._checkpointed = self.trainer.step
        self.reporter.write(SESSION, {"session": self.counts.sessions, "steps": self.trainer.step, "mode": "fused"})
        closing.enter_context(safe_exit.before(lambda: self.reporter.report(self._standing(), now=True)))
        closing.enter_context(safe_exit.before(self._keep))

    def _resume(self, extras: Mapping[str, Any], set_aside: tuple[str, ...]) -> None:
        for text in set_aside:
            self.reporter.say(f"a damaged checkpoint: {text}")
        try:
            seconds, sessions = float(extras["seconds"]), int(extras["sessions"])
        except (KeyError, TypeError, ValueError) as error:
            raise TengenError(f"{self.checkpoints.folder}: the checkpoint is not of such a run ({error})") from None
        self._metrics.advance(seconds)
        self.counts = replace(self.counts, sessions=sessions)
        self.reporter.say(f"going on from step {self.trainer.step:,}")

    @property
    def reason(self) -> str:
        """Which part of the goal is reached, in words; empty if none is."""
        return counts.reached(self.config.goal, self._now(), self.trainer.step)

    def run(self, stop: Callable[[], bool]) -> None:
        """Learn until the goal is reached or `stop` says so; then write everything."""
        began = self.trainer.step
        while not stop() and not self.reason:
            self._learn()
            if self.trainer.step % self.config.evaluation.interval == 0:
                self._evaluate()
            if self.trainer.step - self._checkpointed >= self.config.checkpoints.interval:
                self._checkpoint()
            self.reporter.report(self._standing())
        # How it ended is what people and sweeps look at; who stops a run wants it to stop.
        if self.reason and self.trainer.step > max(began, self._evaluated):
            self._evaluate()
        self._finish(learned=self.trainer.step > began)

    def _learn(self) -> None:
        """About a second's steps, or until the next evaluation or the end."""
        interval, step = self.config.evaluation.interval, self.trainer.step
        steps = min(self._pace.units, interval - step % interval)
        if self.config.goal.steps is not None:
            steps = min(steps, self.config.goal.steps - step)
        self._show("learning" if self._pace.calls else "compiling the games and the learner")
        began = time.monotonic()
        with safe_exit.possible(not self._pace.calls):
            self.figures = self.trainer.train(steps, evaluation_interval=_NEVER)
        self._learning += (time.monotonic() - began) * bool(self._pace.calls)
        self._pace = self._pace.after(steps, time.monotonic() - began)
        self.counts = self._now()

    def _evaluate(self) -> None:
        self._show("evaluating")
        with safe_exit.possible():
            self.evaluation, self._evaluated = self.trainer.evaluate(), self.trainer.step
        self.reporter.write("evaluation", {"steps": self.trainer.step, **self.evaluation})
        self.reporter.say(f"step {self.trainer.step:,}: {', '.join(results(self.evaluation))}")
        self._save_networks()
        self._draw()
        self.reporter.paused()

    def _save_networks(self) -> None:
        """RUN/models/<run>-<role>-s<samples>-d<rows>, for those that other parts of Tengen can read."""
        self.networks = []
        for name, role in self.trainer.roles.items():
            if role.settings is not None and isinstance(role.net, nets.Network):
                learned = self.trainer.step * getattr(role.settings, "batch", 1)
                called = registry.name_of(self.config.run.name, name, learned, self.trainer.samples)
                folder = self.base / registry.ACCEPTED / called
                self.trainer.save_net(name, folder, {"run": self.config.run.name, **asdict(self._now())})
                self.networks.append(folder)

    def _checkpoint(self) -> None:
        if self.trainer.step > self._checkpointed:
            self._show("writing a checkpoint")
            now = self._now()
            self.checkpoints.save(self.trainer.checkpoint({"seconds": now.seconds, "sessions": now.sessions}))
            self._checkpointed = self.trainer.step

    def _keep(self) -> None:
        """All that was learned, on the disk."""
        self._checkpoint()
        self.checkpoints.wait()

    def _finish(self, learned: bool) -> None:
        """Everything on disk."""
        self._show("writing")
        self._keep()
        if learned:
            self._save_networks()
        self.counts = self._now()
        self._show("done")
        self.reporter.report(self._standing(), now=True)
        self._draw()

    def _draw(self) -> None:
        """RUN/chart.svg with the losses."""
        if note := run_chart.write(self.base, self.config.run.name):
            self.reporter.say(note)

    def _now(self, sessions: int | None = None) -> RunCounts:
        """The counts as they are now."""
        trainer = self.trainer
        sessions = self.counts.sessions if sessions is None else sessions
        return RunCounts(trainer.games, trainer.samples, 0.0, self._metrics.elapsed, sessions)

    def _standing(self) -> RunStatus:
        batches = [role.settings for role in self.trainer.roles.values() if role.settings is not None]
        learned = self.trainer.step * sum(getattr(settings, "batch", 0) for settings in batches)
        kept = sum(len(role.replay_buffer) for role in self.trainer.roles.values() if role.replay_buffer is not None)
        name = f"{self.config.run.name}-s{self.trainer.step}"
        return RunStatus(self._now(), self.trainer.step, learned, kept, name, self.figures or None, 0.0, self._learning)

    def _show(self, stage: str) -> None:
        self.reporter.show(stage, self._standing())


def make(config: TrainerConfig) -> Trainer[Any]:
    """The trainer that a configuration names."""
    if isinstance(config, DQNConfig):
        return DQNTrainer(config)
    raise ConfigError([f"trainer: {config.trainer} is not one that `tengen run` knows; make it in a program"])


def results(evaluation: Mapping[str, float]) -> list[str]:
    """host_vs_random 0.92 (12.1 moves) ..."""
    pairs = [name for name in evaluation if not name.endswith(("_length", "_lost"))]
    return [f"{name} {figure(evaluation[name])} ({evaluation[f'{name}_length']:.1f} moves)" for name in pairs]
