"""Go against a slow Go that floods a dict, against positions by hand, and against published counts."""

import random
from collections.abc import Iterable
from copy import copy
from functools import cache
from itertools import groupby, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tengen.games.go import Go, GoState
from tests.helpers.game_recording import ANY, Record, jit, make, new, record, start
from tests.oracles import go as oracle
from tests.oracles.go_positions import CASES, Case, action_of, marks_of

KO_RULES = ("simple", "positional", "situational")
RULES = list(product(KO_RULES, (False, True)))  # (ko, suicide)
MARKS = {None: ".", 0: "X", 1: "O"}


def go(size: int, ko: str = "simple", suicide: bool = False, **options: Any) -> Go:
    game = make("go", size=size, ko=ko, suicide=suicide, **options)
    assert isinstance(game, Go)
    return game


# --- Step by step against the oracle ------------------------------------------------------------------------


@cache
def parity_wave(komi: float, area: int) -> float:
    """KataGo's global input 18, from its description: how far komi lies above the nearest one that can draw."""
    drawable = max(k for k in range(-1000, 1000) if k <= komi and k % 2 == area % 2)
    above = komi - drawable
    return above if above < 0.5 else 1 - above if above < 1.5 else above - 2


def scalars_of(game: oracle.Go) -> list[float]:
    """KataGo's global inputs 0-8, 14 and 18."""
    area = game.size**2
    passes = [move == game.pass_action for move in game.last_moves[:5]]
    komi = max(-area - 20, min(area + 20, game.komi if game.to_play == 1 else -game.komi))
    ko = {"simple": (0, 0), "positional": (1, 0.5), "situational": (1, -0.5)}[game.ko]
    ends = bool(passes and passes[0])
    return [*passes, *[False] * (5 - len(passes)), komi / 20, *ko, game.suicide, ends, parity_wave(komi, area)]


def planes_of(game: oracle.Go, banned: list[bool]) -> list[list[bool]]:
    """[12][P]: KataGo's planes 0-6 and 9-13."""
    board = [game.board.get(point) for point in game.points]
    liberties = [game.liberties(point) for point in game.points]
    ago = [*game.last_moves[:5], *[None] * 5][:5]
    return [
        [True] * len(board),
        [owner == game.to_play for owner in board],
        [owner == 1 - game.to_play for owner in board],
        *([count == n for count in liberties] for n in (1, 2, 3)),
        banned,
        *([action == move for action in range(len(board))] for move in ago),
    ]


def agree(game: oracle.Go, played: Record, t: int, g: int) -> None:
    """Everything that can be seen at one moment of one game."""
    verdicts = [game.verdict(point) for point in game.points]
    assert played.legal[t, g].tolist() == [verdict == "legal" for verdict in verdicts] + [not game.over]
    assert bool(played.over[t, g]) == game.over
    assert int(played.to_play[t, g]) == game.to_play
    planes = played.planes[t, g].reshape(-1, 12).T.tolist()
    expected = planes_of(game, [verdict == "ko" for verdict in verdicts])
    if game.over:  # the ko rule has nothing to forbid any more
        planes[6] = expected[6]
    assert planes == expected
    assert np.abs(played.scalars[t, g] - scalars_of(game)).max() < 1e-6
    owner = game.ownership()
    assert played.targets["ownership"][t, g].tolist() == owner
    assert float(played.targets["score"][t, g]) == sum(map(sum, owner)) - game.komi
    assert tuple(played.returns[t, g]) == game.returns()


def follow(game: oracle.Go, played: Record, g: int, every: int = 1) -> None:
    """Replay a recorded game on the oracle and compare, at every so many moments and at the end."""
    end = played.length(g)
    for t in range(end + 1):
        if t % every == 0 or t == end:
            agree(game, played, t, g)
        if t < end:
            game.play(int(played.actions[t, g]))
    assert game.over or end == len(played.over) - 1


