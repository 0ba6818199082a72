"""A configuration is complete and right, or every problem is named with its place."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen.config import ConfigError, load, render, shipped
from tengen.config.source import find

GO5 = """\
run:
  name: mine
  about: a test
  seed: 3
game:
  name: go
  size: 5
  komi: 7
  ko: positional
  suicide: false
  max_moves: null
selfplay:
  games: 8
net:
  name: b2c16
  heads: [ownership, score]
  dtype: float32
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("load") / "mine.yaml"


def problems(file: Path, text: str, *overrides: str) -> list[str]:
    """The problems of a file with this text, without the file's folder."""
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file, overrides)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return [problem.replace(str(file), "mine.yaml") for problem in caught.value.problems]


def problems_or_none(file: Path) -> tuple[str, ...]:
    try:
        load(file)
    except ConfigError as error:
        return error.problems
    return ()


def test_a_good_file(file: Path) -> None:
    file.write_text(GO5)
    config = load(file)
    assert (config.run.name, config.run.about, config.run.seed) == ("mine", "a test", 3)
    assert config.game.name == "go"
    assert config.game.options.size == 5
    assert config.game.options.komi == 7.0
    assert config.game.options.max_moves is None
    assert (config.net.name, config.net.heads, config.net.dtype) == ("b2c16", ("ownership", "score"), "float32")
    assert config.selfplay.games == 8


@pytest.mark.parametrize("name", shipped())
def test_shipped_files_are_exactly_what_show_prints(name: str) -> None:
    config = load(name)
    assert config.run.name == name
    assert find(name).text == render(config)


def test_all_problems_in_the_order_of_the_file(file: Path) -> None:
    text = (
        GO5.replace("seed: 3", "sead: 3\n  name: again")
        .replace("size: 5", "size: many")
        .replace("ko: positional", "ko: super")
        .replace("  games: 8", "  games: 0\nnett:\n  x: 1")
        .replace("dtype: float32", "dtype: float")
    )
    assert problems(file, text) == [
        "run.seed: missing, expected a whole number from 0 to 4294967295 (mine.yaml, line 1)",
        "run.sead: unknown key, did you mean seed? (mine.yaml, line 4)",
        "run.name: given twice, first on line 2 (mine.yaml, line 5)",
        'game.size: expected a whole number from 2 to 19, got "many" (mine.yaml, line 8)',
        'game.ko: expected one of simple, positional, situational, got "super" (mine.yaml, line 10)',
        "selfplay.games: expected a whole number from 1 to 1000000, got 0 (mine.yaml, line 14)",
        "nett: unknown key, did you mean net? (mine.yaml, line 15)",
        'net.dtype: expected one of bfloat16, float32, got "float" (mine.yaml, line 20)',
    ]


def test_a_missing_section(file: Path) -> None:
    assert problems(file, GO5.partition("net:")[0]) == [
        "net: missing, expected a section with the keys name, heads, dtype (mine.yaml)"
    ]


def test_an_empty_section(file: Path) -> None:
    assert problems(file, GO5.replace("  games: 8", "")) == [
        "selfplay: expected a section with the keys games, got null (mine.yaml, line 12)"
    ]


def test_an_unknown_game_says_nothing_about_its_options(file: Path) -> None:
    (problem,) = problems(file, GO5.replace("name: go", "name: gow"))
    assert problem.startswith("game.name: ")
    assert "gow" in problem
    assert problem.endswith("(mine.yaml, line 6)")


@pytest.mark.parametrize("name", ["", "a.b", "a b", "x" * 61, "é", "../up"])
def test_names_that_make_bad_file_names(file: Path, name: str) -> None:
    (problem,) = problems(file, GO5.replace("name: mine", f'name: "{name}"'))
    assert problem.startswith("run.name: expected letters, digits, - and _, at most 60 of them, got ")


def test_about_is_one_line(file: Path) -> None:
    (problem,) = problems(file, GO5.replace("about: a test", 'about: "a\\nb"'))
    assert problem.startswith("run.about: expected one line of text")


def test_a_network_that_does_not_exist(file: Path) -> None:
    (problem,) = problems(file, GO5.replace("b2c16", "b2x16"))
    assert problem.startswith('net.name: "b2x16": no network has that name, expected one like b6c96 ')
    assert problem.endswith("(mine.yaml, line 15)")
    assert problems(file, GO5.replace("ownership, score", "score, score")) == [
        "net.heads: expected each head once, got score, score (mine.yaml, line 16)"
    ]


def test_a_network_that_cannot_play_the_game(file: Path) -> None:
    assert problems(file, GO5.replace("b2c16", "mlp3x256")) == [
        "net.name: go is played on a 5x5 board, expected a tower such as b6c96 (mine.yaml, line 15)"
    ]
    file.write_text(find("othello").text)
    with pytest.raises(ConfigError) as caught:
        load(file, ["net.heads=[moves_left, ownership]"])
    assert caught.value.problems == (
        "net.heads: othello has no ownership to learn from, expected some of opponent_policy, moves_left "
        "(--set net.heads=[moves_left, ownership])",
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [("", "nothing"), ("# x\n", "nothing"), ("go", '"go"'), ("- run", "a list"), ("3", "3")],
)
def test_not_a_configuration_at_all(file: Path, text: str, found: str) -> None:
    assert problems(file, text, "game.size=5") == [
        f"expected the sections run, game, net, selfplay, found {found} (mine.yaml, line 1)"
    ]


def test_what_is_not_yaml_is_the_only_problem(file: Path) -> None:
    assert problems(file, "run: [\n") == [
        "not valid YAML: expected the node content, but found '<stream end>' while parsing a flow node "
        "(mine.yaml, line 2)"
    ]


def test_an_alias_is_reported_once_and_the_rest_still_checked(file: Path) -> None:
    text = GO5.replace("size: 5", "size: *x").replace("games: 8", "games: no")
    assert problems(file, text) == [
        'game.size: the alias "x" is not supported, write the value (mine.yaml, line 7)',
        'selfplay.games: expected a whole number from 1 to 1000000, got "no" (mine.yaml, line 13)',
    ]


def test_every_prefix_is_good_or_refused_in_words(file: Path) -> None:
    text = find("hex7").text
    for length in range(len(text)):
        file.write_text(text[:length])
        assert all(problems_or_none(file))


@given(st.integers(0, len(GO5)), st.integers(0, 12), st.text(max_size=6) | st.sampled_from("{}[]&*!|%@`\"'-?:"))
def test_every_damaged_file_is_good_or_refused_in_words(file: Path, at: int, length: int, text: str) -> None:
    file.write_text(GO5[:at] + text + GO5[at + length :], "utf-8")
    assert all(len(problem.splitlines()) == 1 for problem in problems_or_none(file))


@given(st.binary(max_size=60))
def test_every_garbage_is_refused_in_words(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(ConfigError):
        load(file)
