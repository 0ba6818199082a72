"""Players choose legal moves, and those that they should."""

from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games
from tengen.config.settings.match import MatchSettings
from tengen.config.settings.search import SearchSettings
from tengen.errors import TengenError
from tengen.games.core import Game, Observation
from tengen.games.players import draw
from tengen.match import player_spec, players
from tengen.match.device_match import play
from tengen.match.player_spec import parse
from tengen.match.players import Player, play_out
from tengen.nets.outputs import Evaluation
from tests.helpers.game_recording import jit, make
from tests.helpers.match_seats import from_host
from tests.helpers.networks import untrained
from tests.helpers.search_positions import DOUBLE_MOVE, after, hashed, roots, stacked
from tests.oracles import tic_tac_toe_solver as solved
from tests.oracles.tic_tac_toe import TicTacToe

BATCH = 16
SEARCH = SearchSettings(algorithm="gumbel", simulations=24, gumbel_scale=0.0, value_scale=1.0)


def knows_nothing(params: Any, observation: Observation) -> Evaluation:
    return hashed(observation, 9, 0.0, 0.0, xp=jnp)


def likes(params: Any, observation: Observation) -> Evaluation:
    """`params` Float32[9] are the logits everywhere."""
    count = len(observation.planes)
    return Evaluation(jnp.broadcast_to(params, (count, 9)), jnp.zeros(count))


@cache
def everybody(game: Game) -> dict[str, Player]:
    found = [
        players.random(game),
        players.policy("policy", knows_nothing, game),
        players.policy("drawn policy", knows_nothing, game, temperature=1.0),
        players.network("network", knows_nothing, game, SEARCH),
        players.network("drawn network", knows_nothing, game, SEARCH, temperature=1.0),
        players.mcts(12, game),
    ]
    return {player.name: player for player in found}


NAMES = ["random", "policy", "drawn policy", "network", "drawn network", "mcts:12"]


@cache
def program(player: Player) -> Any:
    return jit(player.choose)


def choose(player: Player, states: Any, which: Any, seed: int = 0) -> np.ndarray:
    return np.asarray(program(player)(jax.random.key(seed), states, jnp.asarray(which)))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name.startswith("drawn") else ()) for name in NAMES]
)
def test_moves_are_legal(name: str) -> None:
    states = roots(DOUBLE_MOVE, BATCH)
    over = np.asarray(jax.vmap(DOUBLE_MOVE.is_over)(states))
    legal = np.asarray(jax.vmap(DOUBLE_MOVE.legal_actions)(states))
    which = ~over & (np.arange(BATCH) % 3 > 0)
    for seed in range(3):
        actions = choose(everybody(DOUBLE_MOVE)[name], states, which, seed)
        assert actions.shape == (BATCH,)
        assert actions.dtype == np.int32
        assert legal[np.arange(BATCH), actions][which].all()


def test_the_policy_plays_its_best_legal_move() -> None:
    game = make("tic_tac_toe")
    logits = jnp.array([0.0, 9.0, 3.0, 8.0, 1.0, 2.0, 7.0, 4.0, 5.0])
    states = stacked([after(game, moves) for moves in ([], [1], [1, 3], [1, 3, 6])])
    player = players.policy("policy", likes, game, logits)
    assert choose(player, states, np.ones(4, bool)).tolist() == [1, 3, 6, 8]


def test_a_policy_with_temperature_draws_from_the_sharpened_policy() -> None:
    game = make("tic_tac_toe")
    logits = np.log(np.array([1, 2, 3, 4, 5, 6, 7, 8, 9.0]))
    states = jax.tree.map(lambda leaf: np.repeat(leaf, 4000, 0), stacked([after(game, [8])]))
    actions = choose(players.policy("p", likes, game, jnp.asarray(logits), 0.5), states, np.ones(4000, bool))
    expected = np.arange(1, 10.0) ** 2 * (np.arange(9) != 8)
    np.testing.assert_allclose(np.bincount(actions, minlength=9) / 4000, expected / expected.sum(), atol=0.03)


TACTICS = {  # moves so far: the only good move
    "wins at once": ([0, 3, 1, 4], 2),
    "wins at once, the second player": ([0, 3, 1, 4, 8], 5),
    "stops a line": ([0, 4, 1], 2),
    "stops a line, the first player": ([4, 0, 8, 1], 2),
}


@pytest.mark.parametrize("player", ["mcts:300", "network"])
def test_tactics(player: str) -> None:
    game = make("tic_tac_toe")
    settings = players.strongest(SEARCH, 200)
    chosen = parse(player).player(game) if ":" in player else players.network("n", knows_nothing, game, settings)
    states = stacked([after(game, moves) for moves, _ in TACTICS.values()])
    actions = choose(chosen, states, np.ones(len(TACTICS), bool))
    assert actions.tolist() == [good for _, good in TACTICS.values()]


@pytest.mark.slow
def test_more_playouts_beat_fewer_and_those_beat_random() -> None:
    game, settings = make("tic_tac_toe"), MatchSettings(games=60, opening_moves=1)
    weak = play(game, parse("mcts:20").player(game), parse("random").player(game), jax.random.key(0), settings)
    assert weak.result.share > 0.75
    strong = play(game, parse("mcts:150").player(game), parse("mcts:20").player(game), jax.random.key(0), settings)
    assert strong.result.share > 0.55
    assert not weak.forfeits.any()
    assert not strong.forfeits.any()


def test_what_is_there_for_variety_can_be_switched_off() -> None:
    found = players.strongest(SearchSettings(simulations=5, c_init=3.0), 7)
    assert (found.simulations, found.c_init) == (7, 3.0)
    assert found.gumbel_scale == found.noise_share == found.forced_playouts == 0
    assert players.strongest(SearchSettings(simulations=5)).simulations == 5


