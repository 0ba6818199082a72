from pathlib import Path

import pytest

from tengen.commands import main
from tests.helpers.networks import untrained


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return untrained(tmp_path_factory.mktemp("nets") / "noughts", "tic_tac_toe", heads=("moves_left",)).path


def test_a_person_plays(net: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    typed = iter(["b2", "quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    words = ["play", str(net), "--as", "random", "--seed", "3", "--visits", "30", "--leaves", "2", "--slots", "256"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "against noughts" in out
    assert out.endswith("Goodbye.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "size=4"], "size"),
        (["--set", "nonsense"], "expected section.key=value"),
        (["--set", "a.b=1"], "expected --set KEY=VALUE"),
        (["--as", "third"], "third"),
        (["--visits", "none"], "visits"),
    ],
)
def test_wrong_options_are_named(net: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", str(net), *words]) == 2
    assert message in capsys.readouterr().err
