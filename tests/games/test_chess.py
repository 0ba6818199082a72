"""Chess: published counts of moves, and python-chess as a second opinion."""

import jax
import numpy as np
import pytest

from tengen.games.chess import Chess
from tengen.games.chess_position import (
    CHECKMATE,
    FIFTY,
    MATERIAL,
    REPETITION,
    RUNNING,
    STALEMATE,
    ChessState,
)  # fmt: skip
from tests.helpers import chess_oracle
from tests.helpers.game_recording import make, record, start
from tests.helpers.perft import perft

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
PERFT = {  # https://www.chessprogramming.org/Perft_Results
    START: [20, 400, 8902, 197281, 4865609, 119060324],
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1": [48, 2039, 97862, 4085603, 193690690],
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1": [14, 191, 2812, 43238, 674624],
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1": [6, 264, 9467, 422333, 15833292],
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8": [44, 1486, 62379, 2103487, 89941194],
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10": [46, 2079, 89890, 3894594, 164075551],
}
PERFT_960 = {  # https://www.chessprogramming.org/Chess960_Perft_Results
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9": [21, 528, 12189, 326672],
    "2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9": [21, 807, 18002, 667366],
    "b1q1rrkb/pppppppp/3nn3/8/P7/1PPP4/4PPPP/BQNNRKRB w GE - 1 9": [20, 479, 10471, 273318],
}


@pytest.fixture(scope="module")
def chess() -> Chess:
    game = make("chess")
    assert isinstance(game, Chess)
    return game


def at(game: Chess, fen: str) -> ChessState:
    return game.from_text(f"fen: {fen}")


@pytest.mark.parametrize("fen", PERFT)
def test_counts_of_moves(chess: Chess, fen: str) -> None:
    assert perft(chess, 2, 256, at(chess, fen)) == PERFT[fen][:2]


@pytest.mark.parametrize("fen", PERFT_960)
def test_counts_of_moves_in_chess960(chess: Chess, fen: str) -> None:
    assert perft(chess, 2, 256, at(chess, fen)) == PERFT_960[fen][:2]


@pytest.mark.slow
@pytest.mark.parametrize("fen", [*PERFT, *PERFT_960])
def test_counts_of_long_lines(chess: Chess, fen: str) -> None:
    known = (PERFT | PERFT_960)[fen]
    assert perft(chess, len(known), 8192, at(chess, fen), jax.jit) == known


def test_a_node_has_at_most_200_bytes(chess: Chess) -> None:
    node = jax.eval_shape(lambda key: chess.split(chess.init(key))[0], jax.random.key(0))
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(node)) <= 200


def test_python_chess_agrees(chess: Chess) -> None:
    played = record(chess, start(chess, 8), seed=1, moments=60)
    for g in range(8):
        chess_oracle.agree(chess, played, g)


@pytest.mark.slow
@pytest.mark.parametrize("chess960", [False, True])
def test_python_chess_agrees_on_many_games(chess960: bool) -> None:
    game = make("chess", chess960=chess960)
    assert isinstance(game, Chess)
    positions = 0
    for seed in range(4):
        played = record(game, start(game, 64, seed), seed=seed)
        for g in range(64):
            positions += len(chess_oracle.agree(game, played, g, planes=g == 0))
    assert positions > 50_000


def words(text: str) -> set[str]:
    return set(text.split())


