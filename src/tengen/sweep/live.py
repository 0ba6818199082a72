"""What users see of a sweep, and the files that show the same.

On a terminal a table is kept up to date below the messages; elsewhere there are only the messages.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.text import Text

from tengen.monitor.display import View, open_display
from tengen.run import metrics
from tengen.sweep import report
from tengen.sweep.driver import Driver
from tengen.sweep.folder import SweepFolder
from tengen.sweep.report import SweepReport, svg
from tengen.words import figure

_LEFT_OVER = 4  # lines of a terminal that the table leaves free


def publish(folder: SweepFolder, found: SweepReport) -> None:
    text = "\n\n".join(filter(None, (report.table(found), report.effects(found))))
    folder.write("table.txt", text + "\n")
    folder.write("results.json", json.dumps(report.values(found), indent=1) + "\n")
    folder.write("plot.svg", svg(found))


class SweepView(View):
    """The table of trials, and the progress of those that are running."""

    def __init__(self) -> None:
        self._table: list[str] = []
        self._running: tuple[tuple[str, Path], ...] = ()

    def update(self, state: Driver) -> None:
        found = report.make(state)
        publish(state.folder, found)
        self._table = report.table(found).splitlines()
        self._running = tuple((trial, state.folder.trial(trial)) for trial in sorted(state.running))

    def lines(self, *, last: bool = False) -> tuple[str, ...]:
        return ()

    def draw(self) -> "SweepView":
        return self

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows, running = self._table, self._running
        room = max(console.size.height - _LEFT_OVER - len(running), 2)
        if len(rows) > room:
            rows = [*rows[: room - 1], f"... {len(rows) - room + 1} more"]
        lines = [*rows, *(f"{trial}: {standing(folder)}" for trial, folder in running)]
        yield Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines))


def standing(folder: Path) -> str:
    """The progress of a run according to its newest metrics, in words."""
    line = metrics.last(folder / metrics.NAME)
    if line is None:
        return "starting"
    words = [f"{line['elapsed'] / 60:.1f} minutes"]
    if line["kind"] == "progress":
        words += [f"{line[name]:,} {name}" for name in ("games", "steps") if isinstance(line.get(name), int)]
        if isinstance(loss := line.get("loss"), float):
            words.append(f"loss {figure(loss)}")
    return ", ".join(words)


@contextlib.contextmanager
def screen(driver: Driver, stream: TextIO | None) -> Iterator[Callable[[str], None]]:
    """Show the driver's work while this is open; yields a function that prints a message with the time."""
    display = open_display(SweepView(), stream, beat=1.0, transient=True)  # the results are printed at the end

    def say(text: str) -> None:
        display.say(f"{time.strftime('%H:%M:%S')} {text}")

    driver.listen(say, lambda: display.update(driver))
    display.update(driver)
    with display:
        yield say
