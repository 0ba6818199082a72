"""The network of a run that grows: at a share of the goal a larger one takes over, with all that the smaller one knows.

The larger network is built and compiled while the smaller one still plays. Its checkpoints are in a folder of their
own (`run/grown.py`), and the first of them is written before anything else changes: a run that is killed goes on with
the larger network if that checkpoint is there, and otherwise grows again.
"""

from concurrent.futures import Future
from typing import NamedTuple

from tengen.ahead import Ahead, Jobs, done, finish
from tengen.config.sections import Config
from tengen.loop.components import Components

_LEAD = 0.5  # of the share at which a network takes over: from then on it is compiled


class _Built(NamedTuple):
    components: Components
    programs: Jobs


class NextNetwork:
    """The network that takes over next, if there is one."""

    def __init__(self, config: Config, times: int, ahead: Ahead | None) -> None:
        """`times` that it has grown so far. With `ahead`, its threads compile."""
        steps = config.net.growth_steps
        self._step = steps[times] if times < len(steps) else None
        self._config, self._ahead = config, ahead
        self.times = times + 1  # that it has grown once it has taken over
        self._building: Future[_Built] | None = None

    @property
    def name(self) -> str:
        return self._step.name if self._step else ""

    def changed(self, config: Config) -> "NextNetwork":
        """The same with other settings, unless it is being built already: then it gets them when it takes over."""
        return self if self._building is not None else NextNetwork(config, self.times - 1, self._ahead)

    def due(self, progress: float) -> bool:
        """Whether it takes over now, at this share of the goal: its share is reached, and it is compiled."""
        if self._step is None or progress < self._step.at * (1 if self._ahead is None else _LEAD):
            return False
        if self._ahead is not None and self._building is None:
            (self._building,) = self._ahead.call(self._build)
        if self._building is None:
            return True
        return progress >= self._step.at and self._building.done() and done(self._building.result().programs)

    def components(self) -> Components:
        """The components of the run with this network."""
        built = self._building.result() if self._building else self._build()
        finish(built.programs)
        return built.components

    def _build(self) -> _Built:
        parts = Components(self._config.grown(self.times), self._ahead)
        parts.check_memory()
        programs = parts.play_jobs
        if self._ahead is not None:
            programs += self._ahead.call(lambda: parts.learning_program().compile())
        return _Built(parts, programs)
