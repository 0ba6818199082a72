"""What an engine found out, as `info` lines."""

import math
from collections.abc import Callable

from tengen.engine.search_report import Candidate, SearchReport
from tengen.engine.uci.options import Options

_STEEP, _CENTIPAWNS = 1.5637541897, 90.0  # as in Lc0: 0.5 is 89 centipawns, 1 is 12780


def centipawns(value: float) -> int:
    """Of a value in [-1, 1]."""
    return round(_CENTIPAWNS * math.tan(_STEEP * max(-1.0, min(1.0, value))))


def chances(value: float, draw: float) -> tuple[int, int, int]:
    """Win, draw and loss in thousandths; `draw` is what the network thinks of it."""
    draw = min(max(draw, 0.0), 1 - abs(value))
    win = round(1000 * (1 - draw + value) / 2)
    loss = round(1000 * (1 - draw - value) / 2)
    return win, 1000 - win - loss, loss


def lines(
    thought: SearchReport,
    chosen: list[Candidate],
    draw: float,
    options: Options,
    names: Callable[[Candidate], list[str]],
) -> list[str]:
    """One line for each of the best moves. `draw`: the chance of a draw at the root."""
    found = []
    milliseconds = round(1000 * thought.seconds)
    speed = round(thought.evaluations / thought.seconds) if thought.seconds > 0 else 0
    for rank, candidate in enumerate(chosen[: options.multi_pv], 1):
        line = names(candidate)
        number = f" multipv {rank}" if options.multi_pv > 1 else ""
        wdl = " wdl {} {} {}".format(*chances(candidate.value, draw)) if options.show_wdl else ""
        score = f"score cp {centipawns(candidate.value)}{wdl}"
        found.append(
            f"info depth {max(len(line), 1)}{number} {score} nodes {thought.visits} "
            f"nps {speed} time {milliseconds} pv {' '.join(line)}"
        )
    return found
