"""What a person sees while a run goes on: on a terminal a panel that is kept up to date, elsewhere plain lines.

    with progress.display() as shown:
        shown.update(Progress(stage="playing", waiting="12,410 of 20,000 rows until training begins", games=1204))
        shown.say("the network was saved")

Nothing here knows how the figures come about.
"""

import abc
import contextlib
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

_REFRESHES = 4  # a second, at most
_NARROWEST, _WIDEST = 60, 120  # columns: with fewer there are lines instead of a panel
_SILENT = ("starting", "building", "compiling")  # how stages begin in which nothing changes for a long time
_LONG = 5.0  # seconds from which on it is said how long such a stage has taken


@dataclass(frozen=True)
class Goal:
    """When a run ends: as soon as one of these is reached. None does not count."""

    minutes: float | None = None
    games: int | None = None
    rows: int | None = None
    steps: int | None = None


@dataclass(frozen=True)
class Outlook:
    """The part of the goal that will be reached first."""

    goal: str  # in words, as "10 minutes"
    share: float  # that is done, 0 to 1
    left: float | None  # seconds; None where nothing tells how long it will take

    def __str__(self) -> str:
        left = "" if self.left is None else f", {clock(self.left)} left"
        return f"{100 * self.share:.0f} % of {self.goal}{left}"


@dataclass(frozen=True)
class RatedNetwork:
    """The last rating."""

    elo: float
    error: float  # half of the 95 % interval
    against: str = ""

    def __str__(self) -> str:
        return f"{self.elo:.0f} +-{self.error:.0f}" + (f" against {self.against}" if self.against else "")


@dataclass(frozen=True)
class RunProgress:
    """How a run stands. Counts are of the whole run; None is a figure that nobody knows yet."""

    stage: str = "starting"  # as "playing", "training", "playing a match", "writing"
    waiting: str = ""  # for what and how far along that is: "12,410 of 20,000 rows until training begins"
    elapsed: float = 0.0  # seconds
    network: str = ""
    games: int = 0  # finished
    games_per_second: float | None = None
    rows: int = 0
    rows_per_second: float | None = None
    evaluations_per_second: float | None = None
    window: int = 0  # rows that training draws from
    steps: int = 0
    steps_per_second: float | None = None
    samples_per_second: float | None = None
    learning_rate: float | None = None
    loss: float | None = None  # the sum that is trained on
    losses: Mapping[str, float] = field(default_factory=dict)  # its parts by name
    rating: RatedNetwork | None = None
    goal: Goal = Goal()
    board: str = ""  # one of the games, as the game renders it; only if the display wants it

    @property
    def doing(self) -> str:
        """The stage, and what is waited for."""
        return f"{self.stage}, waiting: {self.waiting}" if self.waiting else self.stage

    def doings(self) -> dict[str, str]:
        """What is done, by who does it; the fused loop has no name."""
        return {"": self.doing}

    def outlook(self) -> Outlook | None:
        """The part of the goal that comes first, as far as can be told; None if there is no goal."""
        goal = self.goal
        parts = (
            ("minutes", goal.minutes, 60, self.elapsed, 1.0),
            ("games", goal.games, 1, self.games, self.games_per_second),
            ("rows", goal.rows, 1, self.rows, self.rows_per_second),
            ("steps", goal.steps, 1, self.steps, self.steps_per_second),
        )
        found = []
        for name, limit, unit, done, speed in parts:
            if limit is None:
                continue
            if not speed and self.elapsed > 0:
                speed = done / self.elapsed
            whole = limit * unit
            left = 0.0 if done >= whole else (whole - done) / speed if speed and speed > 0 else None
            words = f"{limit:,}" if isinstance(limit, int) else f"{limit:,g}"
            what = name.removesuffix("s") if limit == 1 else name
            found.append(Outlook(f"{words} {what}", min(done / whole, 1.0) if whole > 0 else 1.0, left))
        return min(found, key=lambda part: (math.inf if part.left is None else part.left, -part.share), default=None)

    def values(self) -> dict[str, Any]:
        """The figures for `metrics`: those that it does not write by itself or under another kind."""
        return {name: value for name, value in vars(self).items() if name not in ("elapsed", "rating", "goal", "board")}

    def parts(self) -> dict[str, str]:
        """All figures that are known, in words, by name. The network's name tells nothing that they do not."""
        parts = {
            "games": _counted(self.games, self.games_per_second),
            "rows": _counted(self.rows, self.rows_per_second),
            "evaluations": rate(self.evaluations_per_second),
            "window": _counted(self.window),
            "steps": _counted(self.steps, self.steps_per_second),
            "samples": rate(self.samples_per_second),
            "loss": loss_words(self.loss, self.losses),
            "lr": _lr(self.learning_rate),
            "rating": "" if self.rating is None else str(self.rating),
        }
        return {name: f"{name} {words}" for name, words in parts.items() if words}

    def line(self, changes: Mapping[str, str]) -> str:
        """What is said of it, if these of its `parts` changed."""
        words = [" ".join(changes.values()) or f"still {self.stage}", str(self.outlook() or "")]
        if self.waiting:
            words.append(f"waiting: {self.waiting}")
        return "; ".join(filter(None, words))


