"""Positions as text, with python-chess as a second opinion."""

import random

import pytest

from tengen.games import chess_fen


def checked(fen: str) -> str:
    return chess_fen.text(chess_fen.parse(fen))


START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


def test_the_start() -> None:
    assert checked(START) == START


@pytest.mark.parametrize(
    ("fen", "words"),
    [
        ("", "fields"),
        (START.rsplit(" ", 1)[0], "fields"),
        (START.replace(" w ", " x "), "w or b"),
        (START.replace("KQkq", "KX"), "castling"),
        (START.replace("rnbqkbnr", "rnbqqbnr"), "king"),
        (START.replace("/8/8/8/8/", "/8/8/8/7/"), "8 squares"),
        (START.replace("/8/8/8/8/", "/8/8/8/9/"), "not a piece"),
        (START.replace("/8/8/8/8/", "/8/8/8/"), "8 ranks"),
        (START.replace("rnbqkbnr", "rnbqkbnrr"), "not a piece|8 squares"),
        (START.replace("rnbqkbnr", "rnbqkbnp"), "pawns"),
        (START.replace(" - ", " e9 "), "passing"),
        (START.replace(" 0 1", " -1 1"), "numbers of moves"),
        (START.replace(" 0 1", f" 0 {'9' * 30}"), "numbers of moves"),
        (START.replace(" 0 1", " 0 ٣"), "numbers of moves"),
        ("4k3/8/8/8/8/8/4R3/4K3 w - - 0 1", "in check"),
    ],
)
def test_what_nobody_can_play_from(fen: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        checked(fen)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("4k3/8/8/8/8/8/8/4K2R w KQkq - 0 1", "4k3/8/8/8/8/8/8/4K2R w K - 0 1"),
        ("4k3/8/8/8/8/8/8/4K2R w qK - 0 1", "4k3/8/8/8/8/8/8/4K2R w K - 0 1"),
        ("1k1r4/8/8/8/8/8/8/1RK4R b BHD - 3 9", "1k1r4/8/8/8/8/8/8/1RK4R b KQ - 3 9"),
        ("4k3/8/8/8/8/8/8/1R1RK3 w D - 0 1", "4k3/8/8/8/8/8/8/1R1RK3 w D - 0 1"),
        ("4k3/8/8/8/8/8/8/1R1RK3 w Q - 0 1", "4k3/8/8/8/8/8/8/1R1RK3 w Q - 0 1"),
        ("4k3/8/8/8/8/8/8/4K3 w - e6 0 1", "4k3/8/8/8/8/8/8/4K3 w - - 0 1"),
        ("4k3/8/8/3Pp3/8/8/8/4K3 w - e6 0 1", "4k3/8/8/3Pp3/8/8/8/4K3 w - e6 0 1"),
        ("4k3/4p3/8/3Pp3/8/8/8/4K3 w - e6 0 1", "4k3/4p3/8/3Pp3/8/8/8/4K3 w - - 0 1"),
    ],
)
def test_rights_that_cannot_be_are_dropped(given: str, kept: str) -> None:
    assert checked(given) == kept


def test_smaller_boards() -> None:
    setup = chess_fen.parse("rnbqk/ppppp/5/PPPPP/RNBQK b - - 4 7", 5)
    assert chess_fen.text(setup) == "rnbqk/ppppp/5/PPPPP/RNBQK b - - 4 7"
    with pytest.raises(ValueError, match="castling"):
        chess_fen.parse("rnbqk/ppppp/5/PPPPP/RNBQK w Q - 0 1", 5)


def test_the_960_first_ranks() -> None:
    ranks = chess_fen.chess960()
    assert len(ranks) == len(set(ranks)) == 960
    assert "RNBQKBNR" in ranks


@pytest.mark.slow
def test_python_chess_agrees_on_who_is_in_check() -> None:
    """Random boards of few pieces: the side that is not to move may not be in check."""
    chess = pytest.importorskip("chess", reason="python-chess is not installed")
    rng, refused = random.Random(0), 0
    for _ in range(2000):
        board = chess.Board(None)
        squares = rng.sample(range(64), 8)
        pieces = ["K", "k", *rng.choices("QRBNqrbn", k=4)]
        for square, sign in zip(squares, pieces, strict=False):
            board.set_piece_at(square, chess.Piece.from_symbol(sign))
        for square in squares[6:]:
            if 8 <= square < 56:
                board.set_piece_at(square, chess.Piece.from_symbol(rng.choice("Pp")))
        board.turn = rng.random() < 0.5
        wrong = bool(board.status() & (chess.STATUS_OPPOSITE_CHECK))
        if wrong:
            refused += 1
            with pytest.raises(ValueError, match="in check"):
                checked(board.fen())
        else:
            assert checked(board.fen()) == board.fen()
    assert 100 < refused < 1900
