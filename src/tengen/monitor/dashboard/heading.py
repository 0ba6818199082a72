"""The first line: the run, what it does, and its uptime."""

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import Static

from tengen.monitor.dashboard.drawing import BAD, DIM, GOOD, WARM, fit, harmless
from tengen.monitor.dashboard.model import Model
from tengen.words import short_clock

_STYLES = {"TRAINING": GOOD, "EXPORTING": "cyan", "WAITING_FOR_DATA": WARM, "IDLE": DIM, "ERROR": BAD}


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
    """What the run does, and whether it is alive."""
    if model.ended is not None:
        return [(model.ended.words, GOOD if model.ended.code == 0 else BAD)]
    if model.leaving:
        return [(f"ENDING: {model.who} is writing everything (q again: at once)", WARM)]
    if silence := model.silence(now):
        return [(f"no word from {model.who} for {short_clock(silence)}", BAD)]
    if model.status is None:
        return [(f"waiting for {model.who}", WARM)]
    schedule = model.status.schedule
    style = _STYLES.get(schedule.stage, "")
    if model.status.selfplay is not None:
        return [(schedule.words.split("; ")[0], style)]
    return [(schedule.stage.replace("_", " "), style), (f"  {schedule.words}", "")]
