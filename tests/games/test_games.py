"""`games.make` and its fellows: the fixed names of games and options, and what is said about wrong ones."""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tengen import games
from tengen.commands import main
from tengen.config import ConfigError, load
from tengen.config.source import find
from tengen.errors import OptionError, TengenError
from tengen.games import contract
from tengen.games.chess import ChessOptions
from tengen.games.connect_four import ConnectFourOptions
from tengen.games.core import Game, NoOptions
from tengen.games.go import GoOptions
from tengen.games.hex import HexOptions
from tengen.games.hironaka import HironakaOptions
from tengen.games.minichess import MinichessOptions
from tengen.games.pgx_adapter import PgxOptions


def test_names() -> None:
    assert games.names() == ("tic_tac_toe", "connect_four", "othello", "hex", "go", "hironaka", "chess", "minichess")


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
        ("connect_four", {}, ConnectFourOptions(observation="stones")),
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
    [
        ("checkers", ["checkers", "pgx:NAME"]),
        ("Go", ["Go", "go"]),
        ("othelo", ["othello"]),
        ("", ["pgx:NAME"]),
        ("core", []),
    ],
)
def test_unknown_games_are_refused(name: str, words: list[str]) -> None:
    for function in (games.make, games.options_class):
        with pytest.raises(ValueError, match=f"^{name}: ") as error:
            function(name)
        assert [word for word in words if word not in str(error.value)] == []


def test_options_classes() -> None:
    found = {name: games.options_class(name) for name in (*games.names(), "pgx:tic_tac_toe")}
    assert found == {
        "tic_tac_toe": NoOptions, "connect_four": ConnectFourOptions, "othello": NoOptions, "hex": HexOptions,
        "go": GoOptions, "hironaka": HironakaOptions, "chess": ChessOptions, "minichess": MinichessOptions,
        "pgx:tic_tac_toe": PgxOptions,
    }  # fmt: skip
    for options in found.values():
        with pytest.raises(dataclasses.FrozenInstanceError):
            options().size = 3


@pytest.mark.parametrize("name", games.names())
def test_options_hash_and_compare(name: str) -> None:
    assert games.make(name).options == games.make(name).options
    assert len({games.make(name).options, games.make(name).options}) == 1


# Games of users. A module in the current directory:
OWN = """
from dataclasses import dataclass
from tengen.games.tic_tac_toe import TicTacToe
from tengen.schema import setting


@dataclass(frozen=True)
class OwnOptions:
    points: int = setting(3, "points in a row", low=3, high=3)


class Own(TicTacToe):
    '''My tic-tac-toe.'''

    name = "own"
    Options = OwnOptions


class Broken(Own):
    def returns(self, state):
        return super().returns(state)[:1]


class RaisesAtOnce(Own):
    def __init__(self, options):
        self.size = options.size


NOT_A_GAME = dict
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with games of a user, which is the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("TENGEN_GAMES", raising=False)
    monkeypatch.setattr(games, "_registered", {})
    (tmp_path / "own_games.py").write_text(OWN)
    yield tmp_path
    sys.modules.pop("own_games", None)


def test_a_game_of_a_module_in_the_current_directory(own: Path) -> None:
    game = games.make("own_games:Own", points=3)
    assert game.name == "own_games:Own"  # under which networks and rows find it again
    assert (type(game).__name__, game.options.points) == ("Own", 3)
    assert games.is_name("own_games:Own")
    with pytest.raises(OptionError, match="own_games:Own: points: expected .* got 4"):
        games.make("own_games:Own", points=4)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_games:Broken", r"own_games.py, line 20, in returns: expected float32\[2\], got float32\[1\]"),
        ("own_games:RaisesAtOnce", r"AttributeError: .* \(own_games.py, line 26, in __init__\)"),
        ("own_games:NOT_A_GAME", "dict: expected a class derived from tengen.games.Game"),
        ("own_games:Onw", "Onw: unknown name, did you mean Own"),
        ("own_game:Own", "there is no module own_game"),
    ],
)
def test_mistakes_in_such_a_game(own: Path, name: str, said: str) -> None:
    with pytest.raises(OptionError, match=said) as caught:
        games.make(name)
    assert str(caught.value).startswith(name)


def test_a_registered_game(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from own_games import Own  # type: ignore[import-not-found]

    games.register("my_own", Own)
    games.register("my_own", Own)  # again is no mistake
    assert games.make("my_own").name == "my_own"
    assert "my_own" in games.names()
    # A process that this one starts knows it from the environment.
    monkeypatch.setattr(games, "_registered", {})
    assert isinstance(games.make("my_own"), Own)
    with pytest.raises(OptionError, match="there is a game of this name already"):
        games.register("go", Own)
    for name in ("", "My game", "a:b"):
        with pytest.raises(OptionError, match="expected a name of small letters"):
            games.register(name, Own)
    with pytest.raises(OptionError, match="expected a class derived from"):
        contract.check_class(dict, "dictionary")


def test_games_of_installed_packages(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = own / "own_package-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[tengen.games]\nown = own_games:Own\nlost = own_games:Nowhere\ngo = own_games:Own\n"
    )
    assert games.names()[-2:] == ("own", "lost")
    assert games.make("own").name == "own"
    assert games.game_class("go").__name__ == "Go"  # nobody takes the name of a game that ships
    with pytest.raises(OptionError, match="own_games:Nowhere: .*unknown name"):
        games.make("lost")
    assert main(["games"]) == 0  # the broken one does not hide the others
    told = capsys.readouterr()
    assert "own   My tic-tac-toe." in told.out.replace("own  ", "own   ")
    assert "Nowhere" in told.err


def test_such_a_game_in_a_configuration(own: Path) -> None:
    text = find("tic_tac_toe").text.replace(
        "name: tic_tac_toe  # the game", "name: own_games:Own\n  points: 3  # the game"
    )
    (own / "mine.yaml").write_text(text)
    assert load("mine.yaml").game.options.points == 3
    (own / "mine.yaml").write_text(text.replace("points: 3", "points: 5"))
    with pytest.raises(ConfigError, match=r"game.points: expected .* got 5 \(mine.yaml, line \d+\)"):
        load("mine.yaml")
    (own / "mine.yaml").write_text(text.replace("own_games:Own", "own_games:Broken"))
    with pytest.raises(TengenError, match=r"own_games.py, line 20, in returns: expected float32"):
        load("mine.yaml")