PAWNS = {f"{file}2{file}{rank}" for file in "abcdefgh" for rank in "34"}
MOVES = {
    START: PAWNS | words("b1a3 b1c3 g1f3 g1h3"),
    START.replace(" w ", " b "): {
        move.translate(str.maketrans("1234", "8765")) for move in PAWNS | words("b1a3 b1c3 g1f3 g1h3")
    },
    # Castling on both sides, for both colours.
    "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1": words(
        "a1b1 a1c1 a1d1 a1a2 a1a3 a1a4 a1a5 a1a6 a1a7 a1a8 h1f1 h1g1 h1h2 h1h3 h1h4 h1h5 h1h6 h1h7 h1h8 "
        "e1d1 e1f1 e1d2 e1e2 e1f2 e1g1 e1c1"
    ),
    "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1": words(
        "a8b8 a8c8 a8d8 a8a7 a8a6 a8a5 a8a4 a8a3 a8a2 a8a1 h8f8 h8g8 h8h7 h8h6 h8h5 h8h4 h8h3 h8h2 h8h1 "
        "e8d8 e8f8 e8d7 e8e7 e8f7 e8g8 e8c8"
    ),
    # Only one side is left to castle on.
    "4k3/8/8/8/8/8/8/R3K3 w Q - 0 1": words(
        "a1b1 a1c1 a1d1 a1a2 a1a3 a1a4 a1a5 a1a6 a1a7 a1a8 e1d1 e1f1 e1d2 e1e2 e1f2 e1c1"
    ),
    # En passant.
    "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1": words("e5e6 e5d6 e1d1 e1f1 e1d2 e1e2 e1f2"),
    "4k3/8/8/8/3Pp3/8/8/4K3 b - d3 0 1": words("e4e3 e4d3 e8d8 e8f8 e8d7 e8e7 e8f7"),
    # Promotion and underpromotion, straight on and by capture.
    "3n4/4P3/8/8/8/8/k7/7K w - - 0 1": words("e7e8q e7e8r e7e8b e7e8n e7d8q e7d8r e7d8b e7d8n h1g1 h1g2 h1h2"),
    "K7/7k/8/8/8/8/4p3/3N4 b - - 0 1": words(
        "e2e1q e2e1r e2e1b e2e1n e2d1q e2d1r e2d1b e2d1n h7g6 h7g7 h7g8 h7h6 h7h8"
    ),
    # A check that the king must answer.
    "4k3/8/8/8/8/8/4r3/4K3 w - - 0 1": words("e1e2 e1d1 e1f1"),
    # Knights in every direction.
    "7k/7p/8/8/3n4/8/7P/7K b - - 0 1": words("d4b3 d4b5 d4c2 d4c6 d4e2 d4e6 d4f3 d4f5 h8g8 h8g7 h7h6 h7h5"),
}


@pytest.mark.parametrize("fen", MOVES)
def test_moves_by_hand(chess: Chess, fen: str) -> None:
    state = at(chess, fen)
    legal = np.flatnonzero(chess.moment(state).legal).tolist()
    named = {chess.action_name(state, action): action for action in legal}
    assert set(named) == MOVES[fen]
    assert len(named) == len(legal)
    assert int(chess.to_play(state)) == (" b " in fen)
    name, action = sorted(named.items())[-1]
    assert chess.parse_action(state, f" {name.upper()} ") == action


def test_names_are_those_of_python_chess(chess: Chess) -> None:
    """Castling, promotions, captures in passing, checks, and pieces of one kind that reach the same square."""
    other = pytest.importorskip("chess", reason="python-chess is not installed")
    some = [list(PERFT)[1], list(PERFT)[4], "k7/8/8/2Q1Q3/8/2Q5/8/K7 w - - 0 1", "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1"]
    for fen in some:
        board, state = other.Board(fen), at(chess, fen)
        for move in list(board.legal_moves)[::3]:
            action = chess.parse_action(state, board.san(move))
            assert action == chess_oracle.action_of(board, move)
            assert chess.parse_action(state, move.uci()) == action
            assert chess.action_name(state, action) == move.uci()
            assert chess.san(state, action) == board.san(move)


@pytest.mark.parametrize("name", ["e2e5", "e7e5", "", "Ne4", "O-O", "exd5", "0000"])
def test_other_moves_are_refused(chess: Chess, name: str) -> None:
    with pytest.raises(ValueError, match=r"^chess: .* is not a legal move here; legal are"):
        chess.parse_action(at(chess, START), name)


