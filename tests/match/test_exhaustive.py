"""Trying every line: what is found is all there is, and perfect players are told from others."""

from typing import Any

import jax
import numpy as np
import pytest

from tengen.errors import TengenError
from tengen.match.exhaustive import every_line, never_loses
from tengen.match.players import Player, perfect, random
from tests.helpers.game_recording import make
from tests.helpers.match_seats import highest, lowest
from tests.oracles import tic_tac_toe_solver as solved
from tests.oracles.tic_tac_toe import TicTacToe


def by_hand(seat: int) -> list[tuple[tuple[int, ...], int]]:
    """All games against the player that takes the lowest point: moves, and the player's result."""
    found: list[tuple[tuple[int, ...], int]] = []

    def go_on(moves: tuple[int, ...]) -> None:
        game = TicTacToe()
        for move in moves:
            game.play(move)
        if game.over:
            found.append((moves, game.returns()[seat]))
            return
        legal = [action for action, allowed in enumerate(game.legal_actions()) if allowed]
        for action in legal[:1] if game.to_play == seat else legal:
            go_on((*moves, action))

    go_on(())
    return found


@pytest.mark.parametrize("seat", [0, 1])
def test_all_lines_are_found(seat: int) -> None:
    game = make("tic_tac_toe")
    lines, games = every_line(game, lowest(game), seat), by_hand(seat)
    results = [result for _, result in games]
    assert (lines.wins, lines.draws) == (results.count(1), results.count(0))
    assert sorted(lines.lost) == sorted(moves for moves, result in games if result == -1)
    assert lines.lost


def test_players_that_can_be_beaten() -> None:
    game = make("tic_tac_toe")
    assert not never_loses(game, highest(game))
    assert not never_loses(game, random(game))


def test_the_perfect_player_cannot_be_beaten() -> None:
    game = make("tic_tac_toe")
    first_of_the_best = perfect("perfect", lambda state: solved.best_moves(state)[:1])
    assert never_loses(game, first_of_the_best)
    assert every_line(game, first_of_the_best, 0).wins > 0


def test_one_mistake_is_found() -> None:
    def careless(state: Any) -> list[int]:
        # Answers a start in the corner with another corner, which loses.
        stones = [int(bits) for bits in state.stones]
        return [8] if stones == [1, 0] else solved.best_moves(state)[:1]

    lost = every_line(make("tic_tac_toe"), perfect("careless", careless), 1).lost
    assert lost
    assert all(line[:2] == (0, 8) for line in lost)


def test_a_game_that_is_too_large_says_so() -> None:
    game = make("connect_four")
    with pytest.raises(TengenError, match="connect_four: more than 1000 lines of play"):
        every_line(game, lowest(game), 0, most=1000)


def test_chunks_do_not_change_what_the_player_sees() -> None:
    asked: list[int] = []

    def rule(params: Any, key: Any, states: Any, which: Any) -> Any:
        asked.append(len(jax.tree.leaves(states)[0]))
        positions = [jax.tree.map(lambda leaf, i=i: leaf[i], states) for i in range(len(which))]
        return np.array([solved.best_moves(position)[0] for position in positions], np.int32)

    player = Player("p", rule, on_host=True)
    assert never_loses(make("tic_tac_toe"), player)
    assert set(asked) == {256}
