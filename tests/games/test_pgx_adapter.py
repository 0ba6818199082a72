"""Games of the pgx library: our own games next to theirs, and the adapter next to the library."""

import sys
from functools import cache
from typing import Any

import jax
import numpy as np
import pgx
import pytest

from tengen import games
from tengen.games.pgx_adapter import PgxGame
from tests.helpers.game_recording import ANY, Record, jit, make, record, start

# --- Our games next to theirs: same actions, same rules, two implementations ----------------------------------


def agree(ours: Record, theirs: Record, t: int, g: int) -> None:
    """Whose turn, what is legal, whether it is over, who won, and the stones of both."""
    assert int(ours.to_play[t, g]) == int(theirs.to_play[t, g])
    assert bool(ours.over[t, g]) == bool(theirs.over[t, g])
    np.testing.assert_array_equal(ours.legal[t, g], theirs.legal[t, g])
    np.testing.assert_array_equal(ours.returns[t, g], theirs.returns[t, g])
    np.testing.assert_array_equal(ours.planes[t, g, ..., 1:3], theirs.planes[t, g, ..., 1:3])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (("tic_tac_toe", {}), "pgx:tic_tac_toe"),
        (("connect_four", {}), "pgx:connect_four"),
        pytest.param(("hex", {"size": 11, "swap": True}), "pgx:hex", marks=pytest.mark.slow),
    ],
)
def test_our_games_are_theirs(ours: tuple[str, dict], theirs: str) -> None:
    game = make(ours[0], **ours[1])
    liking = np.zeros(game.num_actions)
    if game.name == "hex":
        liking[-1] = 5  # about half of the games swap
    played = record(game, start(game), seed=5, liking=liking)
    others = record(make(theirs), start(make(theirs)), actions=played.actions)
    for g in range(64):
        for t in range(played.length(g) + 1):
            agree(played, others, t, g)
    if game.name == "hex":
        assert 10 < (played.actions[1] == 121).sum() < 60


@pytest.mark.slow
def test_our_othello_is_theirs_but_ends_without_the_last_two_passes() -> None:
    ours, theirs = make("othello"), make("pgx:othello")
    played = record(ours, start(ours), seed=5)
    actions = np.where(played.over, 64, played.actions)
    others = record(theirs, start(theirs), actions=actions)
    for g in range(64):
        end = played.length(g)
        for t in range(end):
            agree(played, others, t, g)
        waits = 0 if others.over[end, g] else 2  # unless the board is full or one colour gone
        assert others.over[end + waits, g]
        np.testing.assert_array_equal(played.returns[end, g], others.returns[end + waits, g])


@pytest.mark.slow
def test_our_go_is_theirs_until_they_end_a_repetition() -> None:
    """pgx has the simple ko rule, and gives the game to the other player when a position comes again."""
    ours, theirs = make("go", size=9, ko="simple"), make("pgx:go_9x9")
    liking = np.zeros(82)
    liking[-1] = -4
    states = start(ours, 16)._replace(komi=np.full(16, 15, np.int16))  # 7.5 points
    played = record(ours, states, seed=5, liking=liking)
    others = record(theirs, start(theirs, 16), actions=played.actions)
    ended = 0
    for g in range(16):
        boards = []
        for t in range(played.length(g) + 1):
            boards.append((played.states.chains[t, g] != 0).tobytes())
            if others.over[t, g] and not played.over[t, g]:
                assert boards[-1] in boards[:-1]
                break
            agree(played, others, t, g)
            ended += bool(played.over[t, g])
    assert ended > 4


# --- The adapter next to the library ----------------------------------------------------------------------------


@cache
def _raw(env: Any) -> Any:
    def step(state: Any, action: Any) -> tuple[Any, Any]:
        return jax.vmap(env.step)(state, action), state

    def run(keys: Any, actions: Any) -> Any:
        return jax.lax.scan(step, jax.vmap(env.init)(keys), actions)[1]

    return jit(run)


@pytest.mark.parametrize(
    "name", ["pgx:tic_tac_toe", "pgx:connect_four", pytest.param("pgx:othello", marks=pytest.mark.slow)]
)
def test_the_adapter_shows_what_pgx_shows(name: str) -> None:
    game = make(name)
    assert isinstance(game, PgxGame)
    played = record(game, start(game), seed=1)
    raw = jax.tree.map(np.asarray, _raw(game.env)(jax.random.split(jax.random.key(0), 64), played.actions))
    for g in range(64):
        first = raw.current_player[0, g]
        for t in range(played.length(g) + 1):
            over = raw.terminated[t, g]
            assert bool(played.over[t, g]) == over
            assert int(played.to_play[t, g]) == (raw.current_player[t, g] != first)
            np.testing.assert_array_equal(played.legal[t, g], raw.legal_action_mask[t, g] & ~over)
            np.testing.assert_array_equal(played.planes[t, g, ..., 1:], raw.observation[t, g])
            rewards = raw.rewards[t, g] if first == 0 else raw.rewards[t, g, ::-1]
            np.testing.assert_array_equal(played.returns[t, g], rewards)
    assert len(set(raw.current_player[0].tolist())) == 2  # pgx draws who begins


def test_the_move_limit_is_a_draw() -> None:
    game = make("pgx:tic_tac_toe", max_moves=3)
    played = record(game, start(game, 16), actions=np.full((5, 16), ANY))
    assert not played.over[2].any()
    assert played.over[3].all()
    assert (played.returns[3] == 0).all()


def test_states_hold_no_observation() -> None:
    game = make("pgx:othello")
    state = jax.eval_shape(game.init, jax.random.key(0))
    assert state.inner.observation.shape == (0,)


# --- What cannot be played --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("backgammon", "it rolls dice"),
        ("kuhn_poker", "it hides cards"),
        ("leduc_holdem", "it hides cards"),
        ("bridge_bidding", "it hides cards"),
        ("sparrow_mahjong", "it hides tiles"),
        ("2048", "it has one player"),
        ("minatar-breakout", "it has one player"),
        ("chequers", "pgx has no game with that name"),
        ("", "pgx has no game with that name"),
    ],
)
def test_unsuitable_games_are_refused(name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^pgx:{name}: .*{reason}; choose from .*chess"):
        games.make(f"pgx:{name}")


def test_every_game_of_pgx_is_either_refused_or_offered() -> None:
    with pytest.raises(ValueError, match="choose from") as refusal:
        games.make("pgx:nothing")
    offered = set(str(refusal.value).split("choose from ")[1].split(", "))
    two_players = {"animal_shogi", "chess", "connect_four", "gardner_chess", "go_9x9", "go_19x19", "hex", "othello"}
    assert offered == two_players | {"shogi", "tic_tac_toe"}
    assert offered < set(pgx.available_envs())


def test_without_the_library_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(ValueError, match=r"^pgx:chess needs the pgx library: pip install 'tengen-zero\[pgx\]'"):
        games.make("pgx:chess")


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="max_moves"):
        games.make("pgx:tic_tac_toe", max_moves=0)
