"""Sends a run's status to the display, to RUN/metrics.jsonl, to TensorBoard and to `tengen status`."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tengen.config.sections import GoalSection
from tengen.monitor.display import Display
from tengen.run.metrics import Metrics, TensorBoard
from tengen.run.part import Progress
from tengen.run.part_status import NODES, StatusWriter
from tengen.run.status import RatedNetwork, RunStatus

_EVERY = 5.0  # seconds between two lines of metrics
_SHORTEST = 1.0  # seconds from which a speed can be measured
_BOARD = 5.0  # seconds between two boards


class RunReporter:
    """Keeps the display up to date, and writes a line of metrics every few seconds."""

    def __init__(
        self,
        display: Display,
        metrics: Metrics,
        goal: GoalSection,
        tensorboard: TensorBoard | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        status_writer: StatusWriter | None = None,
    ) -> None:
        """`status_writer` is what `tengen status` reads."""
        self._display, self._metrics, self._tensorboard, self._clock = display, metrics, tensorboard, clock
        self._status, self._status_writer = RunStatus(goal=goal), status_writer
        self._before: tuple[float, RunStatus] | None = None  # what speeds are measured from
        self._written: float | None = None  # when there was a line of metrics
        self._board_at = -_BOARD

    def say(self, text: str) -> None:
        self._display.say(text)

    def show(self, stage: str, status: RunStatus, waiting: str = "") -> None:
        """Show the loop's status, with the speeds, the rating and the board that the reporter knows. Cheap."""
        known = {name: getattr(self._status, name) for name in ("speeds", "rating", "goal", "board")}
        self._status = replace(status, stage=stage, waiting=waiting, **known)
        self._display.update(self._status)
        if self._status_writer is not None:
            figures: dict[str, Any] = {"games": status.counts.games, "rows": status.counts.rows, "steps": status.steps}
            if status.parts:
                names = ("words", "waiting", "seconds", "figures", "restarts")
                nodes = {part.name: {name: getattr(part, name) for name in names} for part in status.parts}
                figures |= {"appetite_rows_per_second": status.appetite, NODES: nodes}
            self._status_writer.show(Progress(self._status.doing, figures=figures))

    def goal(self, goal: GoalSection) -> None:
        self._status = replace(self._status, goal=goal)

    def rated(self, rating: RatedNetwork | None) -> None:
        self._status = replace(self._status, rating=rating)

    def look(self, board: Callable[[], str]) -> None:
        """Show one of the games, if the display wants it and it is time; `board` takes a moment."""
        if self._display.wants_board and self._clock() - self._board_at >= _BOARD:
            self._board_at = self._clock()
            self._status = replace(self._status, board=board())

    def write(self, kind: str, values: Mapping[str, Any]) -> None:
        self._metrics.write(kind, values)
        if self._tensorboard is not None:
            self._tensorboard.write(kind, values)

    def report(self, status: RunStatus, *, now: bool = False) -> None:
        """Measure the speeds since the last report and write a line of metrics, if it is time or wanted `now`."""
        moment = self._clock()
        if self._before is None:
            self._before = moment, status
        before, then = self._before
        if self._written is None:
            self._written = moment
        if not now and moment - self._written < _EVERY:
            return
        self._written = moment
        if moment - before >= _SHORTEST:
            self._status = replace(self._status, speeds=status.speeds_since(then, moment - before))
            self._before = moment, status
        self.show(self._status.stage, status, self._status.waiting)
        self.write("progress", self._status.values())

    def paused(self) -> None:
        """Leave the time since the last report out of the speeds."""
        self._before = None
