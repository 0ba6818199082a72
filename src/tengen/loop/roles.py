"""Training of roles as a run: progress, metrics, evaluations, checkpoints, networks, and resuming after a kill."""

import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tengen import importing, nets
from tengen.config.trainers import DQNConfig, TrainerConfig
from tengen.errors import ConfigError
from tengen.importing import UserCodeError
from tengen.loop.in_process import SESSION, InProcessRun
from tengen.roles.dqn import DQNTrainer
from tengen.roles.trainer import Trainer
from tengen.run import first_network, locks, networks, safe_exit
from tengen.run.goals import RunCounts
from tengen.run.status import RunStatus
from tengen.train.session import read_extras
from tengen.words import figure

_NEVER = 10**15  # steps


@dataclass(frozen=True)
class _Extras:
    """What a checkpoint holds besides the state of training."""

    seconds: float
    sessions: int


class RoleRun(InProcessRun):
    """One run in the directory `base`. `prepare` resumes it where an earlier process stopped; `run` learns."""

    kind = "roles"

    def __init__(self, config: TrainerConfig, base: Path, display: Any, **options: Any) -> None:
        super().__init__(config, base, display, **options)
        self.evaluation: Mapping[str, float] = {}  # the last
        self.networks: list[Path] = []  # the last that were saved
        self._evaluated = 0  # at which step

    def prepare(self) -> None:
        config = self.config
        self._open()
        self.reporter.show("building the networks", RunStatus(self.counts))
        locks.remove_unfinished(self.base, alone=True)  # this process alone writes here
        self.trainer = make(first_network.local(config, self.base))
        self._open_session(config.checkpoints)
        if self.session.extras is not None:
            found = read_extras(_Extras, self.session.extras, self.session.folder)
            self._metrics.advance(found.seconds)
            self.counts = replace(self.counts, sessions=found.sessions)
            self.reporter.say(f"going on from step {self.trainer.step:,}")
        self.counts = replace(self._now(), sessions=self.counts.sessions + 1)
        self.reporter.write(SESSION, {"session": self.counts.sessions, "steps": self.trainer.step, "mode": "fused"})
        self._before_exit(self._keep)

    def run(self, stop: Callable[[], bool]) -> None:
        """Learn until the goal is reached or `stop` says so; then write everything.

        If the code of a user's trainer fails, everything learned so far is written as well.
        """
        try:
            self._run(stop)
        except UserCodeError as error:
            with contextlib.suppress(Exception):  # the error of the user's code is what counts
                self._keep()
            saved = self.session.saved
            kept = f"up to step {saved:,} is saved" if saved > 0 else "nothing was saved yet"
            raise UserCodeError(f"{error}\n{kept}; when the code is repaired, the same command goes on") from error

    def _run(self, stop: Callable[[], bool]) -> None:
        began = self.trainer.step
        while not stop() and not self.reason:
            self._learn()
            if self.trainer.step % self.config.evaluation.interval == 0:
                self._evaluate()
            if self.session.due:
                self._checkpoint()
            self.reporter.report(self._standing())
            self._take_changes()
        # People and sweeps look at the last evaluation; a run that is stopped should end at once.
        if self.reason and self.trainer.step > max(began, self._evaluated):
            self._evaluate()
        self._finish(learned=self.trainer.step > began)

    def _learn(self) -> None:
        """Learn for about a second, or until the next evaluation or the end."""
        interval, step = self.config.evaluation.interval, self.trainer.step
        steps = min(self.session.pace.units, interval - step % interval)
        if self.config.goal.steps is not None:
            steps = min(steps, self.config.goal.steps - step)
        self._show("learning" if self.session.started else "compiling the games and the learner")
        with importing.told(self.config.trainer):
            self.session.learn(steps, partial(self.trainer.train, evaluation_interval=_NEVER))
        self.counts = self._now()

    def _change(self, config: TrainerConfig) -> None:
        self.trainer.change(config)

    def _evaluate(self) -> None:
        self._show("evaluating")
        with safe_exit.possible(), importing.told(self.config.trainer):
            self.evaluation, self._evaluated = self.trainer.measured(), self.trainer.step
        self.reporter.write("evaluation", {"steps": self.trainer.step, **self.evaluation})
        self.reporter.say(f"step {self.trainer.step:,}: {', '.join(results(self.evaluation))}")
        self._save_networks()
        self._draw()
        self.reporter.paused()

    def _save_networks(self) -> None:
        """Save RUN/models/<run>-<role>-s<samples>-d<rows> for each network that other parts of Tengen can read."""
        self.networks = []
        for name, role in self.trainer.roles.items():
            if role.settings is not None and isinstance(role.net, nets.Network):
                learned = self.trainer.step * getattr(role.settings, "batch", 1)
                called = networks.name_of(self.config.run.name, name, learned, self.trainer.samples)
                folder = self.base / networks.ACCEPTED / called
                self.trainer.save_net(name, folder, {"run": self.config.run.name, **asdict(self._now())})
                self.networks.append(folder)

    def _checkpoint(self) -> None:
        if self.trainer.step > self.session.saved:
            self._show("writing a checkpoint")
        now = self._now()
        self.session.checkpoint(asdict(_Extras(now.seconds, now.sessions)))

    def _keep(self) -> None:
        self._checkpoint()
        self.session.wait()

    def _finish(self, learned: bool) -> None:
        self._show("writing")
        self._keep()
        if learned:
            self._save_networks()
        self.counts = self._now()
        self._show("done")
        self.reporter.report(self._standing(), now=True)
        self._draw()

    def _now(self) -> RunCounts:
        return replace(super()._now(), games=self.trainer.games, rows=self.trainer.samples)

    def _standing(self) -> RunStatus:
        batches = [role.settings for role in self.trainer.roles.values() if role.settings is not None]
        learned = self.trainer.step * sum(getattr(settings, "batch", 0) for settings in batches)
        kept = sum(len(role.replay_buffer) for role in self.trainer.roles.values() if role.replay_buffer is not None)
        step, seconds = self.trainer.step, self.session.seconds
        name = f"{self.config.run.name}-s{step}"
        return RunStatus(self._now(), step, learned, kept, name, self.figures or None, 0.0, seconds)


def make(config: TrainerConfig) -> Trainer[Any]:
    if isinstance(config, DQNConfig):
        return DQNTrainer(config)
    if not importing.is_reference(config.trainer):
        advice = "name its class as package.module:Class, or make it in a program"
        raise ConfigError([f"trainer: {config.trainer} is not one that `tengen run` knows; {advice}"])
    kind = importing.load(config.trainer, "a trainer")
    try:
        inspect.signature(kind).bind(config)
    except TypeError as error:
        words = f"{config.trainer}: `tengen run` gives its __init__ the configuration and nothing else: {error}"
        raise UserCodeError(f"{words} ({importing.where(kind.__init__)})") from error
    with importing.told(config.trainer):
        made = kind(config)
    if "roles" not in vars(made):
        place = importing.where(kind.__init__)
        raise UserCodeError(f"{config.trainer}: its __init__ does not call super().__init__(config) ({place})")
    return made


def results(evaluation: Mapping[str, float]) -> list[str]:
    """The results of an evaluation, such as `black_vs_random 0.92 (12.1 moves)`."""
    pairs = [name for name in evaluation if not name.endswith(("_length", "_lost"))]
    lengths = {name: evaluation.get(f"{name}_length") for name in pairs}
    moves = {name: "" if length is None else f" ({length:.1f} moves)" for name, length in lengths.items()}
    return [f"{name} {figure(evaluation[name])}{moves[name]}" for name in pairs]
