"""The slow reference games against facts from outside: published counts, solved games, positions by hand."""

import random
from collections.abc import Callable, Hashable, Iterable
from copy import copy
from fractions import Fraction
from typing import Protocol, TypeVar

import pytest

from tests.oracles import hironaka
from tests.oracles.connect_four import COLUMNS, ROWS, ConnectFour
from tests.oracles.go import KO_RULES, Go, position
from tests.oracles.go_positions import CASES, Case, action_of, marks_of
from tests.oracles.hex import Hex
from tests.oracles.hironaka import Hironaka, Points, host_subsets
from tests.oracles.othello import DARK, LIGHT, PASS, Othello
from tests.oracles.tic_tac_toe import TicTacToe


class Game(Protocol):
    """What every oracle has in common."""

    to_play: int
    moves: int

    @property
    def over(self) -> bool: ...
    def legal_actions(self) -> list[bool]: ...
    def play(self, action: int) -> None: ...
    def returns(self) -> tuple[float, float]: ...


AnyGame = TypeVar("AnyGame", bound=Game)
Key = TypeVar("Key", bound=Hashable)


def choices(game: Game) -> list[int]:
    """The legal actions as numbers."""
    return [action for action, legal in enumerate(game.legal_actions()) if legal]


def after(game: AnyGame, actions: Iterable[int]) -> AnyGame:
    """A copy of the game, some moves later."""
    game = copy(game)
    for action in actions:
        game.play(action)
    return game


def perft(game: Game, depth: int) -> int:
    """The number of move sequences of this length."""
    if depth == 1:
        return len(choices(game))
    return sum(perft(after(game, [action]), depth - 1) for action in choices(game))


def reachable(start: AnyGame, key: Callable[[AnyGame], Key], plies: int | None = None) -> list[set[Key]]:
    """The distinct situations, as told apart by `key`, first met after 0, 1, 2, ... plies."""
    layers, games, seen = [{key(start)}], [start], {key(start)}
    while games and (plies is None or len(layers) <= plies):
        found = {key(later): later for game in games for later in successors(game)}
        games = [game for situation, game in found.items() if situation not in seen]
        layers.append(found.keys() - seen)
        seen |= found.keys()
    return layers


def successors(game: AnyGame) -> list[AnyGame]:
    """The game after each legal action."""
    return [after(game, [action]) for action in choices(game)]


# --- What holds for all games -------------------------------------------------------------------------------

GAMES: dict[str, Callable[[], Game]] = {
    **{f"go {ko}": lambda ko=ko: Go(4, ko=ko) for ko in KO_RULES},
    "go suicide": lambda: Go(3, suicide=True),
    "othello": Othello,
    "connect four": ConnectFour,
    "tic-tac-toe": TicTacToe,
    "hex": lambda: Hex(4),
    "hex swap": lambda: Hex(4, swap=True),
    "hironaka": lambda: Hironaka([(2, 0, 0), (0, 3, 0), (0, 0, 5)], max_moves=30),
}


@pytest.mark.parametrize("name", GAMES)
def test_random_games_keep_the_common_promises(name: str) -> None:
    rng = random.Random(0)
    for _ in range(5):
        game = GAMES[name]()
        while not game.over:
            assert game.returns() == (0, 0)
            legal, before = game.legal_actions(), (game.to_play, game.moves)
            for illegal in [-1, len(legal), *(action for action, ok in enumerate(legal) if not ok)]:
                with pytest.raises(ValueError, match="illegal"):
                    game.play(illegal)
            assert (game.legal_actions(), game.to_play, game.moves) == (legal, *before)
            game.play(rng.choice(choices(game)))
            assert (game.to_play, game.moves) == (1 - before[0], before[1] + 1)
        assert choices(game) == []
        assert sum(game.returns()) == 0


# --- Go -----------------------------------------------------------------------------------------------------


def go_after(case: Case) -> Go:
    game = Go(case.size, komi=0, ko=case.ko, suicide=case.suicide)
    return after(game, [action_of(vertex, case.size) for vertex in case.moves])


def case_named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_named_go_position(case: Case) -> None:
    game = go_after(case)
    marks = {None: ".", 0: "X", 1: "O"}
    assert [marks[game.board.get(point)] for point in game.points] == marks_of(case.diagram)
    legal = game.legal_actions()
    assert {vertex for vertex in case.legal if not legal[action_of(vertex, case.size)]} == set()
    assert {vertex for vertex in case.illegal if legal[action_of(vertex, case.size)]} == set()
    if case.score is not None:
        assert game.score() == case.score


