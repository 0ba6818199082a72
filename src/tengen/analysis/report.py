"""An analysis as text for a terminal."""

from collections.abc import Sequence

import numpy as np

from tengen.analysis.analysis import Analysis, NamedMove
from tengen.analysis.board import board_of, has_board, player_name
from tengen.games.text import render_grid
from tengen.words import counted

_LONGEST = 12  # moves of a line that are shown
_OWNER = ((0.6, "X"), (0.2, "x"), (-0.2, "."), (-0.6, "o"))


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
    """A map of who will own what, if the network says so."""
    ownership = analysis.ownership()
    if ownership is None or not has_board(analysis.game):
        return []
    board = board_of(analysis.game, analysis.state)
    cells = [[next((sign for least, sign in _OWNER if owner >= least), "O") for owner in row] for row in ownership]
    first, second = (player_name(analysis.game, player) for player in (0, 1))
    legend = f"ownership: X {first}'s, x probably, . open, o probably {second}'s, O {second}'s"
    return ["", legend, render_grid(cells, board.columns, board.rows, {})]
