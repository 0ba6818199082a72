"""A second opinion on the rules of Go: GNU Go follows whole random games, and agrees on every move.

GNU Go is told the same ko and suicide rules. It must accept each move, have the same stones on the board after it,
count the same captures, and, where asked, allow exactly the same moves. Games are random, but nobody fills a true eye
of his own, and both pass only when nothing else is left: dead stones have been captured then, and what is empty are
eyes. The score is compared with a count of the stones on GNU Go's board by slow rules, and with GNU Go's own
`final_score` wherever it, too, takes all stones for alive: it judges life and death by search, and we do not.

One difference is known and kept out of these games: GNU Go 3.8 lets suicide repeat a position even under superko.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from tengen.games.go import Go
from tengen.games.text import GO_LETTERS
from tengen.match.engines.engine import GtpClient, points
from tengen.match.engines.process import Process
from tests.helpers.game_recording import jit, make, start
from tests.oracles.go import Go as SlowGo

GNUGO = shutil.which("gnugo") or shutil.which("/usr/games/gnugo")
pytestmark = pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed (Debian package gnugo)")

KO = {"simple": "--simple-ko", "positional": "--positional-superko", "situational": "--situational-superko"}
SECONDS = 60.0
KOMI = 6.5
_ENDS = (slice(None, -2), slice(2, None))


class Played(NamedTuple):
    """B games by our rules, over T moments; moment 0 is the empty board."""

    actions: np.ndarray  # Int32[T, B]
    boards: np.ndarray  # Int8[T, B, P]: 0 empty, 1 black, 2 white
    legal: np.ndarray  # Bool[T, B, P]: without the pass
    lengths: np.ndarray  # Int32[B]
    scores: np.ndarray  # Float32[B]: Black's, at the end
    passed_out: np.ndarray  # Bool[B]: ended by two passes


def rules(size: int, ko: str, suicide: bool = False) -> Go:
    game = make("go", size=size, komi=KOMI, ko=ko, suicide=suicide, max_moves=4 * size * size)
    assert isinstance(game, Go)
    return game


def play(game: Go, count: int, seed: int) -> Played:
    """Random games in which nobody fills his own eyes."""
    rng = np.random.default_rng(seed)

    def move(states: Any, actions: Any) -> Any:
        states = jax.vmap(game.step)(states, actions)
        return states, jax.vmap(game.legal_actions)(states), jax.vmap(game.is_over)(states)

    step, states = jit(move), start(game, count)
    legal, over = np.ones((count, game.num_actions), bool), np.zeros(count, bool)
    actions, boards, masks, lengths = [], [colours(states)], [], np.zeros(count, np.int32)
    while not over.all():
        wanted = legal[:, :-1] & ~eyes(boards[-1], np.asarray(states.turn) + 1, game.size)
        drawn = np.where(wanted, rng.random(wanted.shape), -1).argmax(1)
        actions.append(np.where(wanted.any(1), drawn, game.points).astype(np.int32))
        masks.append(legal[:, :-1])
        lengths += ~over
        states, legal, over = step(states, actions[-1])
        legal, over = np.asarray(legal), np.asarray(over)
        boards.append(colours(states))
    scores = np.asarray(jit(jax.vmap(game.score))(states))
    passed_out = np.asarray((states.last[:, :2] == game.points).all(1))
    return Played(np.array(actions), np.array(boards), np.array(masks), lengths, scores, passed_out)


def colours(states: Any) -> np.ndarray:
    """Int8[B, P]: 0 empty, 1 black, 2 white."""
    chains = np.asarray(states.chains).astype(np.int32)
    return np.where(chains == 0, 0, (chains - 1) % 2 + 1).astype(np.int8)


def eyes(board: np.ndarray, colour: np.ndarray, size: int) -> np.ndarray:
    """Bool[B, P]: empty points that are true eyes of that colour (Int[B]).

    Own stones, or the edge, are on all four sides, and the other has at most one of the corners; none at the edge.
    """
    own, other = ((board == c[:, None]).reshape(-1, size, size) for c in (colour, 3 - colour))
    own = np.pad(own, ((0, 0), (1, 1), (1, 1)), constant_values=True)
    other = np.pad(other, ((0, 0), (1, 1), (1, 1)))
    sides = own[:, :-2, 1:-1] & own[:, 2:, 1:-1] & own[:, 1:-1, :-2] & own[:, 1:-1, 2:]
    corners = sum(other[:, rows, columns].astype(int) for rows in _ENDS for columns in _ENDS)
    inside = np.zeros((size, size), int)
    inside[1:-1, 1:-1] = 1
    return (board == 0) & (sides & (corners <= inside)).reshape(board.shape)


@contextmanager
def gnugo(game: Go) -> Iterator[GtpClient]:
    """One process that follows all games."""
    assert GNUGO is not None
    suicide = "--allow-suicide" if game.options.suicide else "--forbid-suicide"
    client = GtpClient(
        Process([GNUGO, "--mode", "gtp", "--chinese-rules", KO[game.options.ko], suicide, "--level", "1"])
    )
    try:
        client.ask(f"boardsize {game.size}", SECONDS)
        client.ask(f"komi {KOMI}", SECONDS)
        yield client
    finally:
        client.close()


def vertex(action: int, size: int) -> str:
    return "PASS" if action == size * size else f"{GO_LETTERS[action % size]}{size - action // size}"


def action_of(name: str, size: int) -> int:
    found = re.fullmatch(r"([A-HJ-T])(\d+)", name)
    assert found is not None, name
    return GO_LETTERS.index(found[1]) + size * (size - int(found[2]))


class Agreement(NamedTuple):
    """How many games, and in how many GNU Go took all stones for alive, so that its score could be compared."""

    games: int
    moves: int
    captured: int
    scored: int


def follow(game: Go, played: Played, every: int) -> Agreement:
    """Show the games to GNU Go, which must agree; all legal moves are compared at every so many-th move."""
    size, captured_stones, scored = game.size, 0, 0
    with gnugo(game) as client:

        def ask(command: str) -> str:
            return client.ask(command, SECONDS)

        for number in range(len(played.lengths)):
            ask("clear_board")
            taken = [0, 0]  # by Black, by White
            board = played.boards[0, number]
            for ply in range(played.lengths[number]):
                colour, action = "bw"[ply % 2], int(played.actions[ply, number])
                if ply % every == 0:
                    allowed = {action_of(name, size) for name in ask(f"all_legal {colour}").split()}
                    assert allowed == set(np.flatnonzero(played.legal[ply, number])), (number, ply)
                ask(f"play {colour} {vertex(action, size)}")
                after = played.boards[ply + 1, number]
                lost = [int((board == owner).sum() - ((board == owner) & (after == owner)).sum()) for owner in (1, 2)]
                if action < game.points and after[action] == 0:
                    lost[ply % 2] += 1  # the stone that was just played died with the others
                taken[0] += lost[1]
                taken[1] += lost[0]
                if any(lost) or ply % every == 0 or ply == played.lengths[number] - 1:
                    check_board(ask, after, size, (number, ply))
                    assert [int(ask(f"captures {name}")) for name in ("black", "white")] == taken, (number, ply)
                board = after
            captured_stones += sum(taken)
            assert area(ask, size) - KOMI == played.scores[number], number
            if played.passed_out[number] and not ask("final_status_list dead") and not ask("final_status_list seki"):
                scored += 1
                assert points(ask("final_score")) == played.scores[number], number
    return Agreement(len(played.lengths), int(played.lengths.sum()), captured_stones, scored)


def check_board(ask: Any, board: np.ndarray, size: int, where: Any) -> None:
    for owner, name in ((1, "black"), (2, "white")):
        stones = {action_of(stone, size) for stone in ask(f"list_stones {name}").split()}
        assert stones == set(np.flatnonzero(board == owner)), where


def area(ask: Any, size: int) -> float:
    """Black's area minus White's on GNU Go's board, counted by the slow rules."""
    slow = SlowGo(size, komi=0.0)
    for owner, name in enumerate(("black", "white")):
        slow.board |= {divmod(action_of(stone, size), size): owner for stone in ask(f"list_stones {name}").split()}
    return slow.score()


