"""The network of a run that grows: in the course of it a larger one takes over, with all that the smaller one knows.

The larger network is built and compiled while the smaller one still plays. Its first checkpoint is written before
anything else changes: a run that is killed goes on with the larger network if it is there, and otherwise grows again.
"""

from concurrent.futures import Future

from tengen.ahead import Ahead, Jobs, done, finish
from tengen.config.sections import Config
from tengen.loop.components import Components

_LEAD = 0.5  # of the share or rows at which a network takes over: from then on it is compiled


class NextNetwork:
    """The network that takes over next, if there is one."""

    def __init__(self, config: Config, times: int, ahead: Ahead | None) -> None:
        """`times` that it has grown so far. With `ahead`, its threads compile."""
        steps = config.net.growth_steps
        self._step = steps[times] if times < len(steps) else None
        self._config, self._ahead = config, ahead
        self.times = times + 1  # that it has grown once it has taken over
        self._building: Future[Components] | None = None

    @property
    def name(self) -> str:
        return self._step.name if self._step else ""

    def changed(self, config: Config) -> "NextNetwork":
        """The same with other settings, unless it is being built already: then it gets them when it takes over."""
        return self if self._building is not None else NextNetwork(config, self.times - 1, self._ahead)

    def abandoned(self) -> "NextNetwork":
        """No network that takes over: this one cannot."""
        return NextNetwork(self._config, len(self._config.net.growth), self._ahead)

    def due(self, progress: float, rows: int) -> bool:
        """Whether it takes over now, at this share of the goal and with these rows: it is time, and it is compiled.

        OptionError if the device has too little memory for it.
        """
        step = self._step
        if step is None:
            return False
        if self._ahead is None:
            return step.is_due(progress, rows)
        if self._building is None and step.is_due(progress / _LEAD, round(rows / _LEAD)):
            (self._building,) = self._ahead.call(self._build)
        if self._building is None or not step.is_due(progress, rows):
            return False
        return self._building.done() and done(_programs(self._building.result()))

    def components(self) -> Components:
        """The components of the run with this network."""
        built = self._building.result() if self._building else self._build()
        finish(_programs(built))
        return built

    def _build(self) -> Components:
        parts = Components(self._config.grown(self.times), self._ahead)
        parts.check_memory()
        return parts


def _programs(parts: Components) -> Jobs:
    return parts.play_jobs + parts.learner_jobs
