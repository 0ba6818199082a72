"""A run's status for people: plain lines with what changed, or a panel; with a line per part for runs in parts."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tengen.monitor.display import View
from tengen.run.part_status import PartStatus
from tengen.run.status import RunStatus
from tengen.words import clock, counted, figure, rate

_NARROWEST, _WIDEST = 60, 120  # columns: with fewer there are lines instead of a panel
_BAR = 16  # columns
_SILENT = ("starting", "building", "compiling")  # the first words of stages in which nothing changes for a long time
_LONG = 5.0  # seconds after which the duration of these stages is shown
_LONG_PART = 10.0  # the same for parts


class RunView(View):
    """Plain lines come every few seconds, and at once when the run begins to do something else."""

    def __init__(self, every: float = 10.0, now: Callable[[], float] = time.monotonic) -> None:
        self._every, self.now = every, now
        self.status = RunStatus()
        self.stage_since = self._updated = now()
        self._due = now() + every
        self._shown: dict[str, str] = {}
        self._doing: dict[str, str] = {}
        self._recent: dict[tuple[str, str], float] = {}  # who did what lately, and when

    def update(self, state: RunStatus) -> None:
        if state.stage != self.status.stage:
            self.stage_since = self.now()
        self.status, self._updated = state, self.now()

    @property
    def current(self) -> RunStatus:
        """The last status with the time as it is now: there are no updates while a program is being compiled."""
        status, now = self.status, self.now()
        took = now - self.stage_since
        long = took >= _LONG and status.stage.startswith(_SILENT)
        stage = f"{status.stage}, {took:.0f} s so far" if long else status.stage
        counts = replace(status.counts, seconds=status.counts.seconds + now - self._updated)
        return replace(status, stage=stage, counts=counts)

    def lines(self, *, last: bool = False) -> Iterator[str]:
        elapsed = clock(self.current.counts.seconds)
        parts = {part.part: part.doing for part in self.status.parts}
        for name, doing in ({"": self.status.doing} if self.status.networks is None else parts).items():
            if self._is_new(name, doing):
                yield f"{elapsed} {f'{name}: ' if name else ''}{doing}"
        known = {**totals(self.status), **_part_lines(self.status)}
        changes = {name: words for name, words in known.items() if self._shown.get(name) != words}
        if self.now() >= self._due or (last and changes):
            self._due = self.now() + self._every
            self._shown.update(changes)
            yield f"{elapsed} {_line(self.current, changes)}"

    def draw(self) -> "RunPanel":
        return RunPanel(self.current)

    def _is_new(self, name: str, words: str) -> bool:
        """False for changing numbers and for what was done a moment ago: stages may alternate many times a second."""
        doing, before, now = re.sub(r"\S*\d\S*", "0", words), self._doing.get(name, ""), self.now()
        self._doing[name] = doing
        if doing == before:
            return False
        self._recent[name, before] = now
        self._recent = {what: when for what, when in self._recent.items() if now - when < self._every}
        return (name, doing) not in self._recent


def totals(status: RunStatus) -> dict[str, str]:
    """All figures that are known, in words, by name. The fused loop's network is named after the other figures."""
    counts, speeds = status.counts, status.speeds
    found = {
        "games": _total(counts.games, speeds.get("games")),
        "rows": _total(counts.rows, speeds.get("rows")),
        "learner could use": rate(status.appetite).replace("/s", " rows/s"),
        "evaluations": rate(speeds.get("evaluations")),
        "window": _total(status.window),
        "steps": _total(status.steps, speeds.get("steps")),
        "samples": rate(speeds.get("samples")),
        "loss": loss_words(status.losses),
        "lr": _learning_rate(status),
        "rating": "" if status.rating is None else str(status.rating),
    }
    if status.networks is not None:
        found |= {"networks": str(status.networks), "newest": status.network}
    return {name: f"{name} {words}" for name, words in found.items() if words}


def loss_words(losses: Mapping[str, float]) -> str:
    """Losses in words: 2.31 (policy 1.72 value 0.59)."""
    parts = " ".join(f"{name} {figure(value)}" for name, value in losses.items() if name != "loss")
    if "loss" not in losses:
        return parts
    return figure(losses["loss"]) + (f" ({parts})" if parts else "")


def _part_lines(status: RunStatus) -> dict[str, str]:
    return {part.part: f"{part.part}: {part.doing}{_long(part)}" for part in status.parts}


