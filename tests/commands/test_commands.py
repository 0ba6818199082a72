"""The command line as a whole: help, exit codes, and no traceback for what a user can put right."""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tengen
from tengen.commands import config, main, make_parser
from tengen.errors import TengenError


def run(*arguments: str, cwd: Path | None = None, **options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tengen", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | options,
        cwd=cwd,
    )


def test_alone_it_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in ("config", "games", "bench"))


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tengen {tengen.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["confg"], '"confg": unknown command, did you mean config?'),
        (["xyz"], '"xyz": unknown command, expected one of run, '),
        (["config", "lst"], '"lst": unknown action, did you mean list?'),
        (["--vers"], "unrecognized arguments: --vers"),
    ],
)
def test_misspelt_commands(capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str) -> None:
    assert main(arguments) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [(TengenError("put it right"), 2, "put it right\n"), (KeyboardInterrupt(), 130, "")],
)
def test_errors_for_people(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    printed: str,
) -> None:
    def fail(args: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(config, "run_list", fail)
    assert main(["config", "list"]) == code
    assert capsys.readouterr() == ("", printed)


def test_as_a_process() -> None:
    good = run("config", "show", "go9", "--set", "run.about=日本", PYTHONIOENCODING="ascii")
    assert (good.returncode, good.stderr) == (0, "")
    assert r'about: "\u65e5\u672c"' in good.stdout
    bad = run("config", "show", "go9", "--set", "game.size=x")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "Traceback" not in bad.stderr


def test_help_does_not_wait_for_jax() -> None:
    program = "import sys; from tengen.commands import main; main(['--help']); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=False).returncode == 0


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of all commands below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


PARSERS = {parser.prog: parser for parser in parsers(make_parser())}


def test_all_commands_are_seen() -> None:
    assert {"tengen", "tengen run", "tengen config show", "tengen bench games", "tengen uci"} <= set(PARSERS)


@pytest.mark.parametrize("name", PARSERS)
def test_every_help_has_a_description_and_an_example_that_can_be_typed(name: str) -> None:
    parser = PARSERS[name]
    assert len((parser.description or "").split()) >= 5
    assert parser.description is not None
    assert parser.description.endswith((".", ")"))
    heading, *examples = (parser.epilog or "").split("\n")
    assert heading == "example:"
    assert examples
    for example in examples:
        line, redirected, _ = example.partition(" > ")
        program, *words = shlex.split(line)
        assert program == "tengen"
        assert " ".join([program, *words]).startswith(name)
        assert "run" in PARSERS["tengen"].parse_args(words), "it does something"
        assert f"  {line.strip()}{redirected}" in parser.format_help()


@pytest.mark.parametrize("arguments", [["config", "show", "go9"], ["--help"], ["config", "check", "no.yaml"]])
def test_a_reader_that_has_seen_enough(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [sys.executable, "-m", "tengen", *arguments],
        stdout=writing,
        stderr=writing if arguments[-1] == "no.yaml" else subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert process.returncode in (0, 141)  # 0: argparse did not care
    assert not process.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "tic_tac_toe"],
        pytest.param(["run", "tic_tac_toe", "--mode", "async"], marks=pytest.mark.slow),
        pytest.param(["selfplay", "tic_tac_toe"], marks=pytest.mark.slow),
        pytest.param(["bench", "games", "tic_tac_toe"], marks=pytest.mark.slow),
    ],
)
def test_a_device_that_is_not_there(tmp_path: Path, arguments: list[str]) -> None:
    found = run(*arguments, cwd=tmp_path, JAX_PLATFORMS="nonsense")
    assert found.returncode == 2
    (line,) = found.stderr.splitlines()
    assert line.startswith("JAX_PLATFORMS=nonsense: JAX cannot use that device: ")
    assert line.endswith("; unset JAX_PLATFORMS, or set it to cpu")
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize(
    "words",
    [
        "run tic_tac_toe --mode sync",
        "run tic_tac_toe --mode async",
        "run tic_tac_toe --mode cluster",
        "match random mcts:2 --game tic_tac_toe",
        "rho random",
        "sweep tic_tac_toe --grid train.lr=0.1,0.01 --steps 10",
        "games tic_tac_toe --check",
        "estimate tic_tac_toe",
        "play connect_four",
    ],
)
def test_no_device_is_found_before_anything_is_written_or_said(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import jax

    from tengen import jax_setup

    def fail(*_: object) -> Any:
        raise AssertionError

    def fail_elsewhere() -> Any:
        raise TengenError(jax_setup.device_problem())

    monkeypatch.setattr(jax, "devices", fail)
    monkeypatch.setattr(jax_setup, "devices_elsewhere", fail_elsewhere)
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    found = capsys.readouterr()
    assert found.err.startswith("JAX_PLATFORMS=cuda: JAX cannot use that device")
    assert found.out == ""
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize("error", [AssertionError(), RuntimeError("Unable to initialize backend")])
def test_only_the_device_is_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    """JAX gives different errors, of which one is empty, so it is asked again whether it has a device."""
    import jax

    def fail(*_: object) -> object:
        raise error

    monkeypatch.setattr(config, "run_list", fail)
    with pytest.raises(type(error)):
        main(["config", "list"])
    monkeypatch.setattr(jax, "devices", fail)
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    assert main(["config", "list"]) == 2
    assert capsys.readouterr().err.startswith("JAX_PLATFORMS=cuda: JAX cannot use that device")
