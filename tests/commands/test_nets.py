"""`tengen nets`."""

import shutil
import sys

import pytest

from tengen import nets
from tengen.commands import main


def test_lists_the_zoo_with_size_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nets"]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert set(nets.names()) < set(rows)
    assert rows["b6c96"][2:] == ["ownership,", "score,", "opponent_policy,", "moves_left"]
    assert rows["mlp3x256"][2:] == ["opponent_policy,", "moves_left"]
    assert all(ending in out for ending in nets.ENDINGS)


def test_one_network_of_a_configuration_without_heads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nets", "b6c96", "--game", "go9", "--heads"]) == 0
    assert capsys.readouterr().out.startswith("b6c96 on go 9x9: 985,251 parameters, 155,508,672 operations")


def test_one_network(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nets", "b2c16-se", "--game", "othello"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("b2c16-se on othello 8x8: ")
    assert "  excite_ratio     8 " in out
    assert "  blocks.2 " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["b2"], '"b2": no network has that name'),
        (["b2c8", "--game", "hironaka"], "hironaka has no board"),
        (["b2c8", "--game", "checkers"], "--game checkers: neither a game (tic_tac_toe, "),
        (["b2c8", "--heads", "scores"], "--heads scores: unknown head, did you mean score?"),
    ],
)
def test_what_cannot_be_shown(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["nets", *arguments]) == 2
    assert capsys.readouterr().err.startswith(message)


def test_what_it_suggests_can_be_typed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/tengen", "nets"])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert main(["nets"]) == 0
    assert "(`.venv/bin/tengen nets " in capsys.readouterr().out
    assert main(["nets", "connect_four"]) == 0
    assert "try it: .venv/bin/tengen play connect_four" in capsys.readouterr().out
