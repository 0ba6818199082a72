"""What every game promises: `tengen.testing.check_game` for all of them, and what it cannot know about each."""

import random
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from tengen.games import contract
from tengen.games.core import Game, Symmetry
from tengen.testing.games import look
from tengen.testing.texts import sample
from tests.helpers.game_recording import Record, make, record, start


class Case(NamedTuple):
    """A game under test, and how many games of it are played at once."""

    name: str
    options: Mapping[str, Any] = MappingProxyType({})
    batch: int = 64

    @property
    def id(self) -> str:
        return "-".join([self.name, *(f"{key}={value}" for key, value in self.options.items())])


CASES = [
    Case("tic_tac_toe"),
    Case("connect_four"),
    Case("hex", {"size": 4, "swap": True}),
    Case("pgx:tic_tac_toe"),
]
SLOW = [
    Case("go", {"size": 5, "ko": "positional", "suicide": True}),
    Case("othello"),
    Case("hironaka", {"dimension": 3}),
    Case("go", {"size": 5, "ko": "simple"}),
    Case("go", {"size": 9}, batch=8),
    Case("hironaka", {"dimension": 2, "reposition": True, "rescale": False}),
    Case("pgx:connect_four"),
    Case("hex", {"size": 5, "swap": False}),
    Case("go", {"size": 5, "ko": "positional"}),
    Case("go", {"size": 5, "ko": "situational"}),
    Case("go", {"size": 5, "observation": "katago"}, batch=16),
    Case("hex", {"size": 13, "swap": True}, batch=16),
    Case("go", {"size": 19, "max_moves": 100}, batch=4),
    Case("hironaka", {"dimension": 4, "max_points": 10}),
    Case("pgx:othello"),
    Case("pgx:hex", batch=16),
    Case("pgx:animal_shogi", {"max_moves": 40}, batch=16),
    Case("pgx:gardner_chess", {"max_moves": 40}, batch=8),
    Case("pgx:chess", {"max_moves": 40}, batch=8),
    Case("minichess", {"max_moves": 60}, batch=16),
    Case("chess", {"max_moves": 60}, batch=16),
    Case("chess", {"chess960": True, "max_moves": 60}, batch=8),
]
PAST = ("go", "chess", "minichess")
SYMBOLS = {"tic_tac_toe": "xo", "connect_four": "xo", "othello": "xo", "hex": "xo", "go": "XO"}  # player 0, player 1
PLAYERS = {  # who `to play` names
    "tic_tac_toe": ("x", "o"), "connect_four": ("x", "o"), "othello": ("dark", "light"), "hex": ("x", "o"),
    "go": ("black", "white"),
}  # fmt: skip


PARAMETERS = [pytest.param(case, id=case.id, marks=[pytest.mark.slow] * (case in SLOW)) for case in [*CASES, *SLOW]]


def only(*names: str) -> pytest.MarkDecorator:
    """For a test that has something to say about these games alone."""
    cases = zip([*CASES, *SLOW], PARAMETERS, strict=True)
    return pytest.mark.parametrize("case", [parameter for case, parameter in cases if case.name in names])


@pytest.fixture(params=PARAMETERS)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def game(case: Case) -> Game:
    return make(case.name, **case.options)


@pytest.fixture
def played(case: Case, game: Game) -> Record:
    return _played(game, case.batch)


@cache
def _played(game: Game, batch: int) -> Record:
    return record(game, start(game, batch), seed=1)


def cells_of(text: str, shape: tuple[int, int]) -> np.ndarray:
    """[H, W] the characters of a rendered board."""
    return np.array([line.split()[1:] for line in text.splitlines()[1 : shape[0] + 1]])


def notes_of(text: str) -> dict[str, str]:
    """The `key: value` lines under a rendered position."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def test_the_game_keeps_its_promises(case: Case, game: Game, played: Record) -> None:
    assert game.name == case.name
    assert list(contract.problems(game)) == []
    mirrored = mirrored_points if game.name == "hironaka" else None
    problems, notes = look(game, case.batch, played, mirrored)
    assert problems == []
    # Superko, passes and the planes of chess look at the past, which text does not hold.
    assert all(game.name in PAST and "from_text" in note for note in notes)
    won = (played.returns[played.over] != 0).any()
    assert won or "chess" in game.name  # so few random moves rarely win


def mirrored_points(game: Game, symmetry: Symmetry, played: Record) -> Any:
    """Hironaka's games start from points: those seen through the symmetry."""
    starts = jax.tree.map(lambda leaf: leaf[0], played.states)
    to = symmetry.actions[1, : game.options.dimension]
    return starts._replace(points=starts.points[:, :, np.argsort(to)])