def test_named_go_positions_are_well_formed() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.size for case in CASES} == {3, 4, 5, 6, 7, 9}
    for case in CASES:
        assert ("pass", "pass") not in zip(case.moves, case.moves[1:], strict=False), case.name
        assert not case.legal & case.illegal, case.name


@pytest.mark.parametrize(
    ("name", "banned"),
    [
        ("ko, simple", {(2, 1)}),  # B3
        ("ko, positional", {(2, 1)}),
        ("ko, situational", {(2, 1)}),
        ("ko, then a pass, positional", set()),
        ("double ko lap, simple", {(0, 2)}),  # C5
        ("double ko lap, positional", {(0, 2), (2, 2)}),  # C5 and C3
        ("send two, simple", set()),
        ("send two, positional", {(3, 1)}),  # B1
        ("snapback, positional", set()),
        ("suicide of one, positional", set()),  # illegal, but not because of the ko rule
        ("suicide repeats, positional, suicide", {(1, 2)}),  # C3
    ],
)
def test_ko_banned_names_the_points_that_only_ko_forbids(name: str, banned: set[tuple[int, int]]) -> None:
    assert go_after(case_named(name)).ko_banned() == banned


@pytest.mark.parametrize(
    ("size", "count"),
    [(2, 57), pytest.param(3, 12675, marks=pytest.mark.slow)],  # OEIS A094777
)
def test_go_reaches_every_legal_position_and_no_other(size: int, count: int) -> None:
    def situation(game: Go) -> tuple[frozenset, int, tuple[int, int] | None, bool]:
        """All that decides how a game with the simple ko rule can go on."""
        just_passed = game.last_moves[:1] == [game.pass_action]
        return position(game.board), game.to_play, game.ko_point, just_passed

    layers = reachable(Go(size, ko="simple", max_moves=1000), situation)
    assert len({board for layer in layers for board, *_ in layer}) == count


def alpha_beta(game: Go, alpha: float, beta: float) -> float:
    """The score with best play if it lies between alpha and beta; Black wants it high."""
    if game.over:
        return game.score()
    for action in reversed(choices(game)):  # the pass first: it cuts off far more
        value = alpha_beta(after(game, [action]), alpha, beta)
        if game.to_play == 0:
            alpha = max(alpha, value)
        else:
            beta = min(beta, value)
        if alpha >= beta:
            break
    return alpha if game.to_play == 0 else beta


def test_go_2x2_with_positional_superko_is_worth_one_point() -> None:
    # Solved by John Tromp ("Solving 2x2 Go"); Bill Taylor proved it by hand.
    assert alpha_beta(Go(2, komi=0, ko="positional", max_moves=1000), -4, 4) == 1


@pytest.mark.parametrize("ko", KO_RULES)
def test_the_simple_ko_ban_holds_under_every_ko_rule(ko: str) -> None:
    rng, bans = random.Random(1), 0
    for _ in range(30):
        game = Go(4, ko=ko, max_moves=100)
        while not game.over:
            banned = game.ko_banned()
            if game.ko_point is not None:
                bans += 1
                assert game.ko_point in banned
            if ko == "simple":
                assert banned == ({game.ko_point} - {None})
            stones = choices(game)[:-1]
            game.play(rng.choice(stones) if stones else game.pass_action)
    assert bans > 10


def test_go_ends_after_two_passes_in_a_row_or_at_the_move_limit() -> None:
    assert not after(Go(3), [9, 0, 9]).over
    assert after(Go(3), [9, 0, 9, 9]).over
    assert [after(Go(3, max_moves=2), range(moves)).over for moves in (1, 2)] == [False, True]
    assert [Go(size).max_moves for size in (3, 5, 9, 19)] == [50, 50, 162, 722]


@pytest.mark.parametrize(
    ("komi", "moves", "returns"),
    [
        (7.0, [25, 25], (-1, 1)),
        (0.0, [25, 25], (0, 0)),
        (7.0, [12, 25, 25], (1, -1)),
        (25.0, [12, 25, 25], (0, 0)),
    ],
)
def test_go_returns_compare_the_area_with_komi(komi: float, moves: list[int], returns: tuple[int, int]) -> None:
    assert after(Go(5, komi=komi), moves).returns() == returns


