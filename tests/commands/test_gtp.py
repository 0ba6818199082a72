import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.commands import main
from tests.helpers.networks import untrained
from tests.helpers.patience import LONG


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return untrained(tmp_path_factory.mktemp("nets") / "noughts", "tic_tac_toe", heads=("moves_left",)).path


def _typed(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


OPTIONS = ("--visits", "30", "--leaves", "2", "--slots", "256")


def test_answers_come_out_and_into_the_log(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _typed(monkeypatch, b"1 name\r\nplay b \xff\xfe\n2 genmove b\nquit\n3 name\n")
    assert main(["gtp", str(net), *OPTIONS, "--log", str(tmp_path / "log")]) == 0
    out = capsys.readouterr().out
    answers = out.split("\n\n")
    assert answers[0] == "=1 Tengen"
    assert answers[1].startswith("? invalid move")
    assert answers[2].startswith("=2 ")
    assert answers[3:] == ["=", ""]  # nothing after quit
    log = (tmp_path / "log").read_text()
    assert "> 2 genmove b\n" in log
    assert answers[2] in log


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_log_on_a_full_disk_ends_no_game(
    net: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _typed(monkeypatch, b"1 name\n2 genmove b\nquit\n")
    assert main(["gtp", str(net), *OPTIONS, "--log", "/dev/full"]) == 0
    out, err = capsys.readouterr()
    assert out.split("\n\n")[1].startswith("=2 ")
    assert err.count("the log ends here: No space left on device") == 1


def test_the_end_of_the_input_ends_it(
    net: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _typed(monkeypatch, b"lz-analyze b 1")
    assert main(["gtp", str(net), *OPTIONS]) == 0
    assert capsys.readouterr().out.startswith("=\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--visits", "0"], "visits"),
        (["--seconds", "-1"], "seconds"),
        (["--resign", "3"], "resign"),
        (["--leaves", "0"], "leaves"),
        (["--precision", "float8"], "precision"),
        (["--log", "/nowhere/at/all"], "/nowhere/at/all: cannot be written"),
    ],
)
def test_wrong_options_are_named(net: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gtp", str(net), *words]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told


@pytest.mark.parametrize("command", ["gtp", "play"])
def test_what_is_no_network_is_named(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(tmp_path)]) == 2
    assert "neither a network" in capsys.readouterr().err


@pytest.mark.slow
def test_quit_ends_it_while_the_controller_stays(net: Path) -> None:
    words = [sys.executable, "-m", "tengen", "gtp", str(net), *OPTIONS, "--ponder"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"1 genmove b\n2 quit\n")
        process.stdin.flush()
        answers = process.stdout.read().decode()  # to its end, with our side of the pipe still open
        assert process.wait(timeout=LONG) == 0
    assert answers.startswith("=1 ")
    assert answers.endswith("\n\n=2\n\n")
