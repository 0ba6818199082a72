"""Roles have the names of the game's players in files and messages; those of earlier versions are still understood."""

import re
from pathlib import Path
from typing import Any

import pytest

from tengen import games
from tengen.config import render
from tengen.config.loading import from_dict, load_any
from tengen.config.trainers import current_key
from tengen.errors import ConfigError
from tengen.games.tic_tac_toe import TicTacToe
from tengen.schema import to_dict

NAME = "dqn_tic_tac_toe"
X_AND_O: Any = load_any(NAME)


def old_text() -> str:
    """The configuration as earlier versions wrote it."""
    return re.sub(
        r"(?m)^(  )?([xo]):", lambda m: f"{m[1] or ''}{ {'x': 'host', 'o': 'agent'}[m[2]] }:", render(X_AND_O)
    )


def problems(*overrides: str, config: Any = NAME) -> str:
    with pytest.raises(ConfigError) as caught:
        load_any(config, overrides)
    return str(caught.value)


def test_keys_are_the_names_of_the_players() -> None:
    data = to_dict(X_AND_O)
    assert {"x", "o"} <= set(data)
    assert not {"host", "agent"} & {*data, *data["players"]}
    assert data["players"] == {"x": None, "o": "random"}
    assert list(X_AND_O.roles) == ["x", "o"]
    assert from_dict(data) == X_AND_O
    assert load_any(NAME, ["x.batch=7"]).host.batch == 7  # type: ignore[union-attr]


def test_problems_name_the_players() -> None:
    assert problems("x.batch=many").startswith("x.batch: expected a whole number")
    assert problems("players.x=random").startswith("players.x: expected null, because x has a section and learns")
    assert problems("x.net.name=b1c8-go").startswith("x.net.name: ")
    data = to_dict(X_AND_O)
    with pytest.raises(ConfigError, match="players: missing, expected a section with the keys x, o "):
        from_dict({key: value for key, value in data.items() if key != "players"})
    with pytest.raises(ConfigError, match="x: expected a section for x or o, or nobody learns"):
        from_dict({**data, "x": None})
    with pytest.raises(ConfigError, match="o: missing, expected a section .* or null"):
        from_dict({key: value for key, value in data.items() if key != "o"})


def test_names_of_earlier_versions(tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(old_text())
    assert "\nhost:\n" in file.read_text()
    assert load_any(file) == X_AND_O
    assert load_any(file, ["x.batch=7"]) == load_any(file, ["host.batch=7"]) == load_any(NAME, ["host.batch=7"])
    line = file.read_text().splitlines().index("host:") + 1
    file.write_text(old_text().replace("\nhost:\n", "\nhost: 3\nwrong:\n"))
    assert "x: expected a section with the keys net, " in problems(config=file)
    assert f"got 3 ({file}, line {line})" in problems(config=file)
    assert current_key(X_AND_O, ("host", "batch")) == ("x", "batch")
    assert current_key(X_AND_O, ("players", "agent")) == ("players", "o")
    assert current_key(load_any("dqn_hironaka2"), ("host", "batch")) == ("host", "batch")


def test_a_role_under_two_names() -> None:
    data = to_dict(X_AND_O)
    with pytest.raises(ConfigError, match="host: unknown key"):
        from_dict({**data, "host": data["x"]})


def test_another_game_keeps_the_sections() -> None:
    found: Any = load_any(NAME, ["game.name=othello", "dark.batch=7"])
    assert (list(found.roles), found.host.batch, found.players.agent) == (["dark", "light"], 7, "random")
    assert problems("game.name=othelo").count("\n") == 0  # nothing but the name of the game


def test_a_game_of_the_program() -> None:
    found = from_dict({**to_dict(X_AND_O), "game": None})  # the names are those of the program's game
    assert list(found.roles) == ["first", "second"]
    assert from_dict(to_dict(found)) == found


def test_names_that_cannot_be_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    game = TicTacToe(games.make("tic_tac_toe").options)  # `games.make` gives an object that others use, too
    for players, roles in (
        (("South player", "North"), ("south_player", "north")),
        (("белые", "чёрные"), ("first", "second")),
        (("solver",), ("solver",)),
    ):
        game.players = players
        assert game.roles == roles
    monkeypatch.setattr(TicTacToe, "players", ("run", "goal"))  # keys of other sections
    assert list(X_AND_O.roles) == ["host", "agent"]
    assert from_dict(to_dict(X_AND_O)) == X_AND_O


def test_a_game_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TicTacToe, "players", ("solver",))
    data = to_dict(X_AND_O)
    old = {**data, "host": data["solver"], "agent": None, "players": {"host": None, "agent": None}}
    del old["solver"]
    found = from_dict(old)
    assert list(found.roles) == ["solver"]
    assert to_dict(found)["players"] == {"solver": None}
    assert "o" not in to_dict(found)
    assert from_dict(to_dict(found)) == found
    with pytest.raises(ConfigError, match="agent: unknown key"):
        from_dict({**old, "agent": old["host"]})
