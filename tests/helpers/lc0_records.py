"""Made-up training records of Lc0 with possible values."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen.data.format import lc0, lc0_writing
from tengen.data.format.rows import pack_planes
from tengen.games import chess_lc0
from tests.helpers import chess_oracle

REAL = Path(__file__).parents[3] / "shared" / "data" / "lc0"
"""Chunks of real games, where they are beside the clone."""
FOOLS_MATE = ("f2f3", "e7e5", "g2g4", "d8h4")
MOVES = 20  # room in the tables


def made(count: int, seed: int = 0) -> np.ndarray:
    """A game of `count` records. Every third move number is legal, and three of them were visited."""
    numbers = np.random.default_rng(seed)
    records = np.zeros(count, lc0.RECORD)
    records["version"], records["input_format"] = 6, 1
    records["probabilities"] = -1
    for index, record in enumerate(records):
        record["probabilities"][index % 3 :: 3] = 0
        chosen = index % 3 + 3 * numbers.choice(600, 3, replace=False)
        record["probabilities"][chosen] = (0.5, 0.375, 0.125)
        record["best_idx"], record["played_idx"] = chosen[:2]
    records["planes"] = numbers.integers(0, 2**64, (count, 104), np.uint64)
    records["planes"][:, [5, 11]] = 2**4, 2**60  # the kings
    for before, record in itertools.pairwise(records["planes"]):
        record[13:25] = np.roll(before[:12], 6).byteswap()
    records["castling"] = numbers.integers(0, 2, (count, 4))
    records["black"] = np.arange(count) % 2
    records["rule_50"] = numbers.integers(0, 100, count)
    for name in ("root_q", "best_q", "played_q", "orig_q"):
        records[name] = numbers.uniform(-1, 1, count)
    records["plies_left"] = np.arange(count)[::-1]
    records["result_q"] = np.where(np.arange(count) % 2, -1, 1)
    records["visits"], records["policy_kld"] = 40, numbers.uniform(0.1, 1, count)
    return records


def searched(moves: tuple[str, ...], opening: int, full: list[bool]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The rows of a game as self-play makes them, each search certain of the move that follows; and its moves."""
    chess: Any = pytest.importorskip("chess", reason="python-chess is not installed")
    board, rows, played = chess.Board(), [], []
    for ply, name in enumerate(moves):
        move = chess.Move.from_uci(name)
        action = chess_oracle.action_of(board, move)
        played.append(action)
        policy = np.full(chess_lc0.NUM_MOVES, -1, np.float16)
        policy[[chess_oracle.action_of(board, other) for other in board.legal_moves]] = 0
        policy[action] = 1
        rights = np.ones(4, bool)  # nobody has moved a king or a rook
        seen = chess_lc0.observation(
            chess_oracle.planes_of(board), rights, np.bool_(not board.turn), np.int32(board.halfmove_clock)
        )
        board.push(move)
        ends = float(board.is_game_over())
        facts = {"network_value": 0.1, "network_draw": 0.3, "network_moves_left": 12, "visits": 9, "best": action}
        facts |= {"best_value": 1.0 if ends else 0.2, "best_ends": ends, "policy_kld": 0.5}
        facts |= {"played_value": facts["best_value"], "played_ends": ends}
        row = {name: np.float32(value) for name, value in facts.items()}
        row |= {"planes": pack_planes(np.asarray(seen.planes)), "scalars": np.asarray(seen.scalars)}
        row |= {lc0_writing.POLICY: policy, "ply": np.int16(ply), "game": np.array([3, 7], np.uint32)}
        row |= {"search_value": np.float32(0.25), "policy_weight": np.float32(full[ply])}
        if ply >= opening:
            rows.append(row)
    table = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return table, np.array(played + [-1] * (MOVES - len(played)), np.int16)
