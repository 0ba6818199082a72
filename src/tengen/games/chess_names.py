"""Names of chess moves: UCI (`e2e4`, `e7e8q`) and algebraic notation (`Nf3`, `exd5`, `O-O`), in plain Python."""

import re
from collections.abc import Sequence

from tengen.games.chess_board import KING, PAWN, ROOK, ChessGeometry
from tengen.games.chess_fen import PIECES, Setup
from tengen.games.chess_moves import CASTLED_KING
from tengen.games.text import LETTERS

_SUFFIX = re.compile(r"[+#!?]+$|\s*e\.p\.$")


def _square(square: int, setup: Setup) -> str:
    rank, file = divmod(square, setup.size)
    return f"{LETTERS[file]}{(rank if setup.turn == 0 else setup.size - 1 - rank) + 1}"


def _promotion(geometry: ChessGeometry, setup: Setup, action: int) -> str:
    """The letter of the piece that a pawn becomes, if it does."""
    last = geometry.end[action] >= geometry.squares - geometry.size
    if not (last and setup.codes[geometry.start[action]] == PAWN):
        return ""
    return "nqrb"[geometry.promotion[action]]


def castles(geometry: ChessGeometry, setup: Setup, action: int) -> bool:
    """Whether the action is castling, if it is legal."""
    return bool(setup.codes[geometry.start[action]] == KING and setup.codes[geometry.end[action]] == ROOK)


def uci(geometry: ChessGeometry, setup: Setup, action: int, chess960: bool) -> str:
    """The name of an action in UCI. In Chess960 castling is written as the king taking its rook."""
    start, end = int(geometry.start[action]), int(geometry.end[action])
    if castles(geometry, setup, action):
        usual = start == 4 and end in (0, 7)
        if usual and not chess960:
            end = int(CASTLED_KING[int(end > start)])
    return _square(start, setup) + _square(end, setup) + _promotion(geometry, setup, action)


def san(geometry: ChessGeometry, setup: Setup, action: int, legal: Sequence[int]) -> str:
    """Standard algebraic notation without the sign for check; `legal` are all legal actions."""
    start, end = int(geometry.start[action]), int(geometry.end[action])
    kind = int(setup.codes[start])
    if castles(geometry, setup, action):
        return "O-O" if end > start else "O-O-O"
    target = _square(end, setup)
    origin = _square(start, setup)
    takes = setup.codes[end] != 0 or (kind == PAWN and (end - start) % geometry.size != 0)
    if kind == PAWN:
        letter = _promotion(geometry, setup, action).upper()
        return (f"{origin[0]}x" if takes else "") + target + (f"={letter}" if letter else "")
    others = [
        _square(int(geometry.start[a]), setup)
        for a in legal
        if geometry.end[a] == end and geometry.start[a] != start and setup.codes[geometry.start[a]] == kind
    ]
    if not others:
        which = ""
    elif all(other[0] != origin[0] for other in others):
        which = origin[0]
    else:
        which = origin[1:] if all(other[1:] != origin[1:] for other in others) else origin
    return PIECES[kind] + which + ("x" if takes else "") + target


def find(geometry: ChessGeometry, setup: Setup, text: str, legal: Sequence[int]) -> int | None:
    """The legal action that a text means, in UCI or algebraic notation; castling also as king takes rook."""
    wanted = text.strip()
    for chess960 in (False, True):
        for action in legal:
            if uci(geometry, setup, action, chess960) == wanted.lower():
                return action
    plain = _plain(wanted)
    named = [(action, _plain(san(geometry, setup, action, legal))) for action in legal]
    exact = [action for action, name in named if name == plain]
    if len(exact) == 1:
        return exact[0]
    # Notation with more squares than needed, such as Ngf3 or e2e4 with a hyphen.
    match = re.fullmatch(r"([NBRQK]?)([a-h]?)([1-8]?)([a-h][1-8])([nrbqNRBQ]?)", plain)
    if match is None:
        return None
    kind = PIECES.index(match[1]) if match[1] else PAWN
    found = [
        action
        for action in legal
        if setup.codes[geometry.start[action]] == kind
        and not castles(geometry, setup, action)
        and _square(int(geometry.end[action]), setup) == match[4]
        and match[2] in _square(int(geometry.start[action]), setup)
        and match[3] in _square(int(geometry.start[action]), setup)
        and _promotion(geometry, setup, action) == match[5].lower()
    ]
    return found[0] if len(found) == 1 else None


def _plain(text: str) -> str:
    """Algebraic notation without what varies between writers."""
    text = _SUFFIX.sub("", text)
    if re.fullmatch(r"[0Oo](-?[0Oo]){1,2}", text):
        return "O" * len(re.findall(r"[0Oo]", text))
    return re.sub(r"[-x=:()]", "", text).replace("O-O", "OO")
