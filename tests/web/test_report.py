"""The report as a file."""

import json
import re
from pathlib import Path

import pytest

from tengen.commands import main
from tengen.errors import TengenError
from tengen.web import report
from tengen.web.folders import FoundRuns
from tests.helpers.web_runs import HOSTILE, make_run


def content(path: Path) -> dict:
    found = re.search(r'id="page">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_two_runs_in_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "runs" / "one")
    make_run(tmp_path / "runs" / "two", "train.batch=32")
    out = tmp_path / "out" / "report.html"
    assert main(["report", str(tmp_path / "runs"), "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    found = content(out)
    assert [run["id"] for run in found["runs"]] == ["one", "two"]
    assert [run["settings"]["train.batch"] for run in found["runs"]] == [16, 32]
    assert found["runs"][0]["games_embedded"][0]["players"] == ["first", HOSTILE]
    assert found["runs"][0]["disk"]["folders"]["games"] > 0
    assert HOSTILE not in out.read_text()
    assert out.stat().st_size < 500_000


def test_without_games_and_beside_the_run(tmp_path: Path) -> None:
    base = make_run(tmp_path / "run")
    assert main(["report", str(base), "--games", "0"]) == 0
    (run,) = content(base / "report.html")["runs"]
    assert (run["games_embedded"], run["games_of"]) == ([], [])


def test_a_report_is_small_enough_to_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = make_run(tmp_path / "run")
    whole = len(report.make(FoundRuns.of([base])).encode())
    monkeypatch.setattr(report, "LARGEST", whole - 10)
    path = report.write(tmp_path / "small.html", [base])
    assert path.stat().st_size < whole - 10
    assert len(content(path)["runs"][0]["games_embedded"]) == 1  # of two
    path = report.write(tmp_path / "asked.html", [base], report.GAMES + 1)
    assert len(content(path)["runs"][0]["games_embedded"]) == 2


def test_bad_input_is_answered_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "nothing")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    assert "there is no run" in capsys.readouterr().err
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "my.yaml")]) == 2
    assert "my.yaml: expected a name that ends in .html" in capsys.readouterr().err
    assert main(["report", str(tmp_path), "--games", "-1"]) == 2
    assert "expected a whole number from 0 to 1000" in capsys.readouterr().err


def test_a_report_that_fails_does_not_end_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = make_run(tmp_path / "run")

    def fail(*arguments: object) -> None:
        raise TengenError("no space")

    monkeypatch.setattr(report, "make", fail)
    assert report.try_to_write(base) == "the report was not written: no space"
