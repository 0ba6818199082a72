"""The schedule: networks so far, and how far the present cycle is, next to the one before."""

from rich.text import Text

from tengen.monitor.dashboard.drawing import DIM, GOOD, WARM, brief, fit, labelled, share
from tengen.monitor.dashboard.model import Model
from tengen.monitor.dashboard.pane import Pane, lines


class SchedulePane(Pane):
    title = "schedule"

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        if model.status is None:
            return Text("nothing is known yet", DIM)
        schedule = model.status.schedule
        since = brief(schedule.since)
        found = [Text.assemble(fit(schedule.words, width - len(since) - 1), " ", (since, DIM))]
        found.append(Text(fit(f"{'networks':9}{schedule.networks_done:,}", width)))
        if schedule.chunks_to_wait_for > 0:
            words = f"{schedule.new_chunks:,}/{schedule.chunks_to_wait_for:,}"
            found.append(labelled("chunks", share(schedule.new_chunks, schedule.chunks_to_wait_for), words, width))
        training, cycle = schedule.training_seconds, schedule.cycle_seconds
        if model.status.selfplay is None or training > 0:
            found.append(_against("training", training, schedule.previous_training_seconds, width))
        found.append(_against("cycle", cycle, schedule.previous_cycle_seconds, width))
        return lines(found)


def _against(label: str, seconds: float, before: float | None, width: int) -> Text:
    """A time next to the one of the cycle before; yellow if it is longer."""
    if before is None:
        return labelled(label, None, brief(seconds), width)
    style = WARM if seconds > before else GOOD
    return labelled(label, share(seconds, before), f"{brief(seconds)}/{brief(before)}", width, style)