def test_go_ownership_liberties_and_last_moves_by_hand() -> None:
    walls = go_after(case_named("neutral column, positional"))
    assert walls.ownership() == [[1, 1, 1, 0, -1, -1, -1]] * 7
    assert walls.liberties((0, 2)) == 14  # the wall of C: columns B and D
    assert walls.liberties((0, 0)) == 0  # no stone there
    corner = after(Go(3), [0, 1, 9])  # Black A3, White B3, pass
    assert (corner.liberties((0, 0)), corner.liberties((0, 1))) == (1, 2)
    assert corner.last_moves == [9, 1, 0]


# --- Othello ------------------------------------------------------------------------------------------------


def test_othello_perft() -> None:
    assert [perft(Othello(), depth) for depth in range(1, 7)] == [4, 12, 56, 244, 1396, 8200]


def test_othello_shortest_game_is_a_wipe_out_by_dark() -> None:
    moves = ["e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5"]  # columns a to h, row 1 at the top
    game = after(Othello(), [8 * (int(move[1]) - 1) + "abcdefgh".index(move[0]) for move in moves])
    assert game.over
    assert sorted(game.board.values()) == [DARK] * 13
    assert game.returns() == (1, -1)


def test_othello_pass_is_forced_and_only_forced() -> None:
    # X O in the top left corner and nothing else: Light can turn nothing, Dark can play (0, 2).
    game = Othello()
    game.board = {(0, 0): DARK, (0, 1): LIGHT}
    assert choices(game) == [2]
    game.to_play = LIGHT
    assert choices(game) == [PASS]
    game.play(PASS)
    assert (game.to_play, game.over) == (DARK, False)
    game.play(2)
    assert (game.over, game.returns()) == (True, (1, -1))


def test_othello_equal_discs_are_a_draw() -> None:
    game = Othello()
    game.board = {(0, 0): DARK, (7, 7): LIGHT}
    assert (game.over, game.returns()) == (True, (0, 0))


# --- Connect four and tic-tac-toe ---------------------------------------------------------------------------


def test_connect_four_perft() -> None:
    assert [perft(ConnectFour(), depth) for depth in range(1, 6)] == [7, 49, 343, 2401, 16807]


@pytest.mark.slow
def test_connect_four_distinct_positions_after_each_ply() -> None:
    layers = reachable(ConnectFour(), lambda game: frozenset(game.board.items()), plies=5)
    assert [len(layer) for layer in layers] == [1, 7, 49, 238, 1120, 4263]  # OEIS A212693


@pytest.mark.parametrize(
    "columns",
    [
        [0, 0, 1, 1, 2, 2, 3],  # the bottom row
        [3, 4, 3, 4, 3, 4, 3],  # a column
        [0, 1, 1, 2, 2, 3, 2, 3, 3, 6, 3],  # rising to the right: columns 0, 1, 2, 3 at heights 1, 2, 3, 4
        [6, 5, 5, 4, 4, 3, 4, 3, 3, 0, 3],  # rising to the left
    ],
)
def test_connect_four_wins_in_each_direction(columns: list[int]) -> None:
    assert not after(ConnectFour(), columns[:-1]).over
    won = after(ConnectFour(), columns)
    assert (won.over, won.returns()) == (True, (1, -1))


def test_connect_four_full_board_without_four_is_a_draw() -> None:
    # Each column alternates; from below, columns 0, 1, 4, 5 begin with X and 2, 3, 6 with O, so a row
    # reads XXOOXXO or OOXXOOX in turn, and no four in a row, column or diagonal are equal.
    pairs = [(0, 2), (1, 3), (4, 6)]
    columns = [column for x, o in pairs for column in [x, *[o] * 6, *[x] * 5]] + [5] * 6
    game = after(ConnectFour(), columns)
    assert game.moves == ROWS * COLUMNS
    assert (game.over, game.returns()) == (True, (0, 0))


def test_tic_tac_toe_has_5478_positions() -> None:
    layers = reachable(TicTacToe(), lambda game: frozenset(game.board.items()))
    assert sum(len(layer) for layer in layers) == 5478


