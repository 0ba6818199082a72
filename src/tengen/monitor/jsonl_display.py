"""A run's progress as lines of the daemon's protocol, for a dashboard: `tengen run --progress jsonl`."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO, TextIO

from tengen.monitor.pipeline_display import PartRow, PipelineView
from tengen.monitor.progress import Display, RatedNetwork, RunProgress
from tengen.protocol.encoding import encode
from tengen.protocol.messages import (
    LoaderStage,
    LoaderStatus,
    NetworkStatus,
    ScheduleStatus,
    SelfplayStatus,
    Stage,
    TrainingFigures,
    TrainingStatus,
)

_NETWORKS = 20  # that are told of
_SAVING = ("saving", "writing", "export", "ending")


class StatusDisplay(Display):
    """Writes a status a second to `lines`, and what is said to `words`."""

    wants_board = True

    def __init__(
        self,
        lines: BinaryIO,
        words: TextIO | None,
        run: str,
        every: float = 1.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(every, now)
        self._lines, self._words, self._run = lines, words, run
        self._began = now()
        self._networks: list[tuple[float, NetworkStatus]] = []  # when they came, the newest first
        self._rating: RatedNetwork | None = None
        self._cycle: float | None = None  # seconds between the last two networks

    def update(self, progress: RunProgress) -> None:
        with self._lock:
            super().update(progress)
            self._notice_network(progress)

    def say(self, text: str) -> None:
        if self._words is not None:
            print(text, file=self._words, flush=True)

    def tick(self) -> None:
        with self._lock:
            self._lines.write(encode(self._status()))
            self._lines.flush()

    def close(self) -> None:
        """With the last state."""
        super().close()
        with contextlib.suppress(OSError, ValueError):
            self.tick()

    def _notice_network(self, progress: RunProgress) -> None:
        """One that was rated, or that a ring calls new: the name of the fused loop's changes all the time."""
        known = self._networks[0][1].name if self._networks else ""
        fresh = progress.network if isinstance(progress, PipelineView) and progress.network != known else ""
        if progress.rating is not None and progress.rating != self._rating:
            self._rating, fresh = progress.rating, progress.network
        if not fresh:
            return
        elo = None if progress.rating is None else progress.rating.elo
        if self._networks:
            self._cycle = self._now() - self._networks[0][0]
        made = NetworkStatus(fresh, progress.steps, 0.0, rating=elo)
        self._networks = [(self._now(), made), *self._networks][:_NETWORKS]

    def _status(self) -> TrainingStatus:
        progress, now = self.current, self._now()
        return TrainingStatus(
            run=self._run,
            uptime=now - self._began,
            schedule=self._schedule(progress, now),
            loader=_parts(progress),
            training=_training(progress),
            networks=tuple(replace(made, seconds=now - came) for came, made in self._networks),
            selfplay=_selfplay(progress),
        )

    def _schedule(self, progress: RunProgress, now: float) -> ScheduleStatus:
        return ScheduleStatus(
            stage=_stage(progress),
            words="; ".join(filter(None, (progress.stage, str(progress.outlook() or "")))),
            since=now - self._stage_since,
            networks_done=progress.accepted if isinstance(progress, PipelineView) else len(self._networks),
            new_chunks=0,
            chunks_to_wait_for=0,
            cycle_seconds=now - (self._networks[0][0] if self._networks else self._began),
            training_seconds=0.0,
            previous_cycle_seconds=self._cycle,
        )


def _stage(progress: RunProgress) -> Stage:
    if progress.waiting:
        return "WAITING_FOR_DATA"
    if progress.stage.startswith(_SAVING):
        return "EXPORTING"
    return "IDLE" if progress.stage == "done" else "TRAINING"


def _training(progress: RunProgress) -> TrainingFigures | None:
    if not progress.steps and progress.loss is None:
        return None
    outlook = progress.outlook()
    return TrainingFigures(
        step=progress.steps,
        steps=progress.goal.steps or 0,
        total_steps=progress.steps,
        steps_per_second=progress.steps_per_second,
        seconds_left=None if outlook is None else outlook.left,
        loss=progress.loss,
        losses=dict(progress.losses),
        learning_rate=progress.learning_rate,
    )


def _selfplay(progress: RunProgress) -> SelfplayStatus:
    return SelfplayStatus(
        games=progress.games,
        games_per_second=progress.games_per_second,
        rows=progress.rows,
        rows_per_second=progress.rows_per_second,
        evaluations_per_second=progress.evaluations_per_second,
        window=progress.window,
        rating="" if progress.rating is None else str(progress.rating),
        board=progress.board,
        waiting=progress.waiting,
    )


def _parts(progress: RunProgress) -> LoaderStatus | None:
    """The parts of a ring as stages that tell in words what they do."""
    if not isinstance(progress, PipelineView):
        return None
    return LoaderStatus(tuple(map(_part, progress.shown)), chunks={}, rows={}, rejected={})


def _part(row: PartRow) -> LoaderStage:
    known = row.share is not None
    return LoaderStage(
        name=row.part,
        split="",
        last_second=0.0,
        rate=0.0,
        total=0,
        rows=0,
        load=0.0,
        doing=row.doing + (f" ({row.restarts} restarts)" if row.restarts else ""),
        since=row.seconds,
        filled=round(100 * row.share) if row.share is not None else 0,
        capacity=100 * known,
    )
