"""What every game promises: the contract of `tengen.games.core`, tested in the same way for all of them."""

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen.games.core import Game, Symmetry
from tests.helpers.game_recording import Record, alone, jit, make, record, start


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
    Case("othello"),
    Case("hex", {"size": 4, "swap": True}),
    Case("go", {"size": 5, "ko": "positional", "suicide": True}),
    Case("hironaka", {"dimension": 3}),
    Case("pgx:tic_tac_toe"),
]
SLOW = [
    Case("go", {"size": 5, "ko": "simple"}),
    Case("go", {"size": 9}, batch=8),
    Case("hironaka", {"dimension": 2, "reposition": True, "rescale": False}),
    Case("pgx:connect_four"),
    Case("hex", {"size": 5, "swap": False}),
    Case("go", {"size": 5, "ko": "positional"}),
    Case("go", {"size": 5, "ko": "situational"}),
    Case("hex", {"size": 13, "swap": True}, batch=16),
    Case("go", {"size": 19, "max_moves": 100}, batch=4),
    Case("hironaka", {"dimension": 4, "max_points": 10}),
    Case("pgx:othello"),
    Case("pgx:hex", batch=16),
    Case("pgx:animal_shogi", {"max_moves": 40}, batch=16),
    Case("pgx:gardner_chess", {"max_moves": 40}, batch=8),
    Case("pgx:chess", {"max_moves": 40}, batch=8),
]
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


def sample(played: Record, count: int, over: bool | None = None, seed: int = 0) -> list[tuple[int, int]]:
    """Some (moment, game) of the record: starts, middles and ends; `over` picks finished or running ones."""
    last = len(played.over) - 1
    games = range(played.over.shape[1])
    moments = [(min(t, last), g) for g in games for t in range(played.length(g) + 1)]
    moments = [at for at in moments if over is None or played.over[at] == over]
    random.Random(seed).shuffle(moments)
    return moments[:count]


def same(one: Any, other: Any) -> None:
    """The same tree of arrays: shapes, types and values."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)


def choose(first: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """[B, ...] of the one where `first` Bool[B] says so, otherwise of the other."""
    return np.where(first.reshape(-1, *[1] * (one.ndim - 1)), one, other)


def cells_of(text: str, shape: tuple[int, int]) -> np.ndarray:
    """[H, W] the characters of a rendered board."""
    return np.array([line.split()[1:] for line in text.splitlines()[1 : shape[0] + 1]])


def notes_of(text: str) -> dict[str, str]:
    """The `key: value` lines under a rendered position."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


