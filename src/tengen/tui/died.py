"""What is said of one that runs no more: how it ended, its last words, and what to do."""

from rich.text import Text

from tengen.tui.drawing import BAD, GOOD
from tengen.tui.model import Model
from tengen.tui.pane import Pane, lines


class DiedPane(Pane):
    title = "ended"

    def wanted(self, model: Model) -> bool:
        return model.ended is not None

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        ended = model.ended
        if ended is None:
            return Text()
        good = ended.code == 0
        self.set_class(good, "good")
        again = "r starts it again, q quits"
        tail = [Text(line) for line in model.tail()]
        return lines([Text(ended.words, GOOD if good else BAD), *tail, Text(again, "bold")])
