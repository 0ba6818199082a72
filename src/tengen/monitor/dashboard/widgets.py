"""The other parts of the dashboard: the first line, the log, and the dialogs."""

from itertools import islice
from typing import ClassVar, Literal

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Button, RichLog, Static

from tengen.monitor.dashboard.drawing import BAD, DIM, GOOD, WARM, fit, harmless
from tengen.monitor.dashboard.model import LINES, LogLine, Model
from tengen.words import short_clock

_STAGES = {"TRAINING": GOOD, "EXPORTING": "cyan", "WAITING_FOR_DATA": WARM, "IDLE": DIM, "ERROR": BAD}
_LINES = {"stderr": "", "info": "cyan", "warning": WARM, "error": BAD, "garbage": "magenta", "note": DIM}
_MORE = 250  # lines above the limit at which the oldest are dropped, all at once
_MOST = 5000  # lines that are kept while the user reads further up
Answer = Literal["go on", "shut down", "stay"]
HELP = """\
s       start now: train at once, without waiting for more data
x       stop: finish the step, save, go idle
e       export the network as it is
v       view: train, validation, test
p       pause the log, and go on
r       start or join it again, when it has ended
tab     to the next pane; arrows, page up and down, home and end scroll it
q       quit; so does Ctrl-C
?       this help; escape closes it

data pipeline  a row for each stage of the loader, and the queue behind it;
               red: nothing has come through for some time
schedule       this cycle next to the one before
networks       the last ones; Elo or validation loss, and their uploads
log            standard error; cyan, yellow, red: messages; magenta: not a message
"""


class Heading(Static):
    def __init__(self) -> None:
        super().__init__(id="heading")
        self._shown: Text | None = None

    def show(self, model: Model, now: float) -> None:
        if self.size.width:
            text = heading(model, now, self.size.width)
            if text != self._shown:
                self._shown = text
                self.update(text, layout=False)


def heading(model: Model, now: float, width: int) -> Text:
    """One line of exactly that width."""
    right = f"up {short_clock(model.uptime(now))}" if model.status else ""
    left = Text.assemble((fit(model.name, min(cell_len(model.name), width // 3)), "bold"), "  ", *_state(model, now))
    room = width - cell_len(right)
    left = harmless(left, " ")
    left.truncate(max(room - 1, 0), overflow="ellipsis", pad=True)
    return Text.assemble(left, " ", (right, DIM))


def _state(model: Model, now: float) -> list[tuple[str, str]]:
    if model.ended is not None:
        return [(model.ended.words, GOOD if model.ended.code == 0 else BAD)]
    if model.leaving:
        return [(f"ENDING: {model.who} is writing everything (q again: at once)", WARM)]
    if silence := model.silence(now):
        return [(f"no word from {model.who} for {short_clock(silence)}", BAD)]
    if model.status is None:
        return [(f"waiting for {model.who}", WARM)]
    schedule = model.status.schedule
    style = _STAGES.get(schedule.stage, "")
    if model.status.selfplay is not None:
        return [(schedule.words.split("; ")[0], style)]
    return [(schedule.stage.replace("_", " "), style), (f"  {schedule.words}", "")]


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
        title = f"log: paused{f', {new:,} new lines' if new else ''}" if self.paused else "log"
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

    def _write_all(self, model: Model) -> None:
        self.clear()
        self._held = len(model.lines)
        self._append(list(model.lines), True)

    def _append(self, lines: list[LogLine], follow: bool) -> None:
        if lines:
            text = Text("\n").join(Text(line.text, _LINES[line.kind]) for line in lines)
            self.write(text, width=max(self.scrollable_content_region.width, 1), scroll_end=follow)


class Quit(ModalScreen[Answer]):
    """Asks whether the daemon should go on without the dashboard."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("g", "answer('go on')", "Go on"),
        ("s", "answer('shut down')", "Shut down"),
        ("escape", "answer('stay')", "Stay"),
    ]

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(f"Shall {self._name} go on without the dashboard?", markup=False)
            with Horizontal():
                yield Button("Go on (g)", action="screen.answer('go on')", compact=True)
                yield Button("Shut down (s)", action="screen.answer('shut down')", compact=True)
                yield Button("Stay here (esc)", action="screen.answer('stay')", compact=True)

    def action_answer(self, answer: Answer) -> None:
        self.dismiss(answer)


class Help(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [("escape,question_mark,q,enter", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Static(HELP, markup=False)