class Display(abc.ABC):
    """Shows progress from `start` to `close`, or as a context; a thread of its own shows that time goes on.

    Output that fails (a terminal that has gone, a full disk) does not stop a run; a pipe that nobody reads does.
    """

    wants_board = False
    """Whether it shows one of the games, which costs a moment of the device."""

    def __init__(self, beat: float, now: Callable[[], float]) -> None:
        self._now = now
        self._progress = RunProgress()
        self._updated = self._stage_since = now()
        # Reentrant, because a signal handler may speak while its own thread does.
        self._lock = threading.RLock()
        self._beat, self._over = beat, threading.Event()
        self._thread = threading.Thread(target=self._keep_ticking, name="display", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def update(self, progress: RunProgress) -> None:
        """What is shown from now on. Cheap: call it as often as you like."""
        with self._lock:
            if progress.stage != self._progress.stage:
                self._stage_since = self._now()
            self._progress, self._updated = progress, self._now()

    @property
    def current(self) -> RunProgress:
        """What was told last, with the time that it is now: nothing is told while a program is being compiled."""
        progress, now = self._progress, self._now()
        took = now - self._stage_since
        long = took >= _LONG and progress.stage.startswith(_SILENT)
        stage = f"{progress.stage}, {took:.0f} s so far" if long else progress.stage
        return replace(progress, stage=stage, elapsed=progress.elapsed + now - self._updated)

    @abc.abstractmethod
    def say(self, text: str) -> None:
        """Print a message for good."""

    @abc.abstractmethod
    def tick(self) -> None:
        """Time has passed: show what is due."""

    def close(self) -> None:
        """The last state stays visible."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _elapsed(self) -> str:
        return clock(self.current.elapsed)

    def _keep_ticking(self) -> None:
        while not self._over.wait(self._beat):
            with contextlib.suppress(OSError, ValueError):  # a file that was closed gives ValueError
                self.tick()


class PlainDisplay(Display):
    """Lines of text: every so many seconds what changed, and at once when something else begins."""

    def __init__(self, file: TextIO | None, every: float = 10.0, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(min(every, 1.0), now)
        self._file, self._every = file, every
        self._shown: dict[str, str] = {}
        self._due = now() + every
        self._doing: dict[str, str] = {}
        self._seen: dict[tuple[str, str], float] = {}  # who did what lately, and when

    def start(self) -> None:
        self.update(self._progress)
        super().start()

    def update(self, progress: RunProgress) -> None:
        with self._lock:
            super().update(progress)
            for name, doing in progress.doings().items():
                if self._is_new(name, doing):
                    self._print(f"{self._elapsed()} {f'{name}: ' if name else ''}{doing}")
            self.tick()

    def say(self, text: str) -> None:
        self._print(text)

    def tick(self) -> None:
        with self._lock:
            if self._now() >= self._due:
                self._due = self._now() + self._every
                self._print(self._line())

    def close(self) -> None:
        super().close()
        with self._lock:
            if self._changes():
                self._print(self._line())

    def _is_new(self, name: str, words: str) -> bool:
        """Not what only counts on, nor what was done a moment ago: stages may alternate many times a second."""
        doing, before, now = re.sub(r"\S*\d\S*", "0", words), self._doing.get(name, ""), self._now()
        self._doing[name] = doing
        if doing == before:
            return False
        self._seen[name, before] = now
        self._seen = {what: when for what, when in self._seen.items() if now - when < self._every}
        return (name, doing) not in self._seen

    def _changes(self) -> dict[str, str]:
        return {name: words for name, words in self._progress.parts().items() if self._shown.get(name) != words}

    def _line(self) -> str:
        changes = self._changes()
        self._shown.update(changes)
        return f"{self._elapsed()} {self.current.line(changes)}"

    def _print(self, line: str) -> None:
        encoding = getattr(self._file, "encoding", None) or "utf-8"
        with self._lock:
            try:
                print(line.encode(encoding, "backslashreplace").decode(encoding), file=self._file, flush=True)
            except BrokenPipeError:
                raise
            except (OSError, ValueError):
                pass


class LiveDisplay(Display):
    """A panel at the bottom of a terminal, and messages above it."""

    def __init__(
        self, console: Console, now: Callable[[], float] = time.monotonic, drawn: "type[Screen] | None" = None
    ) -> None:
        super().__init__(1 / _REFRESHES, now)
        self._console, self._drawn = console, drawn or Screen
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop", get_renderable=self._screen)

    def start(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._live.start(refresh=True)
        super().start()

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._console.print(Text(text), soft_wrap=True)

    def tick(self) -> None:
        self._live.refresh()

    def close(self) -> None:
        super().close()
        with contextlib.suppress(OSError, ValueError):
            self._live.stop()

    def _screen(self) -> "Screen":
        with self._lock:
            return self._drawn(self.current, self._elapsed())


@dataclass(frozen=True)
class Screen:
    """Progress as rich draws it: a panel where there is room for it, otherwise lines."""

    progress: RunProgress
    elapsed: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Not to the edge: the ^C that a terminal writes there would begin a new line and leave a part behind.
        panel = self.panel(min(options.max_width, _WIDEST) - 2)
        if options.max_width >= _NARROWEST and len(console.render_lines(panel, options)) < console.size.height:
            yield panel
        else:
            parts = (
                self.elapsed,
                self.progress.doing,
                str(self.progress.outlook() or ""),
                *self.progress.parts().values(),
                self.progress.network,
            )
            yield Text("; ".join(filter(None, parts)))

    def panel(self, width: int) -> Panel:
        """All of it, so many columns wide."""
        now, known = self.progress, self.progress.parts()
        lines = self.head()
        figures = Table.grid(padding=(0, 1), expand=True)
        for column in range(6):
            figures.add_column(justify="right" if column % 3 else "left", no_wrap=True, min_width=8)
        rows, steps, samples = rate(now.rows_per_second), rate(now.steps_per_second), rate(now.samples_per_second)
        figures.add_row("games", f"{now.games:,}", rate(now.games_per_second), "steps", f"{now.steps:,}", steps)
        figures.add_row("rows", f"{now.rows:,}", rows, "samples", "", samples)
        figures.add_row("window", f"{now.window:,}", "", "learning rate", _lr(now.learning_rate), "")
        if now.evaluations_per_second is not None:
            figures.add_row("evaluations", "", rate(now.evaluations_per_second))
        rest = [Text(known[name]) for name in ("loss", "rating") if name in known]
        return Panel(Group(*lines, Text(), figures, Text(), *rest), title=Text(now.network or "tengen"), width=width)

    def head(self) -> list[RenderableType]:
        """What is done, for how long, and how far the goal is."""
        lines: list[RenderableType] = [_left_and_right(Text(self.progress.doing, style="bold"), self.elapsed)]
        if outlook := self.progress.outlook():
            lines.append(_left_and_right(ProgressBar(total=1.0, completed=outlook.share), str(outlook)))
        return lines


def _left_and_right(left: RenderableType, right: str) -> Table:
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(ratio=1)
    row.add_column(justify="right", no_wrap=True)
    row.add_row(left, Text(right))
    return row


def display(stream: TextIO | None = None, every: float = 10.0, drawn: type[Screen] | None = None) -> Display:
    """A panel if the stream (usually standard output) is a terminal that can show one, otherwise plain lines.

    `drawn` is what the panel looks like, if not as that of the fused loop.
    """
    stream = sys.stdout if stream is None else stream
    if stream is not None and stream.isatty():
        console = Console(file=stream)
        if console.is_terminal and not console.is_dumb_terminal:
            return LiveDisplay(console, drawn=drawn)
    return PlainDisplay(stream, every)


def clock(seconds: float) -> str:
    """00:02:10, and days before it where there are any."""
    if not 0 <= seconds < 1e12:
        return "--:--:--"
    days, rest = divmod(int(seconds), 86_400)
    return (f"{days}d " if days else "") + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def loss_words(loss: float | None, losses: Mapping[str, float]) -> str:
    """2.31 (policy 1.72 value 0.59)"""
    parts = " ".join(f"{name} {figure(value)}" for name, value in losses.items())
    if loss is None:
        return parts
    return figure(loss) + (f" ({parts})" if parts else "")


def figure(value: float) -> str:
    """Two digits after the point, or two that count where those would be zeros."""
    return f"{value:.2g}" if 0 < abs(value) < 0.1 else f"{value:,.2f}"


def _lr(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.3g}"


def rate(per_second: float | None) -> str:
    if per_second is None:
        return ""
    if 0 < abs(per_second) < 1:
        return f"{per_second:.2g}/s"
    return f"{per_second:,.0f}/s" if abs(per_second) >= 100 else f"{per_second:.1f}/s"


def _counted(count: int, per_second: float | None = None) -> str:
    if per_second is None:
        return f"{count:,}" if count else ""
    return f"{count:,} ({rate(per_second)})"
