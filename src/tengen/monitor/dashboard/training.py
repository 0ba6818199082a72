"""Training: how far the network is, every loss, and a chart of the total."""

from rich.cells import cell_len
from rich.text import Text

from tengen.monitor.dashboard.drawing import DIM, brief, chart, figure, fit, labelled, share, short
from tengen.monitor.dashboard.model import Model
from tengen.monitor.dashboard.pane import Pane, lines
from tengen.protocol.messages import TrainingFigures

_LEAST_CHART = 2  # lines


class TrainingPane(Pane):
    title = "training"

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        self.entitle(f"{self.title}: {model.view}")
        training = model.status.training if model.status else None
        if training is None:
            return Text("no step yet", DIM)
        total, parts = model.losses()
        found = [_steps(training, width), _speed(training, width)]
        rate = "" if training.learning_rate is None else f"  lr {figure(training.learning_rate)}"
        if total is None and not parts:
            found.append(Text(f"no loss of {model.view} yet", DIM))
        else:
            found.append(Text.assemble("loss ", (figure(total) or "?", "bold"), (rate, DIM)))
            found += _wrapped([f"{name} {figure(value)}" for name, value in parts.items()], width)
        rows = max(height - len(found), _LEAST_CHART)
        found += [Text(line, "cyan") for line in chart(model.curve, width, rows)]
        return lines(found)


def _steps(training: TrainingFigures, width: int) -> Text:
    if training.steps <= 0:
        return Text(fit(f"{'step':9}{training.step:,}", width))
    return labelled("step", share(training.step, training.steps), f"{training.step:,}/{training.steps:,}", width)


def _speed(training: TrainingFigures, width: int) -> Text:
    words = []
    if training.steps_per_second is not None:
        words.append(f"{short(float(training.steps_per_second))}/s")
    if training.seconds_left is not None:
        words.append(f"{brief(training.seconds_left)} left")
    words.append(f"{short(training.total_steps)} in all")
    return Text(fit("  ".join(words), width))


def _wrapped(words: list[str], width: int) -> list[Text]:
    """As many in a line as fit."""
    found: list[str] = []
    for word in words:
        if found and cell_len(found[-1]) + 2 + cell_len(word) <= width:
            found[-1] += f"  {word}"
        else:
            found.append(word)
    return [Text(line) for line in found]