@pytest.mark.slow
def test_the_perfect_player_never_loses_and_varies() -> None:
    game = make("tic_tac_toe")
    match = play(game, solved.player(), from_host(players.random(game)), jax.random.key(0), MatchSettings(40, 0))
    for number in range(40):  # the opening may have thrown the game away already: judge from there
        slow = TicTacToe()
        for move in match.actions[number, : match.opening_moves].tolist():
            slow.play(move)
        stones = [sum(1 << p for p, owner in slow.board.items() if owner == seat) for seat in (0, 1)]
        worth = solved.value(stones[slow.to_play], stones[1 - slow.to_play])
        mine = slow.to_play == (0 if match.a_first[number] else 1)
        assert match.results[number] >= (worth if mine else -worth)
    empty = jax.tree.map(lambda leaf: np.repeat(leaf, 60, 0), stacked([after(game, [])]))
    assert set(solved.player().choose(jax.random.key(0), empty, np.ones(60, bool)).tolist()) == set(range(9))


# --- Random games ---


COUNT = 4096


def test_every_legal_move_is_equally_likely() -> None:
    legal = jnp.array([0, 1, 1, 0, 1, 0], bool)
    drawn = np.asarray(jit(draw)(jax.random.key(0), jnp.broadcast_to(legal, (COUNT, 6))))
    shares = np.bincount(drawn, minlength=6) / COUNT
    np.testing.assert_allclose(shares, np.array([0, 1, 1, 0, 1, 0]) / 3, atol=4 * (2 / 9 / COUNT) ** 0.5)
    assert (shares[[0, 3, 5]] == 0).all()


def test_nothing_legal_gives_some_number() -> None:
    assert np.asarray(jit(draw)(jax.random.key(0), jnp.zeros((3, 5), bool))).tolist() == [0, 0, 0]


def expected(game: TicTacToe) -> np.ndarray:
    """The mean result of random games, by trying all of them."""
    if game.over:
        return np.array(game.returns(), float)
    results = []
    for action, legal in enumerate(game.legal_actions()):
        if legal:
            later = copy(game)
            later.play(action)
            results.append(expected(later))
    return np.mean(results, 0)


@pytest.mark.parametrize("moves", [[4, 0], [0, 1, 3], [0, 4, 8, 2, 6, 3]])
def test_results_are_those_of_all_random_games(moves: list[int]) -> None:
    game = make("tic_tac_toe")
    states = jax.tree.map(lambda leaf: np.repeat(leaf, COUNT, 0), stacked([after(game, moves)]))

    def run(states: Any, key: Any) -> Any:
        legal = jax.vmap(game.legal_actions)(states)
        return play_out(game, key, states, legal, jnp.zeros(COUNT, bool))

    results = np.asarray(jit(run)(states, jax.random.key(1)))
    assert set(np.unique(results)) <= {-1.0, 0.0, 1.0}
    slow = TicTacToe()
    for move in moves:
        slow.play(move)
    np.testing.assert_allclose(results.mean(0), expected(slow), atol=4 / COUNT**0.5)


def test_games_that_are_done_have_no_result() -> None:
    game = make("tic_tac_toe")
    states = stacked([after(game, []), after(game, [0, 3, 1, 4, 2])])
    legal = jnp.asarray(jax.vmap(game.legal_actions)(states))
    run = jit(lambda states, legal, done: play_out(game, jax.random.key(0), states, legal, done))
    assert (np.asarray(run(states, legal, jnp.array([True, True]))) == 0).all()


def test_random_games_that_are_cut_off_are_estimated() -> None:
    game = copy(make("tic_tac_toe"))  # which other tests use too
    game.playout_moves = 2
    game.estimate = lambda state: jnp.array([0.25, -0.25])  # type: ignore[method-assign]
    states = stacked([after(game, []), after(game, [0, 3, 1, 4, 8, 7]), after(game, [0, 3, 1, 4, 2])])
    legal = jnp.asarray(jax.vmap(game.legal_actions)(states))
    run = jit(lambda key: play_out(game, key, states, legal, jnp.array([False, False, True])))
    results = np.stack([run(key) for key in jax.random.split(jax.random.key(0), 40)])[..., 0]
    assert set(results[:, 0]) == {0.25}
    assert set(results[:, 1]) == {0.25, 1.0, -1.0}  # both could win within two moves
    assert set(results[:, 2]) == {0.0}


def test_networks_with_different_observations_meet_in_one_game(tmp_path: Path) -> None:
    """One of them sees KataGo's planes; both choose what they would choose in the game that they were trained on."""
    options = {"size": 5, "komi": 0.5}
    nets = {kind: untrained(tmp_path / kind, "go", observation=kind, **options).path for kind in ("tengen", "katago")}
    own = {kind: games.make("go", observation=kind, **options) for kind in nets}
    a, b = (player_spec.parse(str(path)) for path in nets.values())
    game = player_spec.common_game(a, b, None, {})
    assert game.options == own["katago"].options == player_spec.common_game(b, a, None, {}).options
    states = {kind: jax.vmap(one.init)(jax.random.split(jax.random.key(0), 8)) for kind, one in own.items()}
    for kind, one in own.items():
        for move in (7, 12, 3):
            states[kind] = jax.vmap(one.step)(states[kind], (jnp.arange(8) + move) % 25)
    key, everywhere = jax.random.key(1), jnp.ones(8, bool)
    for kind, path in nets.items():
        alone = players.saved(kind, path, own[kind]).ask(key, states[kind], everywhere)
        together = players.saved(kind, path, game).ask(key, states["katago"], everywhere)
        assert alone.tolist() == together.tolist()
    with pytest.raises(TengenError, match="katago"):
        players.saved("katago", nets["katago"], own["tengen"])