@pytest.mark.parametrize("fen", ["", "nonsense", "8/8 w - - 0 1", START[:40], START.replace("rnbq", "xnbq")])
def test_text_that_is_no_position_is_refused(chess: Chess, fen: str) -> None:
    with pytest.raises(ValueError, match=r"^chess: expected one line 'fen: ...'"):
        at(chess, fen)


def after(game: Chess, state: ChessState, moves: str) -> ChessState:
    for move in moves.split():
        state = game.after(game.moment(state), game.parse_action(state, move)).state
    return state


def test_a_third_occurrence_ends_the_game(chess: Chess) -> None:
    there_and_back = "Nf3 Nf6 Ng1 Ng8 "
    state = after(chess, at(chess, START), there_and_back + "Nf3 Nf6 Ng1")
    assert int(state.end) == RUNNING
    assert int(state.repeated) & 1
    assert int(after(chess, state, "Ng8").end) == REPETITION
    # The first time the king had not moved yet, so the rights to castle were others.
    rook = at(chess, "4k3/p7/8/8/8/8/8/4K2R w K - 0 1")
    state = after(chess, rook, "Kf1 Kd8 Ke1 Ke8 " * 2)
    assert int(state.end) == RUNNING
    assert int(after(chess, state, "Kf1").end) == REPETITION


def test_nodes_of_a_search_know_the_real_game(chess: Chess) -> None:
    """A position of 20 plies ago is in the list that is stored once per tree, and not in the node."""
    tour = "Ra2 Rh7 Ra3 Rh8 Ra4 Rh7 Ra5 Rh8 Rb5 Rh7 Rb4 Rh8 Rb3 Rh7 Rb2 Rh8 Rb1 Rh7 Ra1"
    root = after(chess, at(chess, "7r/8/4k3/8/8/3K4/8/R7 w - - 0 1"), tour)
    node, kept = chess.split(root)
    assert int(after(chess, chess.join(node, kept), "Rh8").repeated) & 1
    assert not int(after(chess, node, "Rh8").repeated) & 1


@pytest.mark.parametrize(
    ("fen", "moves", "end"),
    [
        ("7k/8/8/8/8/8/R7/K7 w - - 98 80", "Ra3 Kg8", FIFTY),
        ("7k/8/5KQ1/8/8/8/8/8 w - - 98 80", "Qf7 ", STALEMATE),
        ("7k/8/5KQ1/8/8/8/8/8 w - - 99 80", "Qg7#", CHECKMATE),  # comes before the 50 moves
        ("7k/8/8/8/8/8/6p1/K6B w - - 0 1", "Bxg2", MATERIAL),
        ("7k/8/8/8/8/5n2/6p1/K6B w - - 0 1", "Bxg2", RUNNING),
        ("b6k/8/8/8/8/8/1p6/K6B w - - 0 1", "Kxb2", MATERIAL),  # bishops on squares of one colour
    ],
)
def test_ends(chess: Chess, fen: str, moves: str, end: int) -> None:
    state = after(chess, at(chess, fen), moves)
    assert int(state.end) == end
    assert chess.moment(state).legal.any() == (end == RUNNING)
    white = 1 if end == CHECKMATE else 0
    assert np.asarray(chess.returns(state)).tolist() == [white, -white]


@pytest.mark.parametrize(
    ("fen", "white"),
    [
        (START, 0.0),
        (START.replace("Q", "1", 1), -0.9),
        (START.replace("Q", "1", 1).replace(" w ", " b "), -0.9),
        ("4k3/8/8/8/8/8/PPP5/RNBQK3 w - - 0 1", 1.0),
        ("4k3/8/8/8/8/8/8/RN2K3 b - - 0 1", 0.8),
    ],
)
def test_running_games_are_estimated_by_material(chess: Chess, fen: str, white: float) -> None:
    assert np.asarray(chess.estimate(at(chess, fen))).tolist() == pytest.approx([white, -white])


def test_resumed_games_go_on(chess: Chess) -> None:
    drawn = after(chess, at(chess, START), "Nf3 Nf6 Ng1 Ng8 " * 2)
    assert chess.moment(chess.resumed(drawn)).legal.sum() == 20
