"""Self-play: how fast games and rows come, the last rating, and one of the games."""

from itertools import zip_longest

from rich.cells import cell_len
from rich.text import Text

from tengen.monitor.dashboard.drawing import DIM, fit, short
from tengen.monitor.dashboard.model import Model, clean
from tengen.monitor.dashboard.pane import Pane, lines
from tengen.protocol.messages import SelfplayStatus

_FIGURES = 22  # columns
_STONES = {"x": "bold cyan", "X": "bold cyan", "o": "bold yellow", "O": "bold yellow", ".": "dim"}


class SelfplayPane(Pane):
    title = "self-play"

    def wanted(self, model: Model) -> bool:
        return model.ended is None and model.status is not None and model.status.selfplay is not None

    def draw(self, model: Model, now: float, width: int, height: int) -> Text:
        selfplay = model.status.selfplay if model.status else None
        if selfplay is None:
            return Text()
        figures, board = _figures(selfplay), [clean(line) for line in selfplay.board.splitlines()]
        words = [Text(fit(text, width)) for text in _words(selfplay)]
        broad = max(map(cell_len, board), default=0)
        drawn = [_coloured(line) for line in board]
        if not board or width < _FIGURES + broad:
            return lines([*map(Text, figures), *words, *drawn])
        gap = min(4, width - _FIGURES - broad)
        blank = " " * _FIGURES
        rows = zip_longest((fit(line, _FIGURES) for line in figures), drawn, fillvalue=None)
        return lines([*words, *(Text.assemble(left or blank, " " * gap, right or "") for left, right in rows)])


def _figures(selfplay: SelfplayStatus) -> list[str]:
    rows = (
        ("games", selfplay.games, selfplay.games_per_second),
        ("rows", selfplay.rows, selfplay.rows_per_second),
        ("evals", None, selfplay.evaluations_per_second),
        ("window", selfplay.window, None),
    )
    return [
        f"{name:6} {short(count):>6} {'' if rate is None else short(float(rate)) + '/s':>8}".rstrip()
        for name, count, rate in rows
        if count is not None or rate is not None
    ]


def _words(selfplay: SelfplayStatus) -> list[str]:
    found = [f"rating {selfplay.rating}"] if selfplay.rating else []
    return found + ([f"waiting: {selfplay.waiting}"] if selfplay.waiting else [])


def _coloured(line: str) -> Text:
    """A row of a board, stones in colours; notes below the board and names of columns are dim."""
    cells = line.split()[1:]
    if ":" in line or not cells or any(cell not in _STONES for cell in cells):
        return Text(line, DIM)
    text, start = Text(line), line.index(line.split()[0]) + len(line.split()[0])
    for place in range(start, len(line)):
        if line[place] in _STONES:
            text.stylize(_STONES[line[place]], place, place + 1)
    return text
