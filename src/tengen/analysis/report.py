"""An analysis as text for a terminal, and as SVG: the board with what the network thinks, or bars without a board."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from tengen.analysis import board_picture
from tengen.analysis.analysis import Analysis, NamedMove
from tengen.analysis.board_picture import board_of, has_board, place_of, player_name
from tengen.analysis.drawing import Drawing
from tengen.games.text import render_grid
from tengen.words import counted

_LONGEST = 12  # moves of a line that are shown
_OWNER = ((0.6, "X"), (0.2, "x"), (-0.2, "."), (-0.6, "o"))
Layer = Literal["policy", "visits", "ownership", "line"]
USUAL: tuple[Layer, ...] = ("policy", "ownership", "line")
_NUMBERED = 8  # moves of the line that are drawn
_BARS = 20
_ROW = 24.0
_NAMES = 130.0
_WIDTH = 340.0
_MARGIN = 20.0
_INK, _POLICY, _VISITS = "#222222", "#2c6fbb", "#e08a1e"


def as_text(analysis: Analysis, most: int = 10) -> str:
    """The position, what the network says, and the `most` best moves."""
    parts = [f"{analysis.network}: {_rules(analysis)}", *analysis.remarks, "", analysis.game.render(analysis.state), ""]
    parts += [where(analysis)]
    if analysis.look is not None:
        parts += [network_line(analysis)]
    if analysis.search is not None:
        parts += [search_line(analysis), "", *_candidates(analysis, most)]
    elif analysis.look is not None:
        parts += ["", *_priors(analysis, most)]
    parts += _ownership(analysis)
    return "\n".join(parts) + "\n"


def where(analysis: Analysis) -> str:
    """Whose turn it is after which move, or how the game ended."""
    count = len(analysis.moves)
    after = f"after {counted(count, 'move')}"
    after += f" (last: {analysis.moves[-1].name})" if count else ""
    if analysis.result is None:
        return f"{analysis.mover} to play {after}"
    return f"the game is over {after}: {outcome(analysis)}"


def outcome(analysis: Analysis) -> str:
    """How a finished game ended, in words."""
    result = analysis.result or 0.0
    if result == 0:
        return "a draw"
    facts = analysis.game.record_facts(analysis.state)
    points = f" by {abs(float(facts['score'])):g}" if "score" in facts else ""
    worth = f" (worth {abs(result):.2f})" if abs(result) < 1 else ""
    return f"{player_name(analysis.game, int(result < 0))} has won{points}{worth}"


def network_line(analysis: Analysis) -> str:
    """Value and extra heads of the bare network, for the player to move."""
    look = analysis.look
    assert look is not None
    words = f"network: win {look.win:.1%}, draw {look.draw:.1%}, loss {look.loss:.1%} (value {look.value:+.3f})"
    if look.score is not None:
        words += f", score {look.score:+.1f} ± {look.score_spread:.1f}"
    if look.moves_left is not None:
        words += f", about {look.moves_left:.0f} moves left"
    for name, value in look.targets.items():
        words += f", {name} {value:.3g}" if value.ndim == 0 else ""
    return words


def search_line(analysis: Analysis) -> str:
    search = analysis.search
    assert search is not None
    expected = " ".join(shown(analysis.line(search.candidates[0].line)))
    return f"search:  value {search.value:+.3f} after {search.visits:,} visits in {search.seconds:.1f} s: {expected}"


def shown(line: Sequence[NamedMove]) -> list[str]:
    """The names of a line's moves, not too many."""
    return [move.name for move in line[:_LONGEST]] + ["..."] * (len(line) > _LONGEST)


def _rules(analysis: Analysis) -> str:
    game = analysis.game
    options = {key: value for key, value in vars(game.options).items() if value is not None}
    return ", ".join([game.name, *(f"{key} {str(value).lower()}" for key, value in options.items())])


def _candidates(analysis: Analysis, most: int) -> list[str]:
    assert analysis.search is not None
    candidates = analysis.search.candidates
    lines = [shown(analysis.line(each.line)) for each in candidates[:most]]
    width = max(5, *(len(line[0]) for line in lines))
    rows = [f"     {'move':{width}}  {'prior':>6}  {'visits':>7}  {'value':>6}  line"]
    for number, (each, line) in enumerate(zip(candidates, lines, strict=False), 1):
        numbers = f"{each.prior:6.1%}  {each.visits:7,}  {each.value:+6.3f}"
        rows.append(f"{number:3}  {line[0]:{width}}  {numbers}  {' '.join(line)}")
    if len(candidates) > most:
        rows.append(f"     ... and {len(candidates) - most} more (--most {len(candidates)} shows them)")
    return rows


def _priors(analysis: Analysis, most: int) -> list[str]:
    assert analysis.look is not None
    policy = analysis.look.policy
    legal = np.flatnonzero(policy > 0)
    order = legal[np.argsort(-policy[legal], kind="stable")]
    names = [analysis.game.action_name(analysis.state, int(action)) for action in order[:most]]
    width = max(5, *map(len, names))
    rows = [f"     {'move':{width}}  {'prior':>6}"]
    rows += [
        f"{n:3}  {name:{width}}  {policy[a]:6.1%}" for n, (name, a) in enumerate(zip(names, order, strict=False), 1)
    ]
    return rows + ([f"     ... and {len(order) - most} more"] if len(order) > most else [])


def _ownership(analysis: Analysis) -> list[str]:
    ownership = analysis.ownership()
    if ownership is None or not has_board(analysis.game):
        return []
    board = board_of(analysis.game, analysis.state)
    cells = [[next((sign for least, sign in _OWNER if owner >= least), "O") for owner in row] for row in ownership]
    first, second = (player_name(analysis.game, player) for player in (0, 1))
    legend = f"ownership: X {first}'s, x probably, . open, o probably {second}'s, O {second}'s"
    return ["", legend, render_grid(cells, board.columns, board.rows, {})]


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
        name = bar.name if len(bar.name) <= 18 else bar.name[:17] + "…"
        drawing.text(left - 8, y + _ROW / 2, name, 13, text_anchor="end", fill=_INK, kind="name")
        _bar(drawing, left, y, bar.prior, _POLICY, "prior")
        if bar.share is not None:
            _bar(drawing, left, y + _ROW / 2, bar.share, _VISITS, "visits")
    return drawing.to_text()


def _bar(drawing: Drawing, x: float, y: float, share: float, colour: str, kind: str) -> None:
    drawing.rectangle(x, y, max(_WIDTH * share, 0.5), _ROW / 2 - 1, fill=colour, kind=kind)
    drawing.text(x + _WIDTH * share + 6, y + _ROW / 4, f"{share:.1%}", 10, text_anchor="start", fill="#444444")
