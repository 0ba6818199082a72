"""The log: standard error of the process, and its messages for people; the last 1,000 lines."""

from itertools import islice

from rich.text import Text
from textual.events import Resize
from textual.widgets import RichLog

from tengen.monitor.dashboard.drawing import BAD, DIM, WARM
from tengen.monitor.dashboard.model import LINES, Line, Model

_STYLES = {"stderr": "", "info": "cyan", "warning": WARM, "error": BAD, "garbage": "magenta", "note": DIM}
_MORE = 250  # lines above the limit at which the oldest are dropped, all at once
_MOST = 5000  # lines that are kept while the user reads further up


class LogPane(RichLog):
    """Follows the end unless the user has scrolled up or paused it."""

    def __init__(self) -> None:
        super().__init__(id="log", wrap=True, min_width=0)
        self.border_title = self._entitled = "log"
        self.paused = False
        self._taken = 0  # lines taken from the model
        self._held = 0  # lines in the pane
        self._model: Model | None = None
        self._width = 0
        self._follows = True

    def show(self, model: Model, now: float) -> None:
        self._model = model
        new = model.written - self._taken
        title = f"log: paused, {new:,} new lines" if self.paused and new else self._title()
        if title != self._entitled:  # setting one draws the whole frame
            self.border_title = self._entitled = title
        if not self.scrollable_content_region.width or self.paused or not new:
            return
        self._follows = follows = self._follows or self.is_vertical_scroll_end
        self._taken = model.written
        self._held += new
        if self._held > (LINES + _MORE if follows else _MOST) or new >= LINES:
            self._write_all(model)
        else:
            self._append(list(islice(model.lines, len(model.lines) - new, None)), follows)

    def rewrap(self, model: Model) -> None:
        """Write all lines again, for another width."""
        if self._taken and not self.paused:
            self._taken = model.written
            self._write_all(model)

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        width = self.scrollable_content_region.width
        if width != self._width and self._model is not None:
            self._width = width
            self.call_after_refresh(self.rewrap, self._model)
        elif self._follows and not self.paused:
            self.call_after_refresh(self.scroll_end, animate=False)

    def release_anchor(self) -> None:
        """Called when the user scrolls."""
        super().release_anchor()
        self._follows = False

    def _title(self) -> str:
        return "log: paused" if self.paused else "log"

    def _write_all(self, model: Model) -> None:
        self.clear()
        self._held = len(model.lines)
        self._append(list(model.lines), True)

    def _append(self, lines: list[Line], follow: bool) -> None:
        if lines:
            text = Text("\n").join(Text(line.text, _STYLES[line.kind]) for line in lines)
            self.write(text, width=max(self.scrollable_content_region.width, 1), scroll_end=follow)
