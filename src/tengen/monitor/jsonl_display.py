"""A run's status as lines of the daemon's protocol, for the dashboard: `tengen run --progress jsonl`."""

import contextlib
from dataclasses import replace
from typing import BinaryIO, TextIO

from tengen.monitor.display import Display
from tengen.monitor.run_view import RunView
from tengen.protocol.messages import (
    LoaderStage,
    LoaderStatus,
    NetworkStatus,
    ScheduleStatus,
    SelfplayStatus,
    Stage,
    TrainingFigures,
    TrainingStatus,
    encode,
)
from tengen.run.part_status import PartStatus
from tengen.run.status import RatedNetwork, RunStatus

_NETWORKS = 20  # that are listed
_SAVING = ("saving", "writing", "export", "ending")


class JsonlDisplay(Display):
    """Writes a status to `lines` every second, and messages for people to `words`."""

    wants_board = True

    def __init__(self, view: RunView, lines: BinaryIO, words: TextIO | None, run: str, beat: float = 1.0) -> None:
        super().__init__(view, beat)
        self._run_view, self._now = view, view.now
        self._lines, self._words, self._run = lines, words, run
        self._began = self._now()
        self._networks: list[tuple[float, NetworkStatus]] = []  # with the time when they appeared, newest first
        self._rating: RatedNetwork | None = None
        self._cycle: float | None = None  # seconds between the last two networks

    def update(self, state: RunStatus) -> None:
        with self._lock:
            super().update(state)
            self._note_network(state)

    def say(self, text: str) -> None:
        if self._words is not None:
            print(text, file=self._words, flush=True)

    def tick(self) -> None:
        with self._lock:
            self._lines.write(encode(self._message()))
            self._lines.flush()

    def close(self) -> None:
        super().close()
        with contextlib.suppress(OSError, ValueError):
            self.tick()

    def _note_network(self, status: RunStatus) -> None:
        """Remember networks that are rated or accepted; the fused loop renames its network all the time."""
        known = self._networks[0][1].name if self._networks else ""
        new = status.network if status.networks is not None and status.network != known else ""
        if status.rating is not None and status.rating != self._rating:
            self._rating, new = status.rating, status.network
        if not new:
            return
        if self._networks:
            self._cycle = self._now() - self._networks[0][0]
        elo = None if status.rating is None else status.rating.elo
        network = NetworkStatus(new, status.steps, 0.0, rating=elo)
        self._networks = [(self._now(), network), *self._networks][:_NETWORKS]

    def _message(self) -> TrainingStatus:
        status, now = self._run_view.current, self._now()
        schedule = ScheduleStatus(
            stage=_stage(status),
            words="; ".join(filter(None, (status.stage, str(status.outlook() or "")))),
            since=now - self._run_view.stage_since,
            networks_done=len(self._networks) if status.networks is None else status.networks.accepted,
            cycle_seconds=now - (self._networks[0][0] if self._networks else self._began),
            previous_cycle_seconds=self._cycle,
        )
        stages = tuple(map(_part, status.parts))
        return TrainingStatus(
            run=self._run,
            uptime=now - self._began,
            schedule=schedule,
            loader=None if status.networks is None and not stages else LoaderStatus(stages),
            training=_training(status),
            networks=tuple(replace(network, seconds=now - came) for came, network in self._networks),
            selfplay=_selfplay(status),
        )


def _stage(status: RunStatus) -> Stage:
    if status.waiting:
        return "WAITING_FOR_DATA"
    if status.stage.startswith(_SAVING):
        return "EXPORTING"
    return "IDLE" if status.stage == "done" else "TRAINING"


def _training(status: RunStatus) -> TrainingFigures | None:
    losses = status.losses
    loss = losses.pop("loss", None)
    if not status.steps and loss is None:
        return None
    outlook = status.outlook()
    return TrainingFigures(
        step=status.steps,
        steps=(status.goal.steps if status.goal else None) or 0,
        total_steps=status.steps,
        steps_per_second=status.speeds.get("steps"),
        seconds_left=None if outlook is None else outlook.left,
        loss=loss,
        losses=losses,
        learning_rate=status.learning_rate,
    )


def _selfplay(status: RunStatus) -> SelfplayStatus:
    return SelfplayStatus(
        games=status.counts.games,
        games_per_second=status.speeds.get("games"),
        rows=status.counts.rows,
        rows_per_second=status.speeds.get("rows"),
        evaluations_per_second=status.speeds.get("evaluations"),
        window=status.window,
        rating="" if status.rating is None else str(status.rating),
        board=status.board,
        waiting=status.waiting,
    )


def _part(part: PartStatus) -> LoaderStage:
    """A part as a stage without counts, which says in words what it does."""
    return LoaderStage(
        name=part.part,
        doing=part.doing + (f" ({part.restarts} restarts)" if part.restarts else ""),
        since=part.seconds,
        filled=round(100 * (part.share or 0.0)),
        capacity=0 if part.share is None else 100,
    )
