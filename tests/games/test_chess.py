"""Chess: published counts of moves, and python-chess as a second opinion."""

import jax
import numpy as np
import pytest

from tengen import games
from tengen.games.chess import Chess
from tests.helpers import chess_oracle
from tests.helpers.game_recording import jit, make, record, start
from tests.helpers.perft import perft

PERFT = {  # https://www.chessprogramming.org/Perft_Results
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1": [20, 400, 8902, 197281, 4865609, 119060324],
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


def at(game: Chess, fen: str) -> object:
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
    positions = ends = 0
    for seed in range(4):
        played = record(game, start(game, 64, seed), seed=seed)
        for g in range(64):
            positions += len(chess_oracle.agree(game, played, g, planes=g % 8 == 0))
            ends += 1
    assert positions > 50_000
