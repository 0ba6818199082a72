"""What the policies of searches are worth at recorded positions."""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from benchmarks import targets
from tengen import games, nets
from tengen.config.settings.search import SearchSettings
from tengen.data.records.records import Record, file_name, save_records
from tengen.errors import TengenError
from tengen.nets import saving
from tengen.nets.evaluators import evaluator

GAME = games.make("tic_tac_toe")
#  X X .
#  O O .   X moves: 2 wins at once, 5 draws at least, everything else loses to 5
#  . . .
# The same with O to move after 8: 5 wins.
OPEN = Record.of(GAME, [0, 3, 1, 4, 2], players=("a", "b"), result=1.0)


@pytest.fixture(scope="module")
def evaluate() -> Any:
    return partial(*evaluator(nets.build(nets.spec("b1c8", ()), GAME, nnx.Rngs(0), dtype="float32")))


@pytest.fixture(scope="module")
def states(evaluate: Any) -> Any:
    return targets.positions(GAME, evaluate, [OPEN] * 3, 2, (4, 5))


def test_positions_are_those_after_the_moves_of_a_record(states: Any) -> None:
    legal = np.asarray(jax.vmap(GAME.legal_actions)(states))
    assert legal.shape == (2, 9), "no more than were asked for"
    assert [np.flatnonzero(row).tolist() for row in legal] == [[2, 5, 6, 7, 8]] * 2


def test_games_that_are_too_short_have_no_position(evaluate: Any) -> None:
    with pytest.raises(TengenError, match="no game of tic_tac_toe with .* more than 5 moves"):
        targets.positions(GAME, evaluate, [OPEN], 2, (5, 6))


def test_games_with_other_rules_have_none_either() -> None:
    game, small = games.make("go", size=5), games.make("go", size=4)
    judge = partial(*evaluator(nets.build(nets.spec("b1c8", ()), game, nnx.Rngs(0), dtype="float32")))
    with pytest.raises(TengenError, match="no game of go with the network's rules"):
        targets.positions(game, judge, [Record.of(small, [0, 1, 2, 3], result=1.0)], 2, (1, 2))
    own = Record.of(games.make("go", size=5, komi=0.5), [0, 1, 2, 3], result=1.0)
    states = targets.positions(game, judge, [own], 2, (3, 3))
    assert np.flatnonzero(~np.asarray(jax.vmap(game.legal_actions)(states))[0]).tolist()[:3] == [0, 1, 2]


def test_a_move_is_worth_what_follows_it(evaluate: Any, states: Any) -> None:
    worths = targets.moves_worths(GAME, evaluate, states, 400)
    assert np.isneginf(worths[:, [0, 1, 3, 4]]).all(), "no legal moves"
    assert (worths[:, 2] == 1).all(), "X has won"
    assert (worths[:, [6, 7, 8]] < -0.8).all(), "O wins by 5"
    assert ((worths[:, 5] > -0.5) & (worths[:, 5] < 1)).all()


def test_worths_are_those_of_the_player_who_moves(evaluate: Any) -> None:
    record = Record.of(GAME, [0, 3, 1, 4, 8, 5], players=("a", "b"), result=-1.0)
    states = targets.positions(GAME, evaluate, [record], 1, (5, 5))
    worths = targets.moves_worths(GAME, evaluate, states, 200)
    assert worths[0, 5] == 1, "O has won"
    assert (worths[0, [6, 7]] < -0.8).all(), "X wins by 2"


@pytest.mark.parametrize("algorithm", ["gumbel", "puct"])
def test_a_search_finds_the_winning_move(evaluate: Any, states: Any, algorithm: Any) -> None:
    settings = SearchSettings(algorithm=algorithm, simulations=32, value_scale=1.0, value_range=2.0)
    found = targets.searched(GAME, evaluate, states, settings, seeds=2)
    assert found.target.shape == found.improved.shape == (2, 2, 9)
    for policies in found:
        np.testing.assert_allclose(policies.sum(-1), 1, atol=1e-5)
        assert (policies.argmax(-1) == 2).all()
    if algorithm == "gumbel":
        np.testing.assert_allclose(found.target, found.improved, atol=1e-6)


def test_regret_is_what_a_policy_loses() -> None:
    worths = np.array([[0.5, 0.0, -np.inf], [0.2, 0.4, 0.4]])
    one = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    other = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    found = targets.judged(np.stack([one, other]), worths)
    np.testing.assert_allclose(found.drawn, [0.125, 0.1])
    assert found.likeliest == pytest.approx(0.05)
    assert found.learned == pytest.approx(0.1), "on average the first move has half in the second position"
    assert found.blind == 0
    assert found.entropy == pytest.approx(np.log(2) / 2, abs=1e-6)
    assert found.apart > 0
    assert targets.judged(np.stack([one, one]), worths).apart == pytest.approx(0)
    assert targets.judged(one[None], worths[:, [1, 0, 2]]).blind == 0
    assert targets.judged(np.array([[[0, 1.0, 0]]]), worths[:1]).blind == 1
    assert targets.judged(np.array([[[0, 0, 1.0]]]), worths[1:]).blind == 0, "one of two best moves is enough"
    told = targets.line("it", found, np.array([0.1, 0.1]))
    assert told.startswith("it: drawn 0.1125 +- 0.0088 (0.0125 +- 0.0088), likeliest 0.0500, learned 0.1000, blind 0 %")


def test_the_command_prints_a_line_for_each_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    net = saving.save(nets.build(nets.spec("b1c8", ()), GAME, nnx.Rngs(0)), tmp_path / "net", GAME)
    file = tmp_path / file_name("games", GAME.name)
    save_records(file, [OPEN])
    words = [str(file), str(net), "--config", "tic_tac_toe", "--plies", "3", "3", "--reference", "8"]
    words += ["--search", "short", "simulations=4", "--search", "puct", "algorithm=puct", "simulations=8"]
    monkeypatch.setattr("sys.argv", ["targets.py", *words])
    assert targets.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 position, 6 moves"
    assert [line.split(":")[0] for line in lines[1:]] == [
        "the network",
        *("short, target", "short, improved"),
        *("puct, target", "puct, improved"),
    ]
    monkeypatch.setattr("sys.argv", ["targets.py", *words[:-1], "simulations=none"])
    assert targets.main() == 1
    assert "search.simulations" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--search", "simulations=4"), "expected a different name"),
        (("--search", "a", "--search", "a"), "expected a different name"),
        (("--search", "a", "--plies", "5", "4"), "expected FIRST <= LAST"),
        (("--search", "a", "--seeds", "0"), "--seeds: expected a whole number of at least 1"),
    ],
)
def test_mistakes_are_named(
    words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["targets.py", "games.sgf", "net", "--config", "tic_tac_toe", *words])
    with pytest.raises(SystemExit):
        targets.main()
    assert problem in capsys.readouterr().err
