"""What the dashboard knows from what it has heard. Pure: no terminal, no processes, no clock."""

import re
from collections import deque
from dataclasses import dataclass, replace
from typing import Any, Literal

from tengen.protocol.messages import Error, LoaderStage, Log, NetworkExported, NetworkStatus, TrainingStatus, in_words

VIEWS = ("train", "validation", "test")
LINES = 1000
"""Lines of the log that are kept."""
_LAST = 8  # lines of a process that has ended which are shown
_POINTS = 2000  # of a curve
_RECENT = 50  # lines among which the same text from the other channel is a duplicate
_STAMP = re.compile(r"^\d\d:\d\d:\d\d ((warning|error): )?")  # of the daemon's lines on standard error
_LONGEST = 2000  # characters of a line
_SILENCE = 5.0  # seconds without a status after which there is a warning; normally one comes every second
_STILL = 5.0  # seconds after which a stage counts as stuck
_FLOW = ("working", "waiting for input", "waiting for output")  # stages that should produce something
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")

Kind = Literal["stderr", "info", "warning", "error", "garbage", "note"]


@dataclass(frozen=True)
class ProcessStarted:
    """The process runs, or will in a moment."""

    words: str


@dataclass(frozen=True)
class ProcessEnded:
    """The process has ended, or cannot be reached."""

    words: str  # as "the daemon was killed by SIGKILL"
    code: int | None = None  # None if it is not known


@dataclass(frozen=True)
class LogLine:
    """A line of the log: standard error, a level, `garbage` that is not a message, or a `note` of the dashboard."""

    kind: Kind
    text: str