class TestObservation:
    @only(*SYMBOLS)
    def test_the_observation_is_the_movers(self, case: Case, game: Game, played: Record) -> None:
        movers = set()
        for t, g in sample(played, 40):
            text = game.render(played.state(t, g))
            mover = int(played.to_play[t, g])
            movers.add(mover)
            mine, theirs = SYMBOLS[case.name][mover], SYMBOLS[case.name][1 - mover]
            cells = cells_of(text, game.planes_shape[:2])
            np.testing.assert_array_equal(played.planes[t, g, ..., 1], cells == mine)
            np.testing.assert_array_equal(played.planes[t, g, ..., 2], cells == theirs)
            assert notes_of(text)["to play"] == PLAYERS[case.name][mover]
        assert movers == {0, 1}

    @only("tic_tac_toe", "connect_four", "hex", "pgx:tic_tac_toe", "pgx:connect_four", "pgx:hex")
    def test_my_stones_are_the_opponents_after_my_move(self, played: Record) -> None:
        mine, theirs = played.planes[:-1, ..., 1], played.planes[1:, ..., 2]
        swapped = played.actions[:-1] == np.prod(played.planes.shape[2:4])
        moved = ~played.over[:-1] & ~swapped
        assert (theirs[moved] >= mine[moved]).all()
        assert ((theirs[moved] != mine[moved]).sum((-2, -1)) == 1).all()
        np.testing.assert_array_equal(played.planes[1:, ..., 1][moved], played.planes[:-1, ..., 2][moved])

    @only("hironaka")
    def test_hironakas_agent_sees_the_subset(self, game: Game, played: Record) -> None:
        dimension = game.options.dimension
        for t, g in sample(played, 40):
            chosen = notes_of(game.render(played.state(t, g)))["chosen"]
            subset = [f"{k}" in chosen for k in range(dimension)]
            assert (chosen == "none") == (played.to_play[t, g] == 0)
            assert played.scalars[t, g, -dimension - 1 : -1].tolist() == subset


READABLE = (*SYMBOLS, "hironaka", "chess", "minichess")
UNREADABLE = tuple(case.name for case in [*CASES, *SLOW] if case.name not in READABLE)


class TestText:
    @only(*UNREADABLE)
    def test_a_game_that_reads_no_text_says_so(self, game: Game, played: Record) -> None:
        with pytest.raises(ValueError, match=f"{game.name}: positions cannot be read"):
            game.from_text(game.render(played.state(0, 0)))

    @only(*READABLE)
    def test_positions_can_be_read_back(self, game: Game, played: Record) -> None:
        # Two passes end a game of Go, and repetitions one of chess: what was played before is not part of the text.
        moments = sample(played, 4, over=False if game.name in PAST else None)
        texts = [game.render(played.state(t, g)) for t, g in moments]
        states = [game.from_text(text) for text in texts]
        assert [game.render(state) for state in states] == texts
        batch = played.over.shape[1]
        again = record(game, jax.tree.map(lambda *leaves: np.resize(leaves, (batch, *leaves[0].shape)), *states))
        for n, (t, g) in enumerate(moments):
            expected = played.legal[t, g].copy()
            if game.name == "go":  # nor is the past that superko looks at
                ko = played.states.ko[t, g]
                expected[:-1] |= played.planes[t, g, ..., 6].reshape(-1) & (np.arange(game.num_actions - 1) != ko)
            np.testing.assert_array_equal(again.legal[0, n], expected)
            assert again.to_play[0, n] == played.to_play[t, g]
            assert again.over[0, n] == played.over[t, g]
            np.testing.assert_array_equal(again.planes[0, n, ..., :3], played.planes[t, g, ..., :3])

    @only(*READABLE)
    def test_damaged_text_is_refused(self, game: Game, played: Record) -> None:
        t, g = sample(played, 1, over=False)[0]
        text = game.render(played.state(t, g))
        last_value = text.rindex(":") + 2
        for prefix in (text[:end] for end in range(last_value)):
            with pytest.raises(ValueError, match=game.name):
                game.from_text(prefix)
        for damaged in damages(text):
            try:
                game.render(game.from_text(damaged))
            except ValueError as error:
                assert game.name in str(error)  # noqa: PT017


def damages(text: str) -> Iterator[str]:
    """The text with a character replaced, a line lost, doubled or exchanged with the next."""
    rng = random.Random(0)
    for _ in range(30):
        at = rng.randrange(len(text))
        yield text[:at] + rng.choice("xoXO.19:-{ \nü") + text[at + 1 :]
    lines = text.splitlines()
    for n in range(len(lines)):
        yield "\n".join(lines[:n] + lines[n + 1 :])
        yield "\n".join(lines[: n + 1] + lines[n:])
        yield "\n".join(lines[:n] + lines[n : n + 2][::-1] + lines[n + 2 :])


@pytest.mark.parametrize("ko", ["simple", "positional", "situational"])
@pytest.mark.parametrize(("size", "limit"), [(9, 400), (19, 1200)])
def test_a_node_of_go_is_small(size: int, limit: int, ko: str) -> None:
    game = make("go", size=size, ko=ko)
    node, _ = jax.eval_shape(lambda key: game.split(game.init(key)), jax.random.key(0))
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(node)) <= limit
