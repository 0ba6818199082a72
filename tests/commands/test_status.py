"""`tengen status` as a person and a program use it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.commands import main


def test_for_people_and_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("")
    assert main(["status", str(tmp_path)]) == 0
    assert "played:   0 rows, 0 games" in capsys.readouterr().out
    assert main(["status", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["rows"], told["run"]) == (1, 0, str(tmp_path))


def test_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'none'}: there is no such folder\n"


def test_it_does_not_wait_for_jax(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("")
    program = "import sys; from tengen.commands import main; main(sys.argv[1:]); sys.exit('jax' in sys.modules)"
    words = [sys.executable, "-c", program, "status", str(tmp_path)]
    assert subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode == 0