class Curve:
    """A figure by steps; a long curve keeps only every second, fourth, ... point."""

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []
        self._apart = 1

    def add(self, step: int, value: float) -> None:
        """Add the value at a step, and drop all later ones, which are from before a restart."""
        while self.points and self.points[-1][0] > step:
            self.points.pop()
        if self.points and step - self.points[-1][0] < self._apart:
            return
        self.points.append((step, value))
        if len(self.points) > _POINTS:
            self.points = self.points[::2]
            self._apart = max(2 * self._apart, (self.points[-1][0] - self.points[0][0]) // _POINTS)


class Model:
    """`name` is the name of the run until a status gives another; `who` is what it listens to, as "the daemon"."""

    def __init__(self, name: str, who: str = "the daemon") -> None:
        self.name, self.who = name, who
        self.lines: deque[LogLine] = deque(maxlen=LINES)
        self.changes = 0  # events that were heard
        self.written = 0  # lines so far, including dropped ones
        self.status: TrainingStatus | None = None
        self.ended: ProcessEnded | None = None
        self.leaving = False  # the user has asked to quit
        self.view = VIEWS[0]
        self.curves: dict[str, Curve] = {}  # by view
        self.last_words: deque[str] = deque(maxlen=200)  # on standard error since the last status
        self._tail: deque[str] = deque(maxlen=_LAST)  # of the process that runs or ran last
        self._garbage: deque[str] = deque(maxlen=_LAST)
        self._heard_words: deque[tuple[str, str]] = deque(maxlen=_RECENT)
        self._exported: dict[str, NetworkStatus] = {}
        self._heard = 0.0  # when the last event came
        self._status_at = 0.0

    def hear(self, event: Any, now: float) -> None:
        self._heard = now
        self.changes += 1
        if isinstance(event, TrainingStatus):
            self._take(event, now)
        elif isinstance(event, LogLine):
            self._take_line(event)
        elif isinstance(event, Log | Error | NetworkExported):
            self._take_word(event)
        elif isinstance(event, ProcessStarted):
            self.ended = None
            self._tail.clear()
            self._garbage.clear()
            self._write("note", event.words)
        elif isinstance(event, ProcessEnded):
            self.ended = event
            self._write("note" if event.code == 0 else "error", event.words)
        else:
            self._write("garbage", f"{type(event).__name__} is not a message that {self.who} sends")

    def turn(self) -> str:
        known = self.views()
        self.view = known[(known.index(self.view) + 1) % len(known)] if self.view in known else known[0]
        return self.view

    def views(self) -> list[str]:
        """Train, validation, test, and all other splits of the loader."""
        loader = self.status.loader if self.status else None
        found = [stage.split for stage in loader.stages if stage.split] if loader else []
        return list(dict.fromkeys((*VIEWS, *found)))

    def stages(self) -> list[LoaderStage]:
        """The stages of the current view, and those that all views share."""
        loader = self.status.loader if self.status else None
        return [stage for stage in loader.stages if stage.split in ("", self.view)] if loader else []

    def losses(self) -> tuple[float | None, dict[str, float]]:
        """The total loss of the current view, and its parts by name."""
        training = self.status.training if self.status else None
        if training is None:
            return None, {}
        if self.view == "train":
            return training.loss, training.losses
        if self.view not in ("validation", "test"):
            return None, {}
        parts = dict(training.validation if self.view == "validation" else training.test)
        return parts.pop("loss", None), parts

    @property
    def curve(self) -> list[tuple[int, float]]:
        return self.curves[self.view].points if self.view in self.curves else []

    def networks(self, now: float) -> list[NetworkStatus]:
        """The last networks, newest first, with their current age."""
        told = self.status.networks if self.status else ()
        names = {network.name for network in told}
        fresh = [network for name, network in self._exported.items() if name not in names]
        age = now - self._status_at
        aged = [replace(network, seconds=network.seconds + age) for network in told]
        return [replace(network, seconds=now - network.seconds) for network in reversed(fresh)] + aged

    def uptime(self, now: float) -> float:
        if self.status is None:
            return 0.0
        return self.status.uptime + (0.0 if self.ended else max(now - self._status_at, 0.0))

    def silence(self, now: float) -> float:
        """Seconds without a status, if they are too many; otherwise 0."""
        quiet = now - max(self._status_at, self._heard)
        return quiet if self.status is not None and not self.ended and quiet >= _SILENCE else 0.0

    def tail(self) -> list[str]:
        """The last lines of the process on standard error, or if there are none, invalid lines on its output."""
        return list(self._tail or self._garbage)

    def _take(self, status: TrainingStatus, now: float) -> None:
        self.status, self._status_at = status, now
        self.name = status.run or self.name
        self.last_words.clear()
        for network in status.networks:
            self._exported.pop(network.name, None)
        training = status.training
        if training is None:
            return
        if training.loss is not None:
            self.curves.setdefault("train", Curve()).add(training.total_steps, training.loss)
        for view, losses in (("validation", training.validation), ("test", training.test)):
            if (loss := losses.get("loss")) is not None:
                curve = self.curves.setdefault(view, Curve())
                if not curve.points or curve.points[-1][1] != loss:
                    curve.add(training.total_steps, loss)

    def _take_line(self, event: LogLine) -> None:
        known = event.kind == "stderr" and self._twice("stderr", event.text)
        text = clean(event.text) if known else self._write(event.kind, event.text)
        if event.kind == "stderr":
            self._tail.append(text)
            self.last_words.append(text)
        elif event.kind == "garbage":
            self._garbage.append(text)

    def _take_word(self, event: Log | Error | NetworkExported) -> None:
        kind = event.level if isinstance(event, Log) else "error" if isinstance(event, Error) else "info"
        mark = "error: " if isinstance(event, Error) else ""
        fresh = [line for line in in_words(event).split("\n") if not self._twice("message", line)]
        if fresh:
            text = self._write(kind, mark + "\n".join(fresh))
            if mark:
                self._tail.append(text)
        if isinstance(event, NetworkExported):
            self._export(event)

    def _twice(self, way: str, text: str) -> bool:
        """Whether the same text has just come by the other way: a daemon also writes its messages to standard error."""
        words = _STAMP.sub("", text)
        for known in self._heard_words:
            if known[0] != way and known[1] == words:
                self._heard_words.remove(known)
                return True
        self._heard_words.append((way, words))
        return False

    def _export(self, event: NetworkExported) -> None:
        self._exported[event.name] = NetworkStatus(event.name, event.step, self._heard, event.validation_loss)
        while len(self._exported) > 20:
            del self._exported[next(iter(self._exported))]

    def _write(self, kind: Kind, text: str) -> str:
        """Add lines to the log, without control characters; returns the last of them."""
        shown = ""
        for part in text.split("\n") or [""]:
            shown = clean(part)
            self.lines.append(LogLine(kind, shown))
            self.written += 1
        return shown


def still(stage: LoaderStage) -> bool:
    """Whether nothing comes out of a stage that should produce something."""
    return stage.doing in _FLOW and stage.rate <= 0 and stage.last_second <= 0 and stage.since >= _STILL


def clean(text: str) -> str:
    """Without control characters; of a line that overwrites itself, what is left in the end."""
    last = text.rstrip("\r").rpartition("\r")[2]
    plain = _CONTROLS.sub("", _ESCAPES.sub("", last)).expandtabs(4)
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}... ({len(plain):,} characters)"
