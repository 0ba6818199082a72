"""`tengen config` as a person uses it."""

from pathlib import Path

import pytest

from tengen.commands import main
from tengen.config.source import shipped


def test_list_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "list"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == list(shipped())
    about = head.index("about")
    assert all(row[about - 1] == " " and row[about] != " " for row in rows)


def test_what_show_prints_is_good(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["config", "show", "go9", "--set", "game.size=7", "--set", "game.komi=9"]) == 0
    file = tmp_path / "mine.yaml"
    file.write_text(capsys.readouterr().out)
    assert main(["config", "check", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{file}: good (go, size 7, komi 9.0, ko positional, suicide false, max_moves ")
    assert out.endswith("; b6c96; 4096 games at once)\n")
    assert err == ""


def test_check_prints_all_problems_and_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", "go9", "--set", "game.size=many", "--set", "run.sed=1"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        'game.size: expected a whole number from 2 to 19, got "many" (--set game.size=many)',
        "run.sed: unknown key, did you mean seed? (--set run.sed=1)",
        "go9: 2 problems",
    ]
    assert main(["config", "check", "none.yaml"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "none.yaml: there is no such file",
        "none.yaml: 1 problem",
    ]


def test_show_of_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "g09"]) == 2
    assert "did you mean go9?" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["lst"], ["show"], ["show", "go9", "--set"], ["show", "go9", "extra"]])
def test_arguments_that_make_no_command(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["config", *arguments]) == 2
    assert capsys.readouterr().err.startswith("usage: tengen")