def random_games(
    size: int, ko: str, suicide: bool, batch: int = 64, seed: int = 0, moments: int | None = None
) -> tuple[Record, list[oracle.Go]]:
    """Games with various komi, hardly any passes in one half and many in the other, and their oracles."""
    game = go(size, ko, suicide)
    rng = np.random.default_rng(seed)
    komi = rng.integers(-2 * size**2, 2 * size**2 + 1, batch)
    states = start(game, batch)._replace(komi=komi.astype(np.int16))
    liking = np.zeros(game.num_actions, np.float32)
    liking[-1] = -4 if seed % 2 == 0 else 0
    played = record(game, states, seed, moments=moments, liking=liking)
    return played, [oracle.Go(size, half / 2, ko, suicide) for half in komi]


def compare(size: int, ko: str, suicide: bool, games: int, seed: int = 0, batch: int = 64, **how: int) -> None:
    """Random games step by step."""
    every = how.pop("every", 1)
    played, others = random_games(size, ko, suicide, batch, seed, **how)
    for g in range(games):
        follow(others[g], played, g, every)


# The rules under which games on small boards are recorded; test_conformance.py records those on 5x5 as well.
SMALL = [
    (2, "simple", True),
    (2, "positional", False),
    (2, "situational", False),
    (3, "simple", False),
    (3, "positional", True),
    (3, "situational", False),
    (4, "situational", True),
    (5, "simple", False),
    (5, "positional", True),
]


@pytest.mark.parametrize(
    ("size", "ko", "suicide"),
    [pytest.param(*rules, marks=pytest.mark.slow if number % 4 else ()) for number, rules in enumerate(SMALL)],
)
def test_random_games_on_small_boards(size: int, ko: str, suicide: bool) -> None:
    for seed, games in enumerate({2: (64, 64), 3: (64, 32), 4: (48,), 5: (24,)}[size]):
        compare(size, ko, suicide, games, seed)


@pytest.mark.parametrize(
    ("size", "ko", "suicide", "games", "every"),
    [
        pytest.param(7, "positional", True, 4, 1, marks=pytest.mark.slow),
        (9, "simple", False, 2, 1),
        pytest.param(13, "simple", True, 2, 12, marks=pytest.mark.slow),
        pytest.param(19, "positional", False, 2, 40, marks=pytest.mark.slow),
    ],
)
def test_random_games_on_large_boards(size: int, ko: str, suicide: bool, games: int, every: int) -> None:
    moments = min(2 * size**2 + 2, 300)
    batch = 16 if size == 9 else games  # test_pgx_adapter.py records that one as well
    compare(size, ko, suicide, games, batch=batch, every=every, moments=moments)


@pytest.mark.slow
@pytest.mark.parametrize(("ko", "suicide"), RULES)
@pytest.mark.parametrize("size", range(2, 20))
def test_many_random_games(size: int, ko: str, suicide: bool) -> None:
    if size <= 5:
        for seed in range(10, {2: 30, 3: 20, 4: 16, 5: 14}[size]):
            compare(size, ko, suicide, 64, seed)
    else:
        games = 32 if size <= 7 else 8 if size <= 9 else 2
        every = 1 if size <= 9 else size
        compare(size, ko, suicide, games, 10, batch=games, every=every, moments=2 * size**2 + 2)


@pytest.mark.slow
@given(
    options=st.sampled_from([options for options in SMALL if options[0] < 4]),
    half_points=st.integers(-800, 800),
    choices=st.lists(st.integers(0, 9), max_size=49),
)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_any_moves_on_tiny_boards(options: tuple[int, str, bool], half_points: int, choices: list[int]) -> None:
    size, ko, suicide = options
    game = go(*options)
    actions = np.full((game.max_moves + 2, 64), ANY)
    other = oracle.Go(size, half_points / 2, ko, suicide)
    for t, choice in enumerate(choices):
        if other.over:
            break
        legal = [action for action, allowed in enumerate(other.legal_actions()) if allowed]
        actions[t, 0] = legal[choice % len(legal)]
        other.play(int(actions[t, 0]))
    states = start(game)._replace(komi=np.full(64, half_points, np.int16))
    played = record(game, states, actions=actions)
    assert len(other.last_moves) == min(len(choices), played.length(0))
    follow(oracle.Go(size, half_points / 2, ko, suicide), played, 0)


