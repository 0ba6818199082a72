"""The moves of a context are those of the search, of players of the arena, and of the rules."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import search
from tengen.config.settings.search import SearchSettings
from tengen.data.records import moves
from tengen.games.core import Observation
from tengen.match import device_match, players
from tengen.nets.outputs import Evaluation
from tests.helpers import game_recording
from tests.helpers.contexts import CERTAIN, CONNECT_FOUR, OPENINGS, SEARCH, SIDES, TIC_TAC_TOE, Run, Speaker, played
from tests.helpers.search_positions import DOUBLE_MOVE, hashed
from tests.oracles.connect_four import ConnectFour
from tests.oracles.tic_tac_toe import TicTacToe


@dataclass(frozen=True)
class Hashed:
    """What `Speaker` says, for compiled programs."""

    actions: int
    side: tuple[float, float]

    def __call__(self, params: Any, observation: Observation) -> Evaluation:
        del params
        return hashed(observation, self.actions, *self.side, xp=jnp)


EVALUATORS = [Hashed(TIC_TAC_TOE.num_actions, side) for side in SIDES]


def speakers(game: Any) -> list[Speaker]:
    return [Speaker(game, side) for side in SIDES]


def chosen(run: Run, side: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """16 positions in which that player chose a move, with the moves and values."""
    found = [
        (state, record.actions[ply], end["values"][ply])
        for end, record in zip(run.ends, run.records, strict=True)
        for ply, state in enumerate(moves.replay(record))
        if record.opening <= ply < len(record.actions) and int(run.context.game.to_play(state)) == side
    ]
    assert len(found) > 16
    states, actions, values = zip(*found[:16], strict=True)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states), np.array(actions), np.array(values)


@cache
def searched() -> Run:
    """Games with a search, and a network for each colour."""
    return played(TIC_TAC_TOE, SEARCH, *speakers(TIC_TAC_TOE), games=12, **OPENINGS)


def check_searches(run: Run, settings: SearchSettings) -> None:
    """Each move is that of a search with nothing but the mover's network."""
    assert run.black.colours == {0}
    assert run.white.colours == {1}
    for side, evaluate in enumerate(EVALUATORS):
        roots, actions, values = chosen(run, side)

        def result(roots: Any) -> search.Result:
            key = jax.random.key(1)
            return search.run(lambda seen: evaluate((), seen), TIC_TAC_TOE, roots, key, settings)

        expected = game_recording.jit(result)(roots)
        assert np.array_equal(expected.action, actions)
        np.testing.assert_allclose(expected.value, values, atol=1e-6)


@pytest.mark.slow
def test_each_move_is_that_of_a_search_with_the_own_network() -> None:
    check_searches(searched(), SEARCH)


OTHERS = {
    "gumbel": SearchSettings(algorithm="gumbel", simulations=9, considered=3, **CERTAIN),
    "leaves": SearchSettings(algorithm="puct", simulations=8, leaves=3, **CERTAIN),
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", OTHERS.values(), ids=OTHERS)
def test_so_it_is_with_other_searches(settings: SearchSettings) -> None:
    run = played(TIC_TAC_TOE, settings, *speakers(TIC_TAC_TOE), games=12, reuse=False, **OPENINGS)
    check_searches(run, settings)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [SEARCH, None])
@pytest.mark.parametrize("reuse", [True, False])
def test_a_game_is_that_of_two_players_of_the_arena(settings: SearchSettings | None, reuse: bool) -> None:
    """Trees are kept (`reuse`) only where one network spoke: here they never are."""
    game = TIC_TAC_TOE
    run = played(game, settings, *speakers(game), games=2, reuse=reuse)
    one, other = (
        players.policy("policy", evaluate, game)
        if settings is None
        else players.network("search", evaluate, game, settings)
        for evaluate in EVALUATORS
    )
    expected = device_match.play(
        game, one, other, jax.random.key(0), device_match.MatchSettings(games=2, opening_moves=0)
    )
    for end in run.ends:
        assert end["moves"].tolist() == expected.actions[0, : expected.length[0]].tolist()
        assert end["result"] == expected.results[0]


def test_without_search_a_move_is_the_best_of_the_policy_and_costs_one_evaluation() -> None:
    game = TIC_TAC_TOE
    run = played(game, None, *speakers(game), games=12, **OPENINGS)
    for side, evaluate in enumerate(EVALUATORS):
        states, actions, _ = chosen(run, side)
        player = players.policy("policy", evaluate, game)
        expected = game_recording.jit(player.choose)(jax.random.key(0), states, np.ones(len(actions), bool))
        assert np.array_equal(expected, actions)
    stats = run.context.stats()
    assert stats.evaluations == stats.moves == sum(end["length"] - end["opening"] for end in run.ends)


