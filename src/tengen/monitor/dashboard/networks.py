"""The last networks, with what is known of their strength, and whether they were handed on."""

from rich.text import Text

from tengen.monitor.dashboard.drawing import BAD, DIM, GOOD, WARM, ago, figure, fit
from tengen.monitor.dashboard.model import Model
from tengen.monitor.dashboard.pane import Pane, lines
from tengen.protocol.messages import NetworkStatus

_WIDE = 60
_STYLES = {"done": GOOD, "failed": BAD, "uploading": WARM, "waiting": WARM}


class NetworksPane(Pane):
    title = "networks"

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        networks = model.networks(now)
        if not networks:
            return Text("none yet", DIM)
        rated = any(network.rating is not None for network in networks)
        judged = any(network.validation_loss is not None for network in networks)
        columns = {"Elo": rated, "loss": judged and (not rated or width >= _WIDE)}
        figures = [name for name, known in columns.items() if known]
        upload = any(network.upload for network in networks)
        room = 9 if upload else 0
        if upload and width >= _WIDE:
            room = 20
        name = max(width - 7 * len(figures) - 5 - room - bool(room), 6)
        heads = "".join(f" {figure:>6}" for figure in figures)
        heading = Text(f"{fit('network', name)}{heads} {'ago':>4}{' upload' if upload else ''}", DIM)
        return lines([heading, *(_row(network, name, figures, room) for network in networks)])


def _row(network: NetworkStatus, name: int, figures: list[str], room: int) -> Text:
    text = Text(fit(fit(network.name, name, right=True).strip(), name))
    for kind in figures:
        value = f"{network.rating:.0f}" if kind == "Elo" and _is_number(network.rating) else ""
        if kind == "loss":
            value = figure(network.validation_loss)
        text.append(f" {value[:6]:>6}", "bold")
    text.append(f" {ago(network.seconds):>4}", DIM)
    if room and network.upload:
        state = network.upload.partition(" ")[0].rstrip(":,;(")
        text.append(" " + fit(network.upload, room).rstrip(), _STYLES.get(state, ""))
    return text


def _is_number(value: float | None) -> bool:
    return value is not None and abs(value) < 1e9
