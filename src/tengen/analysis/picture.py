"""An analysis as SVG: the board with what the network thinks, or bars where there is no board."""

from typing import Literal

import numpy as np

from tengen.analysis import bars, board_picture
from tengen.analysis.analysis import Analysis
from tengen.analysis.board import board_of, has_board, place_of
from tengen.analysis.report import network_line, search_line, where

Layer = Literal["policy", "visits", "ownership", "line"]
LAYERS: tuple[Layer, ...] = ("policy", "visits", "ownership", "line")
USUAL: tuple[Layer, ...] = ("policy", "ownership", "line")
_NUMBERED = 8  # moves of the line that are drawn
_BARS = 20


def draw(analysis: Analysis, layers: tuple[Layer, ...] = USUAL) -> str:
    """The SVG document with these layers; of `policy` and `visits` the last one holds."""
    captions = [where(analysis)]
    if analysis.look is not None:
        captions.append(network_line(analysis))
    if analysis.thought is not None:
        captions.append(search_line(analysis))
    title = f"{analysis.game.name}: {analysis.network}, {where(analysis)}"
    if not has_board(analysis.game):
        return bars.draw(_bars(analysis), captions, title)
    heat = _heat(analysis, layers)
    board = board_of(analysis.game, analysis.state)
    if heat is not None:
        # What is played nowhere on the board would not be seen.
        others = [int(action) for action in np.flatnonzero(heat >= 0.005) if place_of(board, int(action)) is None]
        captions += [f"{analysis.game.action_name(analysis.state, action)}: {heat[action]:.1%}" for action in others]
    line = []
    if "line" in layers and analysis.thought is not None:
        best = analysis.thought.candidates[0].line[:_NUMBERED]
        line = [(move.player, move.action) for move in analysis.line(best)]
    ownership = analysis.ownership() if "ownership" in layers else None
    last = analysis.moves[-1].action if analysis.moves else None
    return board_picture.draw(board, board_picture.PictureLayers(heat, ownership, line, last), captions, title)


def _heat(analysis: Analysis, layers: tuple[Layer, ...]) -> np.ndarray | None:
    """Float[A]: how strongly each action is shown."""
    wanted = [layer for layer in layers if layer in ("policy", "visits")]
    if not wanted or analysis.look is None:
        return None
    if wanted[-1] == "visits" and analysis.thought is not None:
        return _shares(analysis)
    return analysis.look.policy


def _shares(analysis: Analysis) -> np.ndarray:
    """Float[A]: of the visits of all moves."""
    shares = np.zeros(analysis.game.num_actions)
    for each in analysis.thought.candidates if analysis.thought else ():
        shares[each.action] = each.visits
    return shares / max(shares.sum(), 1)


def _bars(analysis: Analysis) -> list[bars.Bar]:
    if analysis.look is None:
        return []
    shares = None if analysis.thought is None else _shares(analysis)
    likely = analysis.look.policy if shares is None else shares + 1e-3 * analysis.look.policy
    legal = np.flatnonzero(analysis.look.policy > 0)
    order = legal[np.argsort(-likely[legal], kind="stable")][:_BARS]
    return [
        bars.Bar(
            analysis.game.action_name(analysis.state, int(action)),
            float(analysis.look.policy[action]),
            None if shares is None else float(shares[action]),
        )
        for action in order
    ]