def test_tic_tac_toe_has_255168_games() -> None:
    known: dict[object, list[int]] = {}

    def games_by_result(game: TicTacToe) -> list[int]:
        """How many games from here the first player wins, the second wins, nobody wins."""
        board = frozenset(game.board.items())
        if board not in known:
            if game.over:
                known[board] = [int(game.returns()[0] == result) for result in (1, -1, 0)]
            else:
                parts = [games_by_result(later) for later in successors(game)]
                known[board] = [sum(column) for column in zip(*parts, strict=True)]
        return known[board]

    assert games_by_result(TicTacToe()) == [131184, 77904, 46080]
    assert 131184 + 77904 + 46080 == 255168


# --- Hex ----------------------------------------------------------------------------------------------------


def mover_wins(game: Hex, known: dict[object, bool]) -> bool:
    """Whether the side to move wins with best play; `known` remembers what was worked out."""
    situation = frozenset(game.board.items()), game.moves
    if situation not in known:
        known[situation] = any(later.over or not mover_wins(later, known) for later in successors(game))
    return known[situation]


@pytest.mark.parametrize("size", [2, 3])
def test_hex_belongs_to_the_first_player_and_with_swap_to_the_second(size: int) -> None:
    # Nash's strategy stealing; and a second player who may take the better side cannot lose.
    assert mover_wins(Hex(size), {})
    assert not mover_wins(Hex(size, swap=True), {})


def test_hex_has_no_draw() -> None:
    rng = random.Random(2)
    for _ in range(50):
        game = Hex(5)
        while not game.over:
            game.play(rng.choice(choices(game)))  # would fail on a full board without a winner
        assert abs(game.returns()[0]) == 1


def test_hex_neighbours_and_goals_by_hand() -> None:
    # Cells of the 2x2 board: 0 1 / 2 3. The short diagonal 1-2 touches, the long one 0-3 does not.
    assert after(Hex(2), [1, 0, 2]).returns() == (1, -1)  # top to bottom over the short diagonal
    assert after(Hex(2), [0, 1, 3, 2]).returns() == (-1, 1)  # left to right over the same diagonal
    assert not after(Hex(2), [0, 1, 3]).over
    assert after(Hex(3), [0, 3, 1, 4, 2, 5]).returns() == (-1, 1)  # the top row is no goal of player 0


def test_hex_swap_mirrors_the_first_stone() -> None:
    game = after(Hex(3, swap=True), [2, 9])  # the stone on (0, 2) becomes player 1's on (2, 0)
    assert game.board == {(2, 0): 1}
    assert (game.to_play, game.moves) == (0, 2)
    assert choices(game) == [0, 1, 2, 3, 4, 5, 7, 8]


def test_hex_swap_is_for_the_second_move_only() -> None:
    assert 9 not in choices(Hex(3, swap=True))
    assert choices(after(Hex(3, swap=True), [4])) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert 9 not in choices(after(Hex(3, swap=True), [4, 0]))
    assert len(after(Hex(3), [4]).legal_actions()) == 9


# --- Hironaka: the oracle cases of the fact sheet, computed by the original code ----------------------------

P = None  # a removed point
AXES = [(2, 0, 0), (0, 3, 0), (0, 0, 5)]


def exact(points: list) -> Points:
    """Points in fractions; a decimal is given as a string."""
    return [None if point is None else tuple(Fraction(value) for value in point) for point in points]


def step(points: list, subset: tuple[int, ...], axis: int, tidy: str = "") -> Hironaka:
    """The game after the host's subset and the agent's axis; `tidy` names the optional operations."""
    game = Hironaka(points, 100, reposition="reposition" in tidy, rescale="rescale" in tidy)
    return after(game, [host_subsets(game.dimension).index(subset), axis])


