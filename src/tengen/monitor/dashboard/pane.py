"""What all panes have in common."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from tengen.monitor.dashboard.drawing import harmless
from tengen.monitor.dashboard.model import Model


class Pane(VerticalScroll):
    """A frame with text in it that is drawn anew when it changes, and scrolls if there is more than fits."""

    title: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.border_title = self._entitled = self.title
        self._body = Static()
        self._shown: Text | None = None

    def compose(self) -> ComposeResult:
        yield self._body

    def show(self, model: Model, now: float) -> None:
        """Draw it as things stand."""
        if (wanted := self.wanted(model)) != self.display:
            self.display = wanted
        width, height = self.scrollable_content_region.size
        if not self.display or not width:
            return
        text = harmless(self.draw(model, now, width, height))
        text.no_wrap, text.overflow = True, "ellipsis"
        if text != self._shown:
            # As long as it is as high as before, only what is in it is drawn, which is far less work.
            same = self._shown is not None and self._shown.plain.count("\n") == text.plain.count("\n")
            self._shown = text
            self._body.update(text, layout=not same)

    def entitle(self, title: str) -> None:
        """Change the title, if it is another: setting one draws the whole frame."""
        if title != self._entitled:
            self._entitled = title
            self.border_title = title

    def wanted(self, model: Model) -> bool:
        """Whether there is anything to show."""
        return True

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        """The text, for so many columns and lines."""
        raise NotImplementedError


def lines(parts: list[Text]) -> Text:
    """One below the other."""
    return Text("\n").join(parts)
