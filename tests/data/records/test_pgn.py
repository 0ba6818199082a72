"""Chess games as PGN, compared with python-chess."""

import io

import pytest

from tengen.data.records import moves, pgn
from tengen.data.records.records import Record, RecordError

chess = pytest.importorskip("chess")
chess_pgn = pytest.importorskip("chess.pgn")
pytest.importorskip("pgx")

pytestmark = pytest.mark.slow  # compiling chess takes long

EMPTY = Record("pgx:chess", {}, ())
# With castling on both sides, a capture in passing, two knights for one square, and a promotion.
SANS = [
    *("e4", "a6", "e5", "d5", "exd6", "Nf6", "Nf3", "e6", "Be2", "Bxd6", "O-O", "Nc6", "d4", "Bd7", "Nbd2", "Qe7"),
    *("c4", "O-O-O", "c5", "h6", "cxd6", "g6", "dxe7", "Nb4", "exd8=Q+", "Kxd8"),
]


def uci(sans: list[str]) -> list[str]:
    board = chess.Board()
    found = []
    for san in sans:
        move = board.parse_san(san)
        found.append(move.uci())
        board.push(move)
    return found


def test_reading_gives_the_moves_that_python_chess_reads_and_writing_them_back() -> None:
    text = '[Event "?"]\n[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n1. e4 {good} a6 (1... e5 2. Nf3 (2. f4)) 2. e5 $1 '
    found = pgn.read(text + " ".join(SANS[3:]) + " 1-0", EMPTY)
    assert [move.name for move in moves.named(found)] == uci(SANS)
    assert (found.players, found.result) == (("A", "B"), 1.0)
    game = chess_pgn.read_game(io.StringIO(pgn.write([found])))
    assert not game.errors
    assert [move.uci() for move in game.mainline_moves()] == uci(SANS)
    assert (game.headers["White"], game.headers["Result"]) == ("A", "1-0")


def test_a_game_from_another_position() -> None:
    fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"
    found = pgn.read(f'[FEN "{fen}"]\n\n1. e4 Ke7', EMPTY)
    game = chess_pgn.read_game(io.StringIO(pgn.write([found])))
    assert game.headers["FEN"] == fen
    assert [move.uci() for move in game.mainline_moves()] == ["e2e4", "e8e7"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("1. e5", "move 1: 'e5' is not legal"), ("1. Nc3 Nf6 2. Nd5 Ng8 3. Nf3 a6 4. N3d4 x", "move 8: 'x' is not legal")],
)
def test_wrong_moves_are_named(text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        pgn.read(text, EMPTY)