def test_hironaka_host_actions_are_ordered_by_bitmask() -> None:
    assert host_subsets(2) == [(0, 1)]
    assert host_subsets(3) == [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    words = ["".join(map(str, subset)) for subset in host_subsets(4)]
    assert words == ["01", "02", "12", "012", "03", "13", "013", "23", "023", "123", "0123"]
    for d in range(2, 8):
        codes = [sum(2**axis for axis in subset) for subset in host_subsets(d)]
        assert [code - (code.bit_length() - 1) - 2 for code in codes] == list(range(2**d - d - 1))


def test_hironaka_case_1_shift() -> None:
    points = "7 5 3 8, 8 1 8 18, 8 3 17 8, 11 11 1 19, 11 12 18 6, 16 11 5 6"
    shifted = "7 5 11 8, 8 1 26 18, 8 3 25 8, 11 11 20 19, 11 12 24 6, 16 11 11 6"
    before, expected = ([row.split() for row in text.split(", ")] for text in (points, shifted))
    assert hironaka.shift(exact(before), (2, 3), 2) == exact(expected)


@pytest.mark.parametrize(
    ("points", "removed"),
    [
        ([(7, 5, 3, 8), (8, 9, 8, 18), (8, 3, 17, 8), (11, 11, 1, 19), (11, 12, 18, 6), (16, 11, 5, 6)], {1}),
        ([(0, 4), (1, 1), (4, 0), (2, 2), (1, 1)], {3, 4}),
        ([(0, 4), (2, 3), (4, 0)], set()),  # the convex hull would drop (2, 3)
        ([(0, 2), (1, 1), (2, 0)], set()),  # the convex hull would drop (1, 1)
    ],
)
def test_hironaka_cases_2_to_4_reduce(points: list, removed: set[int]) -> None:
    expected = [P if slot in removed else point for slot, point in enumerate(points)]
    assert hironaka.reduce(exact(points)) == exact(expected)


@pytest.mark.parametrize(
    ("points", "subset", "axis", "tidy", "expected", "over"),
    [
        (AXES, (0, 1, 2), 0, "", [(2, 0, 0), P, P], True),
        (AXES, (0, 1, 2), 0, "reposition", [(0, 0, 0), P, P], True),
        (AXES, (0, 1), 1, "", [(2, 2, 0), (0, 3, 0), (0, 0, 5)], False),
        ([(0, 4), (1, 1), (4, 0)], (0, 1), 1, "", [(0, 4), (1, 2), P], False),
        ([(0, 4), (1, 1), (4, 0)], (0, 1), 1, "reposition, rescale", [(0, 1), (".5", 0), P], False),
        (
            [(4, 0, 1), (0, 2, 3), (1, 1, 1), (5, 5, 5)],
            (1, 2),
            2,
            "",
            [(4, 0, 1), (0, 2, 5), (1, 1, 2), P],
            False,
        ),
        ([(0, 1), (1, 0)], (0, 1), 0, "", [P, (1, 0)], True),
    ],
)
def test_hironaka_cases_5_to_8_step(
    points: list, subset: tuple[int, ...], axis: int, tidy: str, expected: list, over: bool
) -> None:
    game = step(points, subset, axis, tidy)
    assert (game.points, game.over) == (exact(expected), over)


def test_hironaka_case_9_reposition_and_rescale() -> None:
    moved = exact([(0, 2, 1, 1), P, (3, 0, 0, 0), (0, 10, 5, 0)])
    assert hironaka.reposition(exact([(1, 5, 3, 4), P, (4, 3, 2, 3), (1, 13, 7, 3)])) == moved
    assert hironaka.rescale(moved) == exact([(0, ".2", ".1", ".1"), P, (".3", 0, 0, 0), (0, 1, ".5", 0)])
    assert hironaka.rescale(exact([(0, 0, 0), P])) == exact([(0, 0, 0), P])


def test_hironaka_case_10_illegal_axis_and_ended_game_change_nothing() -> None:
    game = after(Hironaka(AXES, 10), [0])  # the host names {0, 1}
    with pytest.raises(ValueError, match="illegal"):
        game.play(2)
    assert (game.points, game.to_play, choices(game)) == (exact(AXES), 1, [0, 1])
    ended = Hironaka([(2, 3, 5), P], 10)
    assert (ended.over, choices(ended), ended.returns()) == (True, [], (1, -1))


def test_hironaka_returns_fall_with_each_single_choice() -> None:
    win = [host_subsets(3).index((0, 1, 2)), 0]  # ends AXES in two choices, case 5
    assert after(Hironaka(AXES, 8), win).returns() == (0.5, -0.5)
    assert after(Hironaka(AXES, 4), win).returns() == (0, 0)
    assert after(Hironaka(AXES, 2), win).returns() == (-1, 1)  # reduced, but exactly at the limit
    assert after(Hironaka(AXES, 2), [0, 1]).returns() == (-1, 1)  # three points left at the limit
    between = after(Hironaka(AXES, 3), [0, 1, 0])  # an odd limit ends the game before the agent answers
    assert (between.over, between.returns()) == (True, (-1, 1))
