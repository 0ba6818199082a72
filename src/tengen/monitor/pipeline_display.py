"""All parts of a ring at one look: a panel with a line for each on a terminal, elsewhere plain lines.

with progress.display(drawn=RingScreen) as shown:
    shown.update(Ring(rows=12410, shown=(Row("train main", "trained 4,096 samples"), ...)))
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tengen.monitor.progress import RunProgress, Screen, clock

_BAR = 16  # columns
_LONG = 10.0  # seconds


@dataclass(frozen=True)
class PartRow:
    """One part."""

    part: str  # "train main"
    words: str
    waiting: bool = False
    seconds: float = 0.0  # for which it has done or waited for the same
    share: float | None = None  # that is done of it, 0 to 1
    restarts: int = 0

    @property
    def doing(self) -> str:
        return f"waiting: {self.words}" if self.waiting else self.words


@dataclass(frozen=True)
class PipelineView(RunProgress):
    """How a run in parts stands."""

    stage: str = "running"
    shown: tuple[PartRow, ...] = ()
    accepted: int = 0  # networks
    rejected: int = 0
    candidates: int = 0  # that wait for the gate

    def doings(self) -> dict[str, str]:
        return {row.part: row.doing for row in self.shown}

    @property
    def networks(self) -> str:
        """How many there are of which kind, in words; empty if there are none."""
        counts = {"accepted": self.accepted, "rejected": self.rejected, "at the gate": self.candidates}
        return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)

    def totals(self) -> dict[str, str]:
        """What there is of everything, in words, by name."""
        networks = {"networks": f"networks {self.networks}"} if self.networks else {}
        newest = {"newest": f"newest {self.network}"} if self.network else {}
        return {**super().parts(), **networks, **newest}

    def parts(self) -> dict[str, str]:
        return {**self.totals(), **{row.part: f"{row.part}: {row.doing}{_long(row)}" for row in self.shown}}

    def line(self, changes: Mapping[str, str]) -> str:
        totals = [words for name, words in changes.items() if name in self.totals()]
        first = "; ".join(filter(None, (*totals, str(self.outlook() or "")))) or f"still {self.stage}"
        return "\n         ".join((first, *(words for name, words in changes.items() if name not in self.totals())))

    def values(self) -> dict[str, Any]:
        return {name: value for name, value in super().values().items() if name not in ("shown", "waiting")}


def _long(row: PartRow) -> str:
    """For how long a part has done the same, as compiling, so that it does not fall silent."""
    return f" (for {clock(row.seconds)})" if not row.waiting and row.seconds >= _LONG else ""


class PipelineScreen(Screen):
    """A `PipelineView` as rich draws it."""

    def panel(self, width: int) -> Panel:
        ring = self.progress
        if not isinstance(ring, PipelineView):  # before the first look at the parts
            return super().panel(width)
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        table.add_column(width=_BAR)
        table.add_column(justify="right", no_wrap=True)
        for row in ring.shown:
            bar = "" if row.share is None else ProgressBar(total=1.0, completed=row.share, width=_BAR)
            restarts = f" ({row.restarts} restart{'s' * (row.restarts != 1)})" if row.restarts else ""
            words = Text(row.doing + restarts, style="dim" if row.waiting else "")
            table.add_row(Text(row.part), words, bar, Text(clock(row.seconds)))
        totals = [Text(words) for name, words in ring.totals().items() if name != "newest"]
        line = Text("; ").join(totals) if totals else Text("nothing was played yet")
        title = Text(ring.network or "tengen")
        return Panel(Group(*self.head(), Text(), table, Text(), line), title=title, width=width)