# --- Positions by hand --------------------------------------------------------------------------------------


def rules_of(case: Case) -> tuple[int, str, bool]:
    return case.size, case.ko, case.suicide


GROUPS = {rules: list(cases) for rules, cases in groupby(sorted(CASES, key=rules_of), key=rules_of)}


@cache
def _final(game: Go) -> Any:
    """What there is after Int32[T, B] moves, where ANY is none at all."""

    def run(states: Any, actions: Any) -> Any:
        def step(state: GoState, action: jax.Array) -> GoState:
            moved = game.step(state, action)
            return jax.tree.map(lambda old, new: jnp.where(action == ANY, old, new), state, moved)

        states, _ = jax.lax.scan(lambda s, a: (jax.vmap(step)(s, a), None), states, actions)
        return states.chains, jax.vmap(game.legal_actions)(states), jax.vmap(game.score)(states)

    return jit(run)


def final(game: Go, sequences: list[list[int]]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The chains, the legal actions and the score after each of these sequences of moves."""
    # Then the program that records random games has been compiled already.
    small = (game.size, game.options.ko, game.options.suicide) in SMALL
    actions = np.full((game.max_moves + 2, 64) if small else (24, 24), ANY, np.int32)
    for g, moves in enumerate(sequences):
        actions[: len(moves), g] = moves
    if not small:
        found = jax.tree.map(np.asarray, _final(game)(start(game, 24), actions))
        return list(zip(*found, strict=True))
    played = record(game, start(game), actions=actions)
    ends = [(len(moves), g) for g, moves in enumerate(sequences)]
    return [(played.states.chains[at], played.legal[at], played.targets["score"][at]) for at in ends]


def colours(chains: np.ndarray) -> list[str]:
    return ["." if chain == 0 else "XO"[(int(chain) - 1) % 2] for chain in chains]


def _named(rules: tuple[int, str, bool]) -> Any:
    """Every combination of rules is compiled by itself; few of them are among the quick tests."""
    size, ko, suicide = rules
    rare = rules not in ((5, "simple", False), (5, "situational", False), (4, "positional", True))
    return pytest.param(rules, id=f"{size}-{ko}{'-suicide' * suicide}", marks=pytest.mark.slow if rare else ())


@pytest.mark.parametrize("rules", [_named(rules) for rules in GROUPS])
def test_named_positions(rules: tuple[int, str, bool]) -> None:
    size, *_ = rules
    cases = GROUPS[rules]
    game = go(*rules)
    moves = [[action_of(vertex, size) for vertex in case.moves] for case in cases]
    for case, (chains, legal, score) in zip(cases, final(game, moves), strict=False):
        assert colours(chains) == marks_of(case.diagram), case.name
        allowed = {game.action_name(new(game), int(action)) for action in np.flatnonzero(legal)}
        assert allowed >= case.legal, case.name
        assert not allowed & case.illegal, case.name
        if case.score is not None:
            assert score == case.score - game.options.komi, case.name


def test_there_are_203_named_positions() -> None:
    assert sum(map(len, GROUPS.values())) == 203


# --- Exhaustive play ----------------------------------------------------------------------------------------


def explore(size: int, chunk: int) -> set[bytes]:
    """The boards reached by playing everything everywhere, breadth first, under the simple ko rule."""
    game = go(size, max_moves=10000)

    @jax.jit
    def expand(states: GoState) -> tuple[GoState, jax.Array, jax.Array, jax.Array]:
        legal = jax.vmap(game.legal_actions)(states)
        actions = jnp.arange(game.num_actions, dtype=jnp.int32)
        after = jax.vmap(lambda s: jax.vmap(lambda a: game.step(s, a))(actions))(states)
        stones = jnp.where(after.chains == 0, 0, 1 + (after.chains - 1) % 2)
        passed = after.last[..., 0] == game.points
        situation = jnp.concatenate(
            [stones, after.turn[..., None], after.ko[..., None], passed[..., None]], -1, dtype=jnp.int8
        )
        return after, legal, situation, jax.vmap(jax.vmap(game.is_over))(after)

    waiting = jax.tree.map(np.asarray, start(game, 1))
    seen, boards = set(), {bytes(size * size)}
    while waiting.turn.size:
        now = jax.tree.map(lambda leaf: leaf[:chunk], waiting)
        waiting = jax.tree.map(lambda leaf: leaf[chunk:], waiting)
        count = now.turn.size
        padded = jax.tree.map(lambda leaf: np.resize(leaf, (chunk, *leaf.shape[1:])), now)
        after, legal, situation, over = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], expand(padded))
        fresh = []
        for at in np.argwhere(legal):
            key = situation[tuple(at)].tobytes()
            if key not in seen:
                seen.add(key)
                boards.add(key[: size * size])
                if not over[tuple(at)]:
                    fresh.append(at)
        if fresh:
            rows, columns = np.array(fresh).T
            found = jax.tree.map(lambda leaf: leaf[rows, columns], after)
            waiting = jax.tree.map(lambda old, new: np.concatenate([old, new]), waiting, found)
    return boards


@pytest.mark.parametrize(
    ("size", "count", "chunk"), [(2, 57, 64), pytest.param(3, 12675, 4096, marks=pytest.mark.slow)]
)
def test_exhaustive_play_reaches_every_legal_position(size: int, count: int, chunk: int) -> None:
    assert len(explore(size, chunk)) == count  # OEIS A094777


# --- KataGo's scalar inputs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "komi", "black", "white"),
    [  # (own komi / 20, wave) of each player
        (5, 7.0, (-0.35, 0), (0.35, 0)),  # 25 points: odd komi can draw
        (5, 6.0, (-0.3, 0), (0.3, 0)),  # exactly between two that can
        (5, 7.5, (-0.375, -0.5), (0.375, 0.5)),
        (5, 6.5, (-0.325, 0.5), (0.325, -0.5)),
        (5, 0.0, (0, 0), (0, 0)),
        (5, 0.5, (-0.025, 0.5), (0.025, -0.5)),  # -0.5 lies half a point above -1, 0.5 lies 1.5 above -1
        (5, -5.5, (0.275, 0.5), (-0.275, -0.5)),
        (5, 45.0, (-2.25, 0), (2.25, 0)),
        (5, 45.5, (-2.25, 0), (2.25, 0)),  # clipped to 25 + 20, before the wave is taken
        (5, -400.0, (2.25, 0), (-2.25, 0)),
        (4, 7.0, (-0.35, 0), (0.35, 0)),  # 16 points: even komi can draw
        (4, 6.5, (-0.325, -0.5), (0.325, 0.5)),
        (4, 7.5, (-0.375, 0.5), (0.375, -0.5)),
        (4, -0.5, (0.025, 0.5), (-0.025, -0.5)),
        (4, 100.0, (-1.8, 0), (1.8, 0)),
    ],
)
def test_komi_inputs(size: int, komi: float, black: tuple[float, float], white: tuple[float, float]) -> None:
    game = go(5) if size == 5 else go(4, "situational", True)
    states = start(game)._replace(komi=np.full(64, 2 * komi, np.int16))
    passes = np.full((game.max_moves + 2, 64), game.points)
    scalars = record(game, states, actions=passes).scalars
    np.testing.assert_allclose(scalars[0, 0, [5, 10]], black, atol=1e-6)
    np.testing.assert_allclose(scalars[1, 0, [5, 10]], white, atol=1e-6)


def test_pass_inputs() -> None:
    game = go(5)
    moves = [25, 0, 25, 1, 25, 2, 3]
    actions = np.full((game.max_moves + 2, 64), ANY)
    actions[: len(moves), 0] = moves
    scalars = record(game, start(game), actions=actions).scalars[:, 0]
    assert scalars[5, :5].tolist() == [1, 0, 1, 0, 1]
    assert scalars[6, :5].tolist() == [0, 1, 0, 1, 0]
    assert scalars[7, :5].tolist() == [0, 0, 1, 0, 1]
    assert scalars[:8, 9].tolist() == [0, 1, 0, 1, 0, 1, 0, 0]  # after a pass, another one ends the game


@pytest.mark.parametrize(
    ("ko", "suicide", "expected"),
    [
        ("simple", False, [0, 0, 0]),
        ("positional", True, [1, 0.5, 1]),
        ("situational", False, [1, -0.5, 0]),
    ],
)
def test_rule_inputs(ko: str, suicide: bool, expected: list[float]) -> None:
    played, _ = random_games(5, ko, suicide)
    assert (played.scalars[..., 6:9] == expected).all()


# --- Superko in search trees --------------------------------------------------------------------------------


def with_past(game: oracle.Go, past: Iterable[oracle.Go]) -> list[bool]:
    """What would be legal if only these positions had been there before."""
    game = copy(game)
    game.seen = frozenset((oracle.position(earlier.board), earlier.to_play) for earlier in past)
    return game.legal_actions()


@pytest.mark.slow
@pytest.mark.parametrize("ko", ["positional", "situational"])
def test_nodes_remember_eight_positions_and_join_gives_back_those_of_the_root(ko: str) -> None:
    game, root = go(2, ko), 6
    legal_of = jit(jax.vmap(game.legal_actions))
    older = nearer = 0
    for seed in range(2):
        played = record(game, start(game), seed, liking=np.array([0, 0, 0, 0, -2]))
        pairs = [game.split(played.state(root, g)) for g in range(64)]
        nodes, kept = (jax.tree.map(lambda *leaves: np.stack(leaves), *part) for part in zip(*pairs, strict=True))
        assert nodes.history.shape == (64, 0, 2)
        deeper = record(game, nodes, actions=played.actions[root:])
        joined = [np.asarray(legal_of(jax.vmap(game.join)(states, kept))) for states in moments_of(deeper, 24)]
        for g in range(64):
            line = [oracle.Go(2, ko=ko)]
            for t in range(min(played.length(g), root + 24)):
                if t >= root:
                    in_node = with_past(line[-1], line[-8:])
                    at_root = with_past(line[-1], [*line[-8:], *line[: root + 1]])
                    assert deeper.legal[t - root, g].tolist() == in_node
                    assert joined[t - root][g].tolist() == at_root
                    older += in_node != at_root
                    nearer += in_node != with_past(line[-1], [])
                line.append(copy(line[-1]))
                line[-1].play(int(played.actions[t, g]))
    assert older > 10
    assert nearer > 10


def moments_of(played: Record, count: int) -> list[Any]:
    """The states [B] of each of the first moments."""
    return [jax.tree.map(lambda leaf: leaf[t], played.states) for t in range(count)]


# --- The end ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("half_points", "moves", "returns"),
    [
        (18, [4, 9, 9], (0, 0)),  # Black owns all nine points
        (17, [4, 9, 9], (1, -1)),
        (19, [4, 9, 9], (-1, 1)),
        (0, [9, 9], (0, 0)),  # nobody owns anything
        (1, [9, 9], (-1, 1)),
        (-1, [9, 9], (1, -1)),
        (0, [0, 8, 9, 9], (0, 0)),  # one stone each
        (-18, [9, 4, 9, 9], (0, 0)),
    ],
)
def test_whole_komi_can_draw(half_points: int, moves: list[int], returns: tuple[int, int]) -> None:
    game = go(3)
    actions = np.full((game.max_moves + 2, 64), ANY)
    actions[: len(moves), 0] = moves
    played = record(game, start(game)._replace(komi=np.full(64, half_points, np.int16)), actions=actions)
    assert played.length(0) == len(moves)
    assert tuple(played.returns[len(moves), 0]) == returns
    assert (
        float(played.targets["score"][len(moves), 0])
        == sum(sum(row) for row in played.targets["ownership"][len(moves), 0]) - half_points / 2
    )


def test_options_give_the_komi_of_new_games() -> None:
    assert int(new(go(3, komi=-6.5)).komi) == -13
    assert "komi: -6.5\n" in go(3, komi=-6.5).render(new(go(3, komi=-6.5)))


@pytest.mark.slow
@pytest.mark.parametrize("ko", ["simple", "positional"])
def test_the_move_limit_scores_the_board_as_it_stands(ko: str) -> None:
    game = go(3, ko, max_moves=3, komi=0.5)
    played = record(
        game, start(game, 4), actions=np.array([[0, 4, 9, 0], [9, 0, 0, 9], [1, 9, 9, 8], [9] * 4, [9] * 4])
    )
    assert played.over[:, :].tolist() == [[False] * 4, [False] * 4, [False] * 4, [True] * 4, [True] * 4]
    assert played.legal[3].any() == np.False_
    # Black alone, one stone each, White alone, two black stones.
    assert played.returns[3, :, 0].tolist() == [1, -1, -1, 1]
    assert played.targets["score"][3].tolist() == [8.5, -0.5, -9.5, 8.5]


def test_the_usual_move_limit() -> None:
    assert [go(size).max_moves for size in (2, 5, 6, 9, 19)] == [50, 50, 72, 162, 722]


# --- Text ---------------------------------------------------------------------------------------------------

TEXT = """  A B C D
4 . X . .
3 X . X O
2 . X . O
1 . . . .
to play: white
komi: 6.5
ko: none"""


def test_text_by_hand() -> None:
    game = go(4)
    state = game.from_text(TEXT)
    assert "".join(colours(np.asarray(state.chains))) == ".X..X.XO.X.O...."
    assert (int(state.turn), int(state.komi), int(state.ko)) == (1, 13, -1)
    assert game.render(state) == TEXT


@pytest.mark.parametrize(
    ("line", "wrong", "message"),
    [
        ("komi: 6.5", "komi: much", "komi: expected a number"),
        ("komi: 6.5", "komi: nan", "komi: expected"),
        ("komi: 6.5", "komi: inf", "komi: expected"),
        ("komi: 6.5", "komi: 99999", "komi: expected"),
        ("komi: 6.5", "komi: 6.3", "komi: expected"),
        ("ko: none", "ko: E1", "ko: expected a point or none"),
        ("ko: none", "ko: pass", "ko: expected a point or none"),
        ("to play: white", "to play: grey", "to play: expected black or white"),
        ("4 . X . .", "4 . X . ?", "expected a row name and 4 of . X O"),
        ("3 X . X O", "3 X O X O", "no liberty"),
        ("komi: 6.5\n", "", "note 'komi' is missing"),
        ("komi: 6.5", "comi: 6.5", "expected one of the notes"),
        ("ko: none", "ko: D3", "there is a stone on D3"),
    ],
)
def test_text_that_is_no_position(line: str, wrong: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^go: .*{message}"):
        go(4).from_text(TEXT.replace(line, wrong))


def test_names_of_points() -> None:
    game = go(19)
    names = [game.action_name(new(game), action) for action in (0, 7, 8, 18, 19 * 15 + 3, 360, 361)]
    assert names == ["A19", "H19", "J19", "T19", "D4", "T1", "pass"]


@pytest.mark.slow
def test_random_choice_of_moves_reaches_the_rare_rules() -> None:
    """The random games above are worth something only if they meet kos, captures and suicides."""
    rng = random.Random(0)
    kos = captures = suicides = 0
    for ko, suicide in RULES:
        played, others = random_games(3, ko, suicide)
        for g in rng.sample(range(64), 8):
            game = others[g]
            for action in played.actions[: played.length(g), g]:
                kos += len(game.ko_banned()) > 0
                mover, stones = game.to_play, dict(game.board)
                game.play(int(action))
                lost = [stones[point] for point in stones if point not in game.board]
                captures += 1 - mover in lost
                suicides += mover in lost
    assert min(kos, captures, suicides) > 10
