"""`games.make` and its fellows: the fixed names of games and options, and what is said about wrong ones."""

import dataclasses

import pytest

from tengen import games
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game, NoOptions
from tengen.games.go import GoOptions
from tengen.games.hex import HexOptions
from tengen.games.hironaka import HironakaOptions
from tengen.games.pgx_adapter import PgxOptions


def test_names() -> None:
    assert games.names() == ("tic_tac_toe", "connect_four", "othello", "hex", "go", "hironaka")


@pytest.mark.parametrize("name", games.names())
def test_every_name_makes_a_game_with_the_usual_options(name: str) -> None:
    game = games.make(name)
    assert isinstance(game, Game)
    assert game.name == name
    assert game.options == games.options_class(name)()


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        (
            "go",
            {"size": 9, "komi": 7.0, "ko": "positional", "suicide": False},
            GoOptions(size=9, komi=7.0, ko="positional", suicide=False, max_moves=None),
        ),
        ("go", {"size": 19, "komi": -3, "ko": "simple", "suicide": True, "max_moves": 500}, None),
        ("hex", {"size": 7, "swap": False}, HexOptions(size=7, swap=False)),
        (
            "hironaka",
            {
                "dimension": 3, "max_points": 5, "max_value": 20, "max_moves": 40,
                "reposition": False, "rescale": True,
            },
            HironakaOptions(3, 5, 20, 40, False, True),
        ),
        ("tic_tac_toe", {}, NoOptions()),
        ("connect_four", {}, NoOptions()),
        ("othello", {}, NoOptions()),
        ("pgx:tic_tac_toe", {"max_moves": 5}, PgxOptions(max_moves=5)),
    ],
)  # fmt: skip
def test_the_fixed_names_of_options(name: str, options: dict, expected: object) -> None:
    game = games.make(name, **options)
    given = dataclasses.asdict(game.options)
    assert {key: given[key] for key in options} == options
    assert expected is None or game.options == expected


@pytest.mark.parametrize(
    ("name", "options", "problems"),
    [
        ("go", {"size": 20}, ["size: expected", "19", "got 20"]),
        ("go", {"size": 1}, ["size: expected", "got 1"]),
        ("go", {"size": "nine"}, ["size: expected", 'got "nine"']),
        ("go", {"size": True}, ["size: expected a whole number"]),
        ("go", {"komi": 6.3}, ["komi: expected", "got 6.3"]),
        ("go", {"komi": float("nan")}, ["komi: expected"]),
        ("go", {"ko": "super"}, ["ko: expected", "simple", "positional", "situational"]),
        ("go", {"suicide": 1}, ["suicide: expected", "got 1"]),
        ("go", {"max_moves": 0}, ["max_moves: expected", "got 0"]),
        ("go", {"sise": 9}, ["sise", "size"]),
        ("go", {"size": 30, "komi": 0.25, "ko": "no", "colour": 3}, ["size:", "komi:", "ko:", "colour"]),
        ("hex", {"size": 14}, ["size: expected", "13"]),
        ("hex", {"size": 2, "swap": "yes"}, ["size: expected", "swap: expected"]),
        ("hironaka", {"dimension": 1, "max_points": 1, "max_value": 0}, ["dimension:", "max_points:", "max_value:"]),
        ("tic_tac_toe", {"size": 3}, ["size"]),
        ("othello", {"size": 8}, ["size"]),
        ("pgx:tic_tac_toe", {"size": 3}, ["size"]),
    ],
)
def test_bad_options_are_all_named(name: str, options: dict, problems: list[str]) -> None:
    with pytest.raises(ValueError, match=name) as error:
        games.make(name, **options)
    assert isinstance(error.value, OptionError)
    assert isinstance(error.value, TengenError)  # so the command line prints it without a traceback
    assert [problem for problem in problems if problem not in str(error.value)] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [("chess", ["chess", "pgx:NAME"]), ("Go", ["Go", "go"]), ("othelo", ["othello"]), ("", ["pgx:NAME"]), ("core", [])],
)
def test_unknown_games_are_refused(name: str, words: list[str]) -> None:
    for function in (games.make, games.options_class):
        with pytest.raises(ValueError, match=f"^{name}: ") as error:
            function(name)
        assert [word for word in words if word not in str(error.value)] == []


def test_options_classes() -> None:
    found = {name: games.options_class(name) for name in (*games.names(), "pgx:tic_tac_toe")}
    assert found == {
        "tic_tac_toe": NoOptions, "connect_four": NoOptions, "othello": NoOptions, "hex": HexOptions,
        "go": GoOptions, "hironaka": HironakaOptions, "pgx:tic_tac_toe": PgxOptions,
    }  # fmt: skip
    for options in found.values():
        with pytest.raises(dataclasses.FrozenInstanceError):
            options().size = 3


@pytest.mark.parametrize("name", games.names())
def test_options_hash_and_compare(name: str) -> None:
    assert games.make(name).options == games.make(name).options
    assert len({games.make(name).options, games.make(name).options}) == 1