@pytest.mark.parametrize(
    ("size", "ko", "suicide", "count"),
    [
        (9, "positional", False, 6),
        *(
            pytest.param(*rules, marks=pytest.mark.slow)
            for rules in ((9, "simple", True, 4), (13, "situational", False, 2), (19, "positional", False, 1))
        ),
    ],
)
def test_gnugo_agrees_on_whole_games(size: int, ko: str, suicide: bool, count: int) -> None:
    game = rules(size, ko, suicide)
    played = play(game, count, seed=1)
    found = follow(game, played, every=4)
    assert played.passed_out.any()
    assert found.captured > 20 * count
    assert found.scored > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "ko", "count"),
    [
        *((9, ko, 200) for ko in sorted(KO)),
        (13, "situational", 200),
        (13, "simple", 40),
        (19, "positional", 200),
        (19, "simple", 40),
    ],
)
def test_gnugo_agrees_on_hundreds_of_games(size: int, ko: str, count: int) -> None:
    game = rules(size, ko, suicide=ko == "simple")
    played = play(game, count, seed=size)
    found = follow(game, played, every=16)
    print(f"\n{size}x{size}, {ko} ko: {found}, {played.passed_out.sum()} ended by passes")
    assert played.passed_out.mean() > 0.95
    assert found.scored > 0.95 * count
