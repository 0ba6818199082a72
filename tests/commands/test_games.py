"""`tengen games`."""

import pytest

from tengen.commands import main


def test_lists_every_game_with_the_options_of_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert listed == [
        "tic_tac_toe",
        "connect_four",
        "othello",
        "hex",
        "go",
        "hironaka",
        "chess",
        "minichess",
        "pgx:NAME",
    ]
    options = [line.split()[:2] for line in lines if line.startswith("    ")]
    for name, default in (
        ("size", "9"),
        ("komi", "7.0"),
        ("ko", "positional"),
        ("suicide", "false"),
        ("swap", "false"),
    ):
        assert [name, default] in options


def test_one_game(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games", "hex"]) == 0
    assert capsys.readouterr().out.startswith("hex  Hex: player 0 connects")


def test_unknown_game(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games", "checkers"]) == 2
    assert "checkers: unknown game" in capsys.readouterr().err
