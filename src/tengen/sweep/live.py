"""What a person sees while a sweep goes on, and the files that show the same.

On a terminal a table is kept up to date, with lines above it; elsewhere there are the lines alone, one for each event.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from tengen.monitor.progress import figure
from tengen.run import metrics
from tengen.sweep import report
from tengen.sweep.driver import Driver
from tengen.sweep.folder import SweepFolder
from tengen.sweep.plot import svg
from tengen.sweep.report import SweepReport

_REFRESHES = 1  # a second
_LEFT_OVER = 4  # lines of a terminal that the table leaves free


def publish(folder: SweepFolder, found: SweepReport) -> None:
    """Write the table, the results and the plot."""
    text = "\n\n".join(filter(None, (report.table(found), report.effects(found))))
    folder.write("table.txt", text + "\n")
    folder.write("results.json", json.dumps(report.values(found), indent=1) + "\n")
    folder.write("plot.svg", svg(found))


class SweepLines:
    """Lines of text, each with the time."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def say(self, text: str) -> None:
        with contextlib.suppress(ValueError):  # a closed stream
            print(f"{time.strftime('%H:%M:%S')} {text}", file=self._stream, flush=True)

    def update(self, driver: Driver) -> None:
        publish(driver.folder, report.make(driver))


class SweepTable(SweepLines):
    """A table below the lines. The terminal is drawn on by a thread of rich's, which only reads what is kept here."""

    def __init__(self, console: Console) -> None:
        super().__init__(None)
        self._console = console
        self._table = ""
        self._running: tuple[tuple[str, Path], ...] = ()
        self.live = Live(
            console=console,
            refresh_per_second=_REFRESHES,
            get_renderable=self._draw,
            vertical_overflow="crop",
            transient=True,  # the results are printed when all is done
        )

    def say(self, text: str) -> None:
        self._console.print(Text(f"{time.strftime('%H:%M:%S')} {text}"), soft_wrap=True)

    def update(self, driver: Driver) -> None:
        found = report.make(driver)
        publish(driver.folder, found)
        self._table = report.table(found)
        self._running = tuple((trial, driver.folder.trial(trial)) for trial in sorted(driver.running))

    def _draw(self) -> RenderableType:
        rows = self._table.splitlines()
        room = max(self._console.size.height - _LEFT_OVER - len(self._running), 2)
        if len(rows) > room:
            rows = [*rows[: room - 1], f"... {len(rows) - room + 1} more"]
        lines = [*rows, *(f"{trial}: {standing(folder)}" for trial, folder in self._running)]
        return Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines))


def standing(folder: Path) -> str:
    """How a run stands by its newest metrics, in words."""
    line = metrics.last(folder / metrics.NAME)
    if line is None or line["kind"] != "progress":
        return "starting" if line is None else f"{line['elapsed'] / 60:.1f} minutes"
    words = [f"{line['elapsed'] / 60:.1f} minutes"]
    words += [f"{line[name]:,} {name}" for name in ("games", "steps") if isinstance(line.get(name), int)]
    if isinstance(loss := line.get("loss"), float):
        words.append(f"loss {figure(loss)}")
    return ", ".join(words)


@contextlib.contextmanager
def screen(driver: Driver, stream: TextIO | None) -> Iterator[SweepLines]:
    """Show the driver's work for as long as this is open."""
    console = Console(file=stream) if stream is not None and stream.isatty() else None
    if console is None or not console.is_terminal or console.is_dumb_terminal:
        shown = SweepLines(stream)
        _attach(driver, shown)
        yield shown
        return
    table = SweepTable(console)
    _attach(driver, table)
    with table.live:
        yield table


def _attach(driver: Driver, shown: SweepLines) -> None:
    driver.listen(shown.say, lambda: shown.update(driver))
    shown.update(driver)
