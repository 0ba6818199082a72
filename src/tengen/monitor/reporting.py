"""What a run tells while it goes on: to the person in front of it, to RUN/metrics.jsonl, to TensorBoard."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tengen.monitor.progress import Display, Goal, RatedNetwork, RunProgress
from tengen.run import part
from tengen.run.counts import RunCounts
from tengen.run.metrics import Metrics, TensorBoard
from tengen.run.part_status import StatusWriter

_EVERY = 5.0  # seconds between two lines of metrics
_BOARD = 5.0  # seconds between two looks at a game
_COUNTED = ("samples", "rows", "bucket", "step", "steps")  # figures of a trainer that are no means over its steps


@dataclass(frozen=True)
class RunStanding:
    """How a run stands, in numbers that cost nothing to know."""

    counts: RunCounts
    steps: int = 0
    samples: int = 0
    window: int = 0
    network: str = ""
    figures: Mapping[str, float] | None = None  # what the trainer said last
    playing: float = 0.0  # seconds of this process in calls to the games, without compiling
    learning: float = 0.0  # the same for learning


class RunReporter:
    """Keeps the display up to date, and writes a line of metrics every few seconds."""

    def __init__(
        self,
        display: Display,
        metrics: Metrics,
        goal: Goal,
        tensorboard: TensorBoard | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        notice: StatusWriter | None = None,
    ) -> None:
        """`notice` is what others see of the run (`tengen status`)."""
        self._display, self._metrics, self._tensorboard, self._clock = display, metrics, tensorboard, clock
        self._progress, self._notice = RunProgress(goal=goal), notice
        self._before: tuple[float, RunStanding] | None = None
        self._looked = -_BOARD

    def say(self, text: str) -> None:
        self._display.say(text)

    def show(self, stage: str, standing: RunStanding, waiting: str = "") -> None:
        """What is being done now. Cheap."""
        parts = losses(standing.figures or {})
        self._progress = replace(
            self._progress,
            stage=stage,
            waiting=waiting,
            elapsed=standing.counts.seconds,
            network=standing.network,
            games=standing.counts.games,
            rows=standing.counts.rows,
            window=standing.window,
            steps=standing.steps,
            loss=parts.pop("loss", None),
            losses=parts,
            learning_rate=(standing.figures or {}).get("learning_rate"),
        )
        self._display.update(self._progress)
        if self._notice is not None:
            counts = {"games": standing.counts.games, "rows": standing.counts.rows, "steps": standing.steps}
            self._notice.show(part.Progress(self._progress.doing, figures=counts))

    def rated(self, rating: RatedNetwork | None) -> None:
        """The last rating, from now on."""
        self._progress = replace(self._progress, rating=rating)

    def look(self, board: Callable[[], str]) -> None:
        """Show one of the games, if the display does and a look is due; `board` takes a moment."""
        if self._display.wants_board and self._clock() - self._looked >= _BOARD:
            self._looked = self._clock()
            self._progress = replace(self._progress, board=board())

    def write(self, kind: str, values: Mapping[str, Any]) -> None:
        """A line of metrics."""
        self._metrics.write(kind, values)
        if self._tensorboard is not None:
            self._tensorboard.write(kind, values)

    def report(self, standing: RunStanding, *, now: bool = False) -> None:
        """The speeds since the last report and a line of metrics, if they are due or wanted `now`."""
        moment = self._clock()
        if self._before is None:
            self._before = moment, standing
        before, then = self._before
        if not now and moment - before < _EVERY:
            return
        if moment - before >= min(1.0, _EVERY):  # less tells no speed
            self._progress = replace(self._progress, **speeds(then, standing, moment - before))  # type: ignore[arg-type]
            self._before = moment, standing
        self.show(self._progress.stage, standing, self._progress.waiting)
        figures = {name: value for name, value in (standing.figures or {}).items() if name not in _COUNTED}
        more = {"samples": standing.samples, "playing": standing.playing, "learning": standing.learning}
        self.write("progress", self._progress.values() | more | {"figures": figures})

    def paused(self) -> None:
        """Something else was done for a while, of which speeds shall not tell."""
        self._before = None


def losses(figures: Mapping[str, float]) -> dict[str, float]:
    """The loss and its parts by name, of all that a trainer says."""
    parts = {name.removesuffix("_loss"): value for name, value in figures.items() if name.endswith("_loss")}
    return {"loss": figures["loss"], **parts} if "loss" in figures else parts


def speeds(then: RunStanding, now: RunStanding, seconds: float) -> dict[str, float | None]:
    """Per second, of two standings so far apart. None is what was never counted: a training of roles has no search."""
    evaluations = now.counts.evaluations
    return {
        "games_per_second": (now.counts.games - then.counts.games) / seconds,
        "rows_per_second": (now.counts.rows - then.counts.rows) / seconds,
        "evaluations_per_second": (evaluations - then.counts.evaluations) / seconds if evaluations else None,
        "steps_per_second": (now.steps - then.steps) / seconds,
        "samples_per_second": (now.samples - then.samples) / seconds,
    }
