"""Games of the pgx library: our own games next to theirs, the adapter next to the library, and chess."""

import sys
from functools import cache
from typing import Any

import jax
import numpy as np
import pgx
import pytest

from tengen import games
from tengen.games.core import Game
from tengen.games.pgx_adapter import PgxGame
from tests.helpers.game_recording import ANY, Record, jit, make, record, start
from tests.helpers.perft import perft

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


@pytest.mark.parametrize("name", ["pgx:tic_tac_toe", "pgx:connect_four", "pgx:othello"])
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


# --- Chess ------------------------------------------------------------------------------------------------------


def words(text: str) -> set[str]:
    return set(text.split())


START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
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


@pytest.fixture(scope="module")
def chess() -> Game:
    return make("pgx:chess")


@pytest.mark.slow
@pytest.mark.parametrize("fen", MOVES)
def test_chess_moves_by_hand(chess: Game, fen: str) -> None:
    state = chess.from_text(f"fen: {fen}")
    legal = np.flatnonzero(chess.legal_actions(state)).tolist()
    named = {chess.action_name(state, action): action for action in legal}
    assert set(named) == MOVES[fen]
    assert len(named) == len(legal)
    assert int(chess.to_play(state)) == (" b " in fen)
    name, action = sorted(named.items())[-1]
    assert chess.parse_action(state, f" {name.upper()} ") == action


def test_chess_text(chess: Game) -> None:
    text = chess.render(chess.from_text(f"fen: {START}"))
    lines = text.splitlines()
    assert lines[0].split() == list("abcdefgh")
    assert lines[1] == "8 r n b q k b n r"
    assert lines[8] == "1 R N B Q K B N R"
    assert lines[-1] == f"fen: {START}"


@pytest.mark.parametrize("name", ["e2e5", "e7e5", ""])
def test_chess_refuses_other_moves(chess: Game, name: str) -> None:
    state = chess.from_text(f"fen: {START}")
    with pytest.raises(ValueError, match=r"^pgx:chess: .* is not a legal move here; legal are"):
        chess.parse_action(state, name)


@pytest.mark.parametrize("fen", ["", "nonsense", "8/8 w - - 0 1", START[:40], START.replace("rnbq", "xnbq")])
def test_chess_refuses_text_that_is_no_position(chess: Game, fen: str) -> None:
    with pytest.raises(ValueError, match=r"^pgx:chess: expected one line 'fen: ...'"):
        chess.from_text(f"fen: {fen}")


@pytest.mark.slow
def test_chess_perft() -> None:
    assert perft(make("pgx:chess"), 3, chunk=64) == [20, 400, 8902]


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
