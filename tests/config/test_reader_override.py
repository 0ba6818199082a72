"""`--set` changes one setting, under the rules of the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.config import load
from tengen.errors import ConfigError


def problems(name: str, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(name, overrides)
    return list(caught.value.problems)


def test_values_are_read_as_in_a_file() -> None:
    config = load("go9", ["game.size=13", "game.komi = 5.5", "game.suicide=true", "run.about=a = b, or so"])
    assert config.game.options.size == 13
    assert config.game.options.komi == 5.5
    assert config.game.options.suicide is True
    assert config.run.about == "a = b, or so"
    assert load("go9", ["run.about='12'"]).run.about == "12"
    assert load("go9", ["game.max_moves=null"]).game.options.max_moves is None


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        (
            "game.size=many",
            'game.size: expected a whole number from 2 to 19, got "many" (--set game.size=many)',
        ),
        ("game.siz=5", "game.siz: unknown key, did you mean size? (--set game.siz=5)"),
        ("gam.size=5", "gam: unknown key, did you mean game? (--set gam.size=5)"),
        (
            "size=5",
            "size: unknown key, expected one of run, game, net, search, selfplay, data, train, shuffle, ring, gate, "
            "cluster, daemon, rating, goal (--set size=5)",
        ),
        (
            "train.optimizer.learning_rate=0",
            "train.optimizer.learning_rate: expected a number from 1e-09 to 100, got 0 "
            "(--set train.optimizer.learning_rate=0)",
        ),
        ("game.size", "expected section.key=value (--set game.size)"),
        ("", "expected section.key=value (--set )"),
        ("=5", "expected section.key=value (--set =5)"),
        ("game.=5", "expected section.key=value (--set game.=5)"),
        ("game.size.x=5", "game.size.x: game.size is not a section (--set game.size.x=5)"),
        (
            "goal={games: 3}",
            "goal: a section cannot be set as a whole, only goal.minutes, goal.games, goal.rows, goal.steps "
            "(--set goal={games: 3})",
        ),
        ("run.seed=", "run.seed: expected a value, or null for none (--set run.seed=)"),
        ("run.seed=*x", 'run.seed: the alias "x" is not supported, write the value (--set run.seed=*x)'),
    ],
)
def test_one_problem_in_one_override(override: str, problem: str) -> None:
    assert problems("go9", override) == [problem]


def test_a_value_that_is_not_yaml() -> None:
    (problem,) = problems("go9", "game.size=[")
    assert problem.startswith("game.size: not valid YAML")
    assert problem.endswith("(--set game.size=[)")


def test_the_same_key_twice() -> None:
    assert problems("go9", "run.seed=1", "run.seed=2") == ["run.seed: given twice (--set run.seed=1, --set run.seed=2)"]


def test_problems_of_the_file_come_first() -> None:
    first, second, third = problems("hex7", "foo", "run.seed=-1", "game.name=tic_tac_toe")[:3]
    assert first.startswith("game.size: unknown key, expected one of name (shipped hex7.yaml, line ")
    assert second.startswith("game.swap: unknown key, expected one of name (shipped hex7.yaml, line ")
    assert third.endswith("(--set run.seed=-1)")


def test_another_game_needs_its_own_options() -> None:
    assert load("tic_tac_toe", ["game.name=othello"]).game.name == "othello"
    assert load("tic_tac_toe", ["game.name=hex", "game.size=5", "game.swap=true"]).game.options.size == 5
    (problem,) = problems("tic_tac_toe", "game.name=hex", "game.size=5")
    assert problem.startswith("game.swap: missing (needed by hex), expected true or false (shipped tic_tac_toe.yaml")


@pytest.mark.parametrize(
    "override",
    [
        "target=https://me:hunter2@example.org/nets",
        "target='https://me:hun ter2@example.org'",
        "target=https://example.org/?token=hunter2",
        "token_variable=hunter-2",
        "token=https://me:hunter2@example.org",
        "kind=https://me:hunter2@example.org",
    ],
)
def test_secrets_are_refused_and_not_repeated(override: str) -> None:
    given = ["daemon.upload.kind=http", "daemon.upload.target=https://example.org", f"daemon.upload.{override}"]
    keys = {text.partition("=")[0]: text for text in given}
    found = "\n".join(problems("tic_tac_toe", *keys.values()))
    assert "daemon.upload" in found
    assert not any(secret in found for secret in ("hunter", "ter2"))


@given(st.text())
def test_any_override_is_taken_or_refused_in_words(text: str) -> None:
    for override in (text, f"run.about={text}", f"{text}=1"):
        try:
            load("tic_tac_toe", [override])
            found: tuple[str, ...] = ()
        except ConfigError as error:
            found = error.problems
        assert all(len(problem.splitlines()) == 1 for problem in found)
