"""Dialogs of the dashboard: quitting, and help."""

from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static

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
                yield Button("Go on (g)", id="go-on", compact=True)
                yield Button("Shut down (s)", id="shut-down", compact=True)
                yield Button("Stay here (esc)", id="stay", compact=True)

    def action_answer(self, answer: Answer) -> None:
        self.dismiss(answer)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        answers: dict[str | None, Answer] = {"go-on": "go on", "shut-down": "shut down"}
        self.dismiss(answers.get(event.button.id, "stay"))


class Help(ModalScreen[None]):
    """Explains the keys and panes."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,question_mark,q,enter", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Static(HELP, markup=False)