def test_few_simulations_mean_no_search() -> None:
    game = TIC_TAC_TOE
    expected = played(game, None, *speakers(game), games=2, **OPENINGS).ends[0]["moves"]
    for simulations in (0, 1):
        run = played(game, SearchSettings(simulations=simulations), *speakers(game), games=2, **OPENINGS)
        assert run.ends[0]["moves"].tolist() == expected.tolist()


@pytest.mark.slow
def test_one_function_for_both_colours_keeps_its_tree() -> None:
    """The slow way: one game, move by move, with the parts of the search."""
    game, speaker = TIC_TAC_TOE, Speaker(TIC_TAC_TOE, SIDES[0])
    run = played(game, SEARCH, speaker, speaker, games=4, **OPENINGS)
    assert speaker.colours == {0, 1}
    key, which = jax.random.key(0), np.ones(1, bool)

    def found(tree: search.Tree) -> tuple[search.Tree, Any]:
        tree = search.begin(tree, key, jnp.array([SEARCH.simulations], jnp.int32), which)
        tree = search.finish(lambda seen: EVALUATORS[0]((), seen), tree)
        action = search.summarise(tree, key).action
        return search.advance(tree, action, which), action[0]

    plant, move = game_recording.jit(lambda states: search.plant(game, SEARCH, states)), game_recording.jit(found)
    for record in run.records:
        positions = list(moves.replay(record))
        tree = plant(jax.tree.map(lambda leaf: np.asarray(leaf)[None], positions[record.opening]))
        for action in record.actions[record.opening :]:
            tree, expected = move(tree)
            assert action == int(expected)
    stats, others = run.context.stats(), searched().context.stats()
    assert stats.evaluations / stats.moves < others.evaluations / others.moves


def by_the_book(run: Run, book: Any) -> None:
    for end, record in zip(run.ends, run.records, strict=True):
        game = book()
        for action in record.actions:
            assert not game.over
            game.play(action)  # refuses what is not legal
        assert game.over
        assert game.returns()[0] == end["result"] == record.result
        assert end["moves"].tolist() == list(record.actions)
        assert end["length"] == len(record.actions)


def test_games_are_legal_and_end_as_the_rules_say() -> None:
    by_the_book(searched(), TicTacToe)
    black, white = speakers(CONNECT_FOUR)
    run = played(CONNECT_FOUR, None, black, white, games=12, num_games=5, temperature=1.0)
    by_the_book(run, ConnectFour)
    assert len({tuple(end["moves"]) for end in run.ends}) > 6
    assert any(end["opening"] for end in searched().ends)


def test_temperature_ends_with_the_moves_that_have_one() -> None:
    """All games are the same after that, unless they differed before."""
    same = [Speaker(CONNECT_FOUR, SIDES[0]) for _ in range(2)]
    options: dict[str, Any] = {"temperature": 2.0, "temperature_moves": 2, "games": 12}
    run = played(CONNECT_FOUR, None, *same, num_games=5, **options)
    after: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for end in run.ends:
        after.setdefault(tuple(end["moves"][:2]), set()).add(tuple(end["moves"]))
    assert len(after) > 1
    assert all(len(games) == 1 for games in after.values())


@pytest.mark.slow
def test_records_of_go_are_sgf() -> None:
    game = game_recording.make("go", size=3, komi=2.5, max_moves=16)
    run = played(game, None, *speakers(game), temperature=1.0, games=4)
    for end, record in zip(run.ends, run.records, strict=True):
        assert end["record"].startswith("(;GM[1]")
        *_, last = moves.replay(record)  # refuses what is not legal
        assert bool(game.is_over(last))
        assert float(game.returns(last)[0]) == end["result"]
        assert record.players == ("black 0", "white 0")


@pytest.mark.slow
def test_games_that_begin_at_random_say_how() -> None:
    game = game_recording.make("hironaka", max_points=4, max_moves=12, rescale=False)
    run = played(game, None, *speakers(game), temperature=1.0, games=4)
    assert len({record.start for record in run.records}) > 1
    for record in run.records:
        *_, last = moves.replay(record)
        assert bool(game.is_over(last))


@pytest.mark.slow
def test_a_game_of_ones_own_where_a_turn_is_two_moves() -> None:
    """Such a game has no record that could be read again; a player keeps the tree within its turn."""
    black, white = speakers(DOUBLE_MOVE)
    run = played(DOUBLE_MOVE, SEARCH, black, white, games=3)
    assert {end["record"] for end in run.ends} == {None}
    assert (black.colours, white.colours) == ({0}, {1})
    fresh = played(DOUBLE_MOVE, SEARCH, *speakers(DOUBLE_MOVE), games=3, reuse=False)
    per_move = [r.context.stats().evaluations / r.context.stats().moves for r in (run, fresh)]
    assert per_move[0] < per_move[1]
