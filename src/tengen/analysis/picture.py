"""An analysis as SVG: the board with what the network thinks, or bars where there is no board."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from tengen.analysis import board_picture
from tengen.analysis.analysis import Analysis
from tengen.analysis.board import board_of, has_board, place_of
from tengen.analysis.drawing import Drawing
from tengen.analysis.report import network_line, search_line, where

Layer = Literal["policy", "visits", "ownership", "line"]
USUAL: tuple[Layer, ...] = ("policy", "ownership", "line")
_NUMBERED = 8  # moves of the line that are drawn
_BARS = 20
_ROW = 24.0
_NAMES = 130.0
_WIDTH = 340.0
_MARGIN = 20.0
_INK, _POLICY, _VISITS = "#222222", "#2c6fbb", "#e08a1e"


class Bar(NamedTuple):
    name: str
    prior: float  # 0 to 1: what the policy says
    share: float | None  # 0 to 1: of the search's visits; None without a search


def draw(analysis: Analysis, layers: tuple[Layer, ...] = USUAL) -> str:
    """The SVG document with these layers; of `policy` and `visits` the last one holds."""
    captions = [where(analysis)]
    if analysis.look is not None:
        captions.append(network_line(analysis))
    if analysis.search is not None:
        captions.append(search_line(analysis))
    title = f"{analysis.game.name}: {analysis.network}, {where(analysis)}"
    if not has_board(analysis.game):
        return draw_bars(_bars(analysis), captions, title)
    heat = _heat(analysis, layers)
    board = board_of(analysis.game, analysis.state)
    if heat is not None:
        # What is played nowhere on the board would not be seen.
        others = [int(action) for action in np.flatnonzero(heat >= 0.005) if place_of(board, int(action)) is None]
        captions += [f"{analysis.game.action_name(analysis.state, action)}: {heat[action]:.1%}" for action in others]
    line = []
    if "line" in layers and analysis.search is not None:
        best = analysis.search.candidates[0].line[:_NUMBERED]
        line = [(move.player, move.action) for move in analysis.line(best)]
    ownership = analysis.ownership() if "ownership" in layers else None
    last = analysis.moves[-1].action if analysis.moves else None
    return board_picture.draw(board, board_picture.PictureLayers(heat, ownership, line, last), captions, title)


def _heat(analysis: Analysis, layers: tuple[Layer, ...]) -> np.ndarray | None:
    """Float[A]: how strongly each action is shown."""
    wanted = [layer for layer in layers if layer in ("policy", "visits")]
    if not wanted or analysis.look is None:
        return None
    if wanted[-1] == "visits" and analysis.search is not None:
        return _shares(analysis)
    return analysis.look.policy


def _shares(analysis: Analysis) -> np.ndarray:
    """Float[A]: of the visits of all moves."""
    shares = np.zeros(analysis.game.num_actions)
    for each in analysis.search.candidates if analysis.search else ():
        shares[each.action] = each.visits
    return shares / max(shares.sum(), 1)


def _bars(analysis: Analysis) -> list[Bar]:
    if analysis.look is None:
        return []
    shares = None if analysis.search is None else _shares(analysis)
    likely = analysis.look.policy if shares is None else shares + 1e-3 * analysis.look.policy
    legal = np.flatnonzero(analysis.look.policy > 0)
    order = legal[np.argsort(-likely[legal], kind="stable")][:_BARS]
    return [
        Bar(
            analysis.game.action_name(analysis.state, int(action)),
            float(analysis.look.policy[action]),
            None if shares is None else float(shares[action]),
        )
        for action in order
    ]


def draw_bars(bars: Sequence[Bar], captions: Sequence[str] = (), title: str = "") -> str:
    """The SVG document: for each move the policy, and below it the share of the visits."""
    top = _MARGIN + _ROW * len(captions) + _ROW
    drawing = Drawing(2 * _MARGIN + _NAMES + _WIDTH + 60, top + _ROW * 1.25 * len(bars) + _MARGIN)
    if title:
        drawing.title(title)
    for number, caption in enumerate(captions):
        drawing.text(_MARGIN, _MARGIN + _ROW * (number + 0.5), caption, 13, text_anchor="start", fill=_INK)
    left = _MARGIN + _NAMES
    drawing.rectangle(left, top - _ROW + 6, 10, 10, fill=_POLICY)
    drawing.text(left + 16, top - _ROW + 11, "policy", 12, text_anchor="start", fill=_INK)
    if any(bar.share is not None for bar in bars):
        drawing.rectangle(left + 80, top - _ROW + 6, 10, 10, fill=_VISITS)
        drawing.text(left + 96, top - _ROW + 11, "visits", 12, text_anchor="start", fill=_INK)
    for number, bar in enumerate(bars):
        y = top + number * 1.25 * _ROW
        drawing.text(left - 8, y + _ROW / 2, _short(bar.name), 13, text_anchor="end", fill=_INK, kind="name")
        _bar(drawing, left, y, bar.prior, _POLICY, "prior")
        if bar.share is not None:
            _bar(drawing, left, y + _ROW / 2, bar.share, _VISITS, "visits")
    return drawing.to_text()


def _bar(drawing: Drawing, x: float, y: float, share: float, colour: str, kind: str) -> None:
    drawing.rectangle(x, y, max(_WIDTH * share, 0.5), _ROW / 2 - 1, fill=colour, kind=kind)
    drawing.text(x + _WIDTH * share + 6, y + _ROW / 4, f"{share:.1%}", 10, text_anchor="start", fill="#444444")


def _short(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"
