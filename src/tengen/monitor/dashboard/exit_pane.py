"""What is said of one that runs no more: how it ended, its last words, and what to do."""

from rich.text import Text

from tengen.monitor.dashboard.drawing import BAD, DIM, GOOD, fit
from tengen.monitor.dashboard.model import Model
from tengen.monitor.dashboard.pane import Pane, lines


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
        found = [Text(ended.words, GOOD if good else BAD), Text("r starts it again, q quits", "bold")]
        return lines([*found, *(Text(fit(line, width).rstrip(), DIM) for line in model.tail())])
