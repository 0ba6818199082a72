"""Matches of a context: callbacks play as the same players of the match room do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen.context import GameContext
from tengen.errors import OptionError, TengenError
from tengen.games.players import First, Player
from tengen.match import players
from tests.context.test_context_moves import Hashed
from tests.helpers.contexts import SEARCH, SIDES, TIC_TAC_TOE, Speaker, idle

FIRST = Player("first", First(TIC_TAC_TOE))


def first(batch: Any) -> Any:
    """Prefers moves with low numbers."""
    assert (batch["ply"][: batch.count] == -1).all()
    return idle(batch) | {"policy": np.tile(-np.arange(9.0), (len(batch["mask"]), 1))}


@pytest.mark.parametrize(("swap", "arrays"), [(False, "jax"), (True, "numpy")])
def test_a_callback_plays_as_its_rule_does(swap: bool, arrays: str) -> None:
    context = GameContext(TIC_TAC_TOE, 8, 4, arrays=arrays)
    found = [context.evaluate(black=one, white="random", games=20, swap=swap, seed=3) for one in (first, FIRST)]
    assert found[0].games == 20
    assert (found[0].a, found[0].b) == ("first", "random")
    assert found[0] == found[1]
    low, high = found[0].interval
    assert 0 < low < found[0].share < high < 1


@pytest.mark.slow
def test_a_callback_searches_as_a_network_does() -> None:
    """In both seats, with batches that are smaller than the match."""
    context = GameContext(TIC_TAC_TOE, 8, 3, search=SEARCH)
    speaker = Speaker(TIC_TAC_TOE, SIDES[0])
    network = players.network("network", Hashed(9, SIDES[0]), TIC_TAC_TOE, SEARCH)
    by_callback = context.evaluate(black=speaker, white=FIRST, games=8, swap=True, black_version=7)
    by_network = context.evaluate(black=network, white=FIRST, games=8, swap=True)
    assert speaker.colours == {0, 1}
    assert speaker.versions == {7}
    counts = [(one.wins, one.draws, one.losses) for one in (by_callback, by_network)]
    assert counts[0] == counts[1]


def test_colours_are_as_they_are_called() -> None:
    colours: dict[str, set[int]] = {"black": set(), "white": set()}

    def player(name: str) -> Any:
        def act(batch: Any) -> Any:
            colours[name] |= set(batch["colour"][: batch.count].tolist())
            assert batch.label == f"actor_{name}"
            return first(batch)

        return act

    context = GameContext(TIC_TAC_TOE, 8, 4)
    result = context.evaluate(black=player("black"), white=player("white"), games=7)
    assert result.games == 7
    assert (result.a, result.b) == ("act", "act#2")
    assert colours == {"black": {0}, "white": {1}}


@pytest.mark.slow
def test_while_games_are_played() -> None:
    context = GameContext(TIC_TAC_TOE, 4, 2, opening_moves=3, total_games=4)
    context.on("actor", idle)
    results = []
    context.on("game_end", lambda end: results.append(context.evaluate(black=FIRST, white="random", games=6)))
    with context:
        while context.run() is not None:
            pass
    assert len(results) == 4
    assert len(set(map(str, results))) == 1, "the seed decides"


def test_who_cannot_play() -> None:
    context = GameContext(TIC_TAC_TOE, 4, 2)
    with pytest.raises(OptionError, match="evaluate: black: expected a function, a network, its path, .* got 7"):
        context.evaluate(black=7, white="random")
    with pytest.raises(OptionError, match="other engines play in `tengen match`"):
        context.evaluate(black=first, white="gtp:gnugo --mode gtp")
    with pytest.raises(OptionError, match="nonsense: there is no such file or folder"):
        context.evaluate(black="nonsense", white="random")
    with pytest.raises(OptionError, match="evaluate: games: expected .* got 7"):
        context.evaluate(black=first, white="random", games=7, swap=True)
    with pytest.raises(
        TengenError, match="actor_white: expected a reply with policy and value, as a dict, got nothing"
    ):
        context.evaluate(black="random", white=lambda batch: None, games=2)
    with pytest.raises(ZeroDivisionError) as raised:
        context.evaluate(black="random", white=lambda batch: 1 / 0, games=2)
    assert raised.traceback[-1].path == Path(__file__)