class TestRules:
    def test_shapes_and_types(self, case: Case, game: Game) -> None:
        key = jax.random.key(0)
        state = jax.eval_shape(game.init, key)
        after = jax.eval_shape(game.step, state, jax.ShapeDtypeStruct((), np.int32))
        assert jax.tree.map(str, after) == jax.tree.map(str, state)
        legal, (planes, scalars), over, returns = jax.eval_shape(game.look, state)
        found = {
            "legal": legal, "planes": planes, "scalars": scalars, "is_over": over, "returns": returns,
            "to_play": jax.eval_shape(game.to_play, state),
        }  # fmt: skip
        assert {what: (value.shape, str(value.dtype)) for what, value in found.items()} == {
            "legal": ((game.num_actions,), "bool"),
            "planes": (game.planes_shape, "bool"),
            "scalars": ((game.num_scalars,), "float32"),
            "is_over": ((), "bool"),
            "returns": ((2,), "float32"),
            "to_play": ((), "int32"),
        }
        assert set(jax.eval_shape(game.final_targets, state)) == set(game.extra_targets)
        assert game.name == case.name
        assert type(game.version) is int
        assert isinstance(game.options, game.Options)

    def test_a_batch_plays_as_its_games_do_alone_and_look_is_all_its_parts(self, game: Game, played: Record) -> None:
        for g in (0, 1):
            state, moves = played.state(0, g), min(played.length(g) + 1, len(played.over) - 1)
            for t in range(moves):
                state, look, to_play, targets = alone(game)(state, played.actions[t, g])
                same(state, played.state(t + 1, g))
                seen = (look.legal, *look.observation, to_play, look.over, look.returns, targets)
                same(seen, jax.tree.map(lambda leaf: leaf[t + 1, g], tuple(played[2:])))

    def test_step_and_look_is_step_then_look(self, game: Game, played: Record) -> None:
        program = jit(game.step_and_look)
        seen = (played.states, played.legal, (played.planes, played.scalars), played.over, played.returns)
        for t in sorted({0, 1, len(played.over) // 3, len(played.over) // 2, len(played.over) - 2}):
            now, then = (jax.tree.map(lambda leaf, t=t: leaf[t], seen) for t in (t, t + 1))
            stay = np.random.default_rng(t).random(len(played.actions[t])) < 0.3
            expected = jax.tree.map(partial(choose, stay), now, then)
            found = program(now[0], played.actions[t], stay)
            same(jax.tree.leaves(found), jax.tree.leaves(expected))

    def test_random_games_end_within_max_moves(self, case: Case, game: Game, played: Record) -> None:
        for seed in (2, 3, None):
            games = played if seed is None else record(game, start(game, case.batch, seed), seed)
            assert not games.over[0].any()
            assert games.over[game.max_moves].all()

    def test_something_is_legal_exactly_while_the_game_runs(self, played: Record) -> None:
        np.testing.assert_array_equal(played.legal.any(-1), ~played.over)

    def test_a_finished_game_does_not_change(self, played: Record) -> None:
        ended = played.over[:-1]
        assert ended.any()
        jax.tree.map(lambda leaf: np.testing.assert_array_equal(leaf[1:][ended], leaf[:-1][ended]), played.states)

    def test_returns_are_zero_sum_and_zero_before_the_end(self, game: Game, played: Record) -> None:
        assert (played.returns.sum(-1) == 0).all()
        assert (np.abs(played.returns) <= 1).all()
        assert (played.returns[~played.over] == 0).all()
        assert (played.returns[played.over] != 0).any() or game.name == "pgx:chess"  # 40 random moves rarely win

    def test_two_players_move(self, played: Record) -> None:
        assert (played.to_play[0] == 0).all()
        assert set(np.unique(played.to_play)) == {0, 1}

    def test_the_first_plane_is_the_board(self, played: Record) -> None:
        assert played.planes[..., :1].all()

    def test_the_scalars_are_finite(self, played: Record) -> None:
        assert np.isfinite(played.scalars).all()


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


class TestSymmetries:
    def test_they_are_a_group_of_permutations(self, game: Game) -> None:
        every = np.arange(game.num_actions)
        tables = [symmetry.actions for symmetry in game.symmetries]
        assert (tables[0] == every).all()
        assert len({symmetry.name for symmetry in game.symmetries}) == len(tables)
        for symmetry in game.symmetries:
            assert (symmetry.actions.shape, symmetry.actions.dtype) == ((2, game.num_actions), np.int32)
            for player in (0, 1):
                there, back = symmetry.actions[player], symmetry.inverse[player]
                np.testing.assert_array_equal(np.sort(there), every)
                np.testing.assert_array_equal(there[back], every)
                np.testing.assert_array_equal(back[there], every)
        known = {table.tobytes() for table in tables}
        assert len(known) == len(tables)
        for one in tables:
            for other in tables:
                assert np.take_along_axis(one, other, axis=1).tobytes() in known

    def test_policies_move_with_actions(self, game: Game) -> None:
        every, policy = np.arange(game.num_actions), np.arange(game.num_actions) + 0.5
        for symmetry in game.symmetries:
            for player in (0, 1):
                moved = np.asarray(symmetry.policy(jnp.asarray(policy), jnp.int32(player)))
                there = np.asarray(symmetry.action(jnp.asarray(every), jnp.int32(player)))
                np.testing.assert_array_equal(there, symmetry.actions[player])
                np.testing.assert_array_equal(moved[there], policy)

    def test_they_commute_with_step_mask_and_observation(self, game: Game, played: Record) -> None:
        # On a square, one of each kind; test_core.py has all eight by hand.
        for symmetry in game.symmetries[1::3] if game.name == "go" else game.symmetries:
            states = starts_seen_through(game, symmetry, played)
            actions = symmetry.actions[played.to_play, played.actions]
            mirrored = record(game, states, actions=actions)
            np.testing.assert_array_equal(mirrored.to_play, played.to_play)
            np.testing.assert_array_equal(mirrored.over, played.over)
            np.testing.assert_array_equal(mirrored.returns, played.returns)
            legal = np.take_along_axis(played.legal, symmetry.inverse[played.to_play], axis=-1)
            np.testing.assert_array_equal(mirrored.legal, legal)
            np.testing.assert_array_equal(mirrored.planes, on_boards(symmetry, played.planes))
            np.testing.assert_array_equal(mirrored.scalars, with_scalars(symmetry, played.scalars))
            for what, value in played.targets.items():
                expected = on_boards(symmetry, value) if what == "ownership" else value
                np.testing.assert_array_equal(mirrored.targets[what], expected)


def with_scalars(symmetry: Symmetry, values: np.ndarray) -> np.ndarray:
    """[T, B, S] seen through the symmetry."""
    return np.asarray(jax.vmap(jax.vmap(symmetry.scalars))(jnp.asarray(values)))


def on_boards(symmetry: Symmetry, values: np.ndarray) -> np.ndarray:
    """[T, B, H, W, ...] seen through the symmetry."""
    boards: Any = np.moveaxis(values, (2, 3), (0, 1))
    return np.moveaxis(np.asarray(symmetry.board(boards)), (0, 1), (2, 3))


@cache
def _read(game: Game, text: str) -> Any:
    return game.from_text(text)


def starts_seen_through(game: Game, symmetry: Symmetry, played: Record) -> Any:
    """The starting positions seen through the symmetry, made from their text or their points."""
    starts = jax.tree.map(lambda leaf: leaf[0], played.states)
    if symmetry.name == "identity":
        return starts
    if game.name == "hironaka":
        to = symmetry.actions[1, : game.options.dimension]
        return starts._replace(points=starts.points[:, :, np.argsort(to)])
    lines = game.render(played.state(0, 0)).splitlines()  # on a board, all games start alike
    height, width, _ = game.planes_shape
    cells: Any = cells_of("\n".join(lines), (height, width))
    for r, row in enumerate(np.asarray(symmetry.board(cells)), start=1):
        lines[r] = f"{lines[r].split()[0]} {' '.join(row)}"
    state = _read(game, "\n".join(lines))
    return jax.tree.map(lambda leaf, like: np.broadcast_to(leaf, like.shape), state, starts)


READABLE = (*SYMBOLS, "hironaka", "pgx:chess")
UNREADABLE = tuple(case.name for case in [*CASES, *SLOW] if case.name not in READABLE)


class TestText:
    @only(*UNREADABLE)
    def test_a_game_that_reads_no_text_says_so(self, game: Game, played: Record) -> None:
        with pytest.raises(ValueError, match=f"{game.name}: positions cannot be read"):
            game.from_text(game.render(played.state(0, 0)))

    @only(*READABLE)
    def test_positions_can_be_read_back(self, game: Game, played: Record) -> None:
        # Two passes end a game of Go, and what was played before is not part of its text.
        moments = sample(played, 4, over=False if game.name == "go" else None)
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

    @pytest.mark.parametrize("text", ["", "\n\n", "garbage", "to play: x", "\x00\ud7ff", "1 2 3\n" * 30, ":" * 9])
    def test_garbage_is_refused(self, game: Game, text: str) -> None:
        with pytest.raises(ValueError, match=game.name):
            game.from_text(text)


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


class TestActionNames:
    @pytest.fixture
    def at(self, game: Game, played: Record, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], Any]:
        """The state at a moment of a game, with its mask from the record, because compiling takes seconds."""

        def at(t: int, g: int) -> Any:
            monkeypatch.setitem(vars(game), "_legal_actions", lambda state: played.legal[t, g])
            monkeypatch.setattr(game, "is_over", lambda state: played.over[t, g])
            return played.state(t, g)

        return at

    def test_names_of_legal_actions_are_unique_and_understood(
        self, game: Game, played: Record, at: Callable[[int, int], Any]
    ) -> None:
        for t, g in sample(played, 6, over=False):
            state = at(t, g)
            legal = np.flatnonzero(played.legal[t, g]).tolist()
            names = {game.action_name(state, action): action for action in legal}
            assert len({name.lower() for name in names}) == len(legal)
            for name, action in random.Random(t).sample(list(names.items()), min(4, len(names))):
                for spelling in (name, name.upper(), name.lower(), f" {name}\n"):
                    assert game.parse_action(state, spelling) == action

    def test_illegal_names_are_refused(self, game: Game, played: Record, at: Callable[[int, int], Any]) -> None:
        """A move that was legal one move earlier and is not any more: the very one that was played, on a board."""
        for t, g in sample(played, 4, over=False):
            now, before = ((u, g) for u in (t, max(t - 1, 0)))
            legal, old = (
                {game.action_name(played.state(*when), int(a)) for a in np.flatnonzero(played.legal[when])}
                for when in (now, before)
            )
            for name in sorted(old - legal)[:4]:
                with pytest.raises(ValueError, match=rf"^{game.name}: "):
                    game.parse_action(at(t, g), name)

    def test_only_actions_have_names(self, game: Game, at: Callable[[int, int], Any]) -> None:
        for action in (-1, game.num_actions):
            with pytest.raises(ValueError, match=rf"^{game.name}: there is no action {action} here"):
                game.action_name(at(0, 0), action)

    @pytest.mark.parametrize("name", ["", " ", "zz99", "-1", "a0", "nowhere", "{0,99}", "\u2460"])
    def test_unknown_names_are_refused(self, game: Game, at: Callable[[int, int], Any], name: str) -> None:
        with pytest.raises(ValueError, match=rf"^{game.name}: "):
            game.parse_action(at(0, 0), name)

    def test_nothing_is_played_after_the_end(self, game: Game, played: Record, at: Callable[[int, int], Any]) -> None:
        t, g = sample(played, 1, over=True)[0]
        first = game.action_name(played.state(0, g), int(played.legal[0, g].argmax()))
        for name in (first, "nowhere"):
            with pytest.raises(ValueError, match=rf"^{game.name}: "):
                game.parse_action(at(t, g), name)


class TestSearchTrees:
    def test_join_undoes_split(self, game: Game, played: Record) -> None:
        for t, g in sample(played, 4):
            state = played.state(t, g)
            node, kept = game.split(state)
            same(game.join(node, kept), state)

    def test_nodes_can_be_played_on(self, game: Game, played: Record) -> None:
        state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), played.state(0, 0))
        node, _ = jax.eval_shape(game.split, state)
        after = jax.eval_shape(game.step, node, jax.ShapeDtypeStruct((), np.int32))
        assert jax.tree.map(str, after) == jax.tree.map(str, node)
        assert jax.eval_shape(game.look, node).legal.shape == (game.num_actions,)

    @pytest.mark.parametrize("ko", ["simple", "positional", "situational"])
    @pytest.mark.parametrize(("size", "limit"), [(9, 400), (19, 1200)])
    def test_a_node_of_go_is_small(self, size: int, limit: int, ko: str) -> None:
        game = make("go", size=size, ko=ko)
        node, _ = jax.eval_shape(lambda key: game.split(game.init(key)), jax.random.key(0))
        assert sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(node)) <= limit