def _long(part: PartStatus) -> str:
    """How long a part has been doing the same thing, such as compiling."""
    return f" (for {clock(part.seconds)})" if not part.waiting and part.seconds >= _LONG_PART else ""


def _line(status: RunStatus, changes: Mapping[str, str]) -> str:
    outlook = str(status.outlook() or "")
    parts = _part_lines(status)
    first = [words for name, words in changes.items() if name not in parts]
    if status.networks is None:
        waiting = f"waiting: {status.waiting}" if status.waiting else ""
        total = "; ".join(filter(None, (" ".join(first) or f"still {status.stage}", outlook, waiting)))
    else:
        total = "; ".join(filter(None, (*first, outlook))) or f"still {status.stage}"
    return "\n         ".join((total, *(words for name, words in changes.items() if name in parts)))


@dataclass(frozen=True)
class RunPanel:
    """A status as rich draws it: a panel where there is room for it, otherwise lines."""

    status: RunStatus

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Not up to the edge: a ^C that the terminal writes there would begin a new line and leave a part behind.
        panel = self._panel(min(options.max_width, _WIDEST) - 2)
        if options.max_width >= _NARROWEST and len(console.render_lines(panel, options)) < console.size.height:
            yield panel
            return
        status = self.status
        known = {**totals(status), **_part_lines(status)}
        network = status.network if status.networks is None else ""
        words = (clock(status.counts.seconds), status.doing, str(status.outlook() or ""), *known.values(), network)
        yield Text("; ".join(filter(None, words)))

    def _panel(self, width: int) -> Panel:
        status = self.status
        head = [_left_and_right(Text(status.doing, style="bold"), clock(status.counts.seconds))]
        if outlook := status.outlook():
            head.append(_left_and_right(ProgressBar(total=1.0, completed=outlook.share), str(outlook)))
        body = _figures(status) if status.networks is None else _parts(status)
        if status.networks is None and status.parts:
            body = [_part_table(status.parts), Text(), *body]
        return Panel(Group(*head, Text(), *body), title=Text(status.network or "tengen"), width=width)


def _figures(status: RunStatus) -> list[RenderableType]:
    known, counts = totals(status), status.counts
    speeds = {name: rate(value) for name, value in status.speeds.items()}
    table = Table.grid(padding=(0, 1), expand=True)
    for column in range(6):
        table.add_column(justify="right" if column % 3 else "left", no_wrap=True, min_width=8)
    steps, samples = speeds.get("steps", ""), speeds.get("samples", "")
    table.add_row("games", f"{counts.games:,}", speeds.get("games", ""), "steps", f"{status.steps:,}", steps)
    table.add_row("rows", f"{counts.rows:,}", speeds.get("rows", ""), "samples", "", samples)
    table.add_row("window", f"{status.window:,}", "", "learning rate", _learning_rate(status), "")
    if evaluations := speeds.get("evaluations"):
        table.add_row("evaluations", "", evaluations)
    if status.appetite is not None:
        table.add_row("learner could use", "", rate(status.appetite))
    return [table, Text(), *(Text(known[name]) for name in ("loss", "rating") if name in known)]


def _part_table(parts: Iterable[PartStatus]) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column(width=_BAR)
    table.add_column(justify="right", no_wrap=True)
    for part in parts:
        bar = "" if part.share is None else ProgressBar(total=1.0, completed=part.share, width=_BAR)
        restarts = f" ({counted(part.restarts, 'restart')})" if part.restarts else ""
        words = Text(part.doing + restarts, style="dim" if part.waiting else "")
        table.add_row(Text(part.part), words, bar, Text(clock(part.seconds)))
    return table


def _parts(status: RunStatus) -> list[RenderableType]:
    known = [words for name, words in totals(status).items() if name != "newest"]
    return [_part_table(status.parts), Text(), Text("; ".join(known) or "no games played yet")]


def _left_and_right(left: RenderableType, right: str) -> Table:
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(ratio=1)
    row.add_column(justify="right", no_wrap=True)
    row.add_row(left, Text(right))
    return row


def _total(count: int, per_second: float | None = None) -> str:
    if per_second is None:
        return f"{count:,}" if count else ""
    return f"{count:,} ({rate(per_second)})"


def _learning_rate(status: RunStatus) -> str:
    return "" if status.learning_rate is None else f"{status.learning_rate:.3g}"
