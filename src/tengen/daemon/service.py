"""The daemon as a whole: its cycle, its clients, and a status once a second."""

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tengen.daemon.cycle import DaemonCycle, DaemonStage
from tengen.daemon.server import DaemonClient, Server
from tengen.protocol import messages
from tengen.protocol.messages import (
    LoaderStage,
    LoaderStatus,
    NetworkStatus,
    ScheduleStatus,
    TrainingFigures,
    TrainingStatus,
)
from tengen.run.status import losses

if TYPE_CHECKING:
    from tengen.daemon.session import DaemonSession
    from tengen.data.loader.loader import LoaderStats
    from tengen.data.loader.stages import StageStats


_EVERY = 1.0  # seconds between two statuses
_LOOK = 0.1  # seconds between two checks for the end


class Service(contextlib.AbstractContextManager):
    """The daemon. Nothing is open before `open`; the end of a `with` closes everything."""

    def __init__(self, base: Path | None = None, overrides: Sequence[str] = ()) -> None:
        self._server = Server(self._heard, self._write, lambda: self.cycle.input_closed(not self._listens))
        self.cycle = DaemonCycle(self.tell, self.log, base, overrides)
        self._reporter = DaemonReporter(self.cycle)
        self._listens = False
        self._telling = threading.Lock()

    def __exit__(self, *exception: object) -> None:
        self._server.close()

    def open(self, source: int | None, sink: int | None, listen: Path | None, config: str | None) -> None:
        """Serve these file descriptors and that socket; start training if there is a configuration."""
        if listen is not None:
            self._server.listen(listen)
            self._listens = True
        if config is not None:
            self.cycle.post(messages.StartTraining(config))
        self.cycle.start()
        self._server.add_standard(source, sink)
        threading.Thread(target=self._tick, name="tengen-status", daemon=True).start()

    def wait(self, stop: Callable[[], bool]) -> None:
        """Wait until the cycle has ended; shut it down when `stop` says so."""
        stopping = False
        while not self.cycle.ended.wait(_LOOK):
            if not stopping and stop():
                stopping = True
                self.cycle.post(messages.Shutdown())
        self._tell_status()

    def log(self, level: Any, text: str) -> None:
        """Send a line for people to standard error and to all clients."""
        self._write(level, text)
        self._server.tell(messages.Log(level, text))

    def tell(self, message: Any) -> None:
        """Send a message to all clients, and in words to standard error."""
        if isinstance(message, messages.Error | messages.NetworkExported):
            self._write("error" if isinstance(message, messages.Error) else "info", messages.in_words(message))
        self._server.tell(message)

    def _heard(self, client: DaemonClient, message: Any) -> None:
        if isinstance(message, messages.GetStatus):
            client.tell(self._reporter.status())
        else:
            self.cycle.post(message)

    def _tick(self) -> None:
        due = time.monotonic()
        while not self.cycle.ended.is_set():
            self._tell_status()
            due = max(due + _EVERY, time.monotonic())
            self.cycle.ended.wait(due - time.monotonic())

    def _tell_status(self) -> None:
        with self._telling:
            try:
                self._server.tell(self._reporter.status())
            except Exception as error:  # a failing status must not stop the daemon
                self._write("error", f"no status: {type(error).__name__}: {error}")

    def _write(self, level: str, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # standard error may be closed
            mark = "" if level == "info" else f"{level}: "
            print(f"{time.strftime('%H:%M:%S')} {mark}{text}", file=sys.stderr, flush=True)


_SECOND = 0.9  # minimum age of the figures to which those of now are compared
_NAMED = 5  # rejected files
_NETWORKS = 10
_DOING = {"input": "waiting for input", "output": "waiting for output"}
# What the queue before a stage holds, which is behind the previous stage.
_QUEUES = {
    "read": "files",
    "unpack": "chunks",
    "mix": "blocks of rows",
    "batch": "blocks of rows",
    "consumer": "batches",
}


class DaemonReporter:
    """Makes statuses of a cycle, in any thread."""

    def __init__(self, cycle: DaemonCycle) -> None:
        self._cycle, self._began, self._lock = cycle, time.monotonic(), threading.Lock()
        self._before: deque[tuple[float, dict[tuple[str, str], tuple[int, float]]]] = deque(maxlen=20)

    def status(self) -> TrainingStatus:
        with self._lock:
            return self._status()

    def _status(self) -> TrainingStatus:
        session, now = self._cycle.session, self._cycle.now
        moment = time.monotonic()
        about = (self._cycle.run_name, moment - self._began, _schedule(session, now, moment))
        if session is None:
            return TrainingStatus(*about)
        loader = self._loader(session.loader.get_stats(), moment)
        return TrainingStatus(*about, loader, _training(session, now), _networks(session))

    def _loader(self, stats: "LoaderStats", moment: float) -> LoaderStatus:
        figures = {(stage.split, stage.name): (stage.items, stage.working) for stage in stats.stages}
        old = [each for each in self._before if moment - each[0] >= _SECOND]
        then, before = old[-1] if old else (self._began, {})
        if not self._before or moment - self._before[-1][0] >= _SECOND / 2:
            self._before.append((moment, figures))
        seconds = max(moment - then, 1e-9)
        stages = []
        for stage in stats.stages:
            items, working = before.get((stage.split, stage.name), (0, 0.0))
            if stage.items < items:  # another loader
                items, working = 0, 0.0
            name, filled, capacity = _queue(stats, stage)
            stages.append(
                LoaderStage(
                    name=stage.name,
                    split=stage.split,
                    last_second=(stage.items - items) / seconds,
                    rate=stage.items_per_second,
                    total=stage.items,
                    rows=stage.rows,
                    load=min(max((stage.working - working) / seconds, 0.0), 1.0),
                    doing=_DOING.get(stage.doing, stage.doing),
                    since=stage.since,
                    waits_for=stage.waits_for,
                    queue=name,
                    filled=filled,
                    capacity=capacity,
                )
            )
        return LoaderStatus(
            stages=tuple(stages),
            chunks={split: counts.chunks for split, counts in stats.counts.items()},
            rows={split: counts.rows for split, counts in stats.counts.items()},
            rejected={str(kind): count for kind, count in stats.rejected.items()},
            last_rejected=tuple(item.reason for item in stats.last_rejected[-_NAMED:]),
        )


def _queue(stats: "LoaderStats", stage: "StageStats") -> tuple[str, int, int]:
    if stage.name == "watch":
        behind = [each for each in stats.stages if each.name == "read"]
    else:
        of_split = [each for each in stats.stages if each.split == stage.split and each.name != "watch"]
        place = of_split.index(stage)
        behind = of_split[place + 1 : place + 2]
    if not behind:
        return "", 0, 0
    name = _QUEUES.get(behind[0].name, behind[0].name)
    return name, sum(each.queue for each in behind), sum(each.queue_capacity or 0 for each in behind)


def _schedule(session: "DaemonSession | None", now: DaemonStage, moment: float) -> ScheduleStatus:
    return ScheduleStatus(
        stage=now.stage,
        words=now.words,
        since=moment - now.since,
        networks_done=0 if session is None else session.place.networks,
        new_chunks=0 if session is None else session.new_chunks,
        chunks_to_wait_for=0 if session is None else session.settings.chunks_per_network,
        cycle_seconds=moment - now.cycle if now.stage not in ("IDLE", "ERROR") else 0.0,
        training_seconds=now.training_seconds(moment),
        previous_cycle_seconds=now.previous_cycle,
        previous_training_seconds=now.previous_training,
    )


def _training(session: "DaemonSession", now: DaemonStage) -> TrainingFigures:
    place, figures, speed = session.place, session.figures, session.steps_per_second
    steps = session.settings.steps_per_network
    parts: dict[str, Any] = losses(figures)
    loss = parts.pop("loss", None)
    left = (steps - place.step) / speed if speed and now.stage == "TRAINING" else None
    return TrainingFigures(
        step=place.step,
        steps=steps,
        total_steps=session.trainer.step,
        steps_per_second=speed,
        seconds_left=left,
        loss=loss,
        losses=parts,
        learning_rate=figures.get("learning_rate"),
        validation=dict(place.validation),
        test=dict(place.test),
    )


def _networks(session: "DaemonSession") -> tuple[NetworkStatus, ...]:
    now = time.time()
    return tuple(
        NetworkStatus(
            name=made.name,
            step=made.step,
            seconds=max(now - made.when, 0.0),
            validation_loss=made.validation_loss,
            upload=session.uploads.state(made.name),
        )
        for made in session.made[:_NETWORKS]
    )
