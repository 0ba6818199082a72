"""Minichess next to a slow and obvious version of its rules."""

import numpy as np
import pytest

from tengen.games.chess_position import CHECKMATE, RUNNING, STALEMATE
from tengen.games.minichess import Minichess
from tests.helpers.game_recording import make, record, start
from tests.oracles import minichess


@pytest.mark.slow
def test_random_games() -> None:
    game = make("minichess", max_moves=60)
    assert isinstance(game, Minichess)
    played = record(game, start(game, 16), seed=1)
    ends = set()
    for g in range(16):
        for t in range(played.length(g) + 1):
            state = played.state(t, g)
            moves, check = minichess.legal(game.fen(state))
            ends.add(end := int(state.end))
            if end == RUNNING:
                found = {game.action_name(state, int(action)) for action in np.flatnonzero(played.legal[t, g])}
                assert found == moves, game.fen(state)
            elif end in (CHECKMATE, STALEMATE):
                assert not moves
                assert check == (end == CHECKMATE)
            else:
                assert moves
    assert CHECKMATE in ends
