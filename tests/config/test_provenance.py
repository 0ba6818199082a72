"""The lines that say what made a run, wherever the code runs from."""

import platform
import re
import subprocess
from pathlib import Path

import pytest

import tengen
from tengen.config import provenance


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with one commit, taken for the one that the code runs from."""
    for command in ("init -q", "-c user.name=x -c user.email=x@y commit -q --allow-empty -m start"):
        subprocess.run(["git", "-C", str(tmp_path), *command.split()], check=True)
    monkeypatch.setattr(provenance, "_CHECKOUT", tmp_path)
    return tmp_path


def test_versions_and_time() -> None:
    first, second, third, *_ = provenance.lines()  # folders of modules follow, if any was imported in this process
    assert first.startswith(f"tengen {tengen.__version__}")
    assert re.fullmatch(rf"python {re.escape(platform.python_version())}, jax [0-9.]+", second)
    assert re.fullmatch(r"written \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", third)


def test_the_commit_and_whether_it_was_changed(checkout: Path) -> None:
    assert re.fullmatch(rf"tengen {tengen.__version__}, commit [0-9a-f]{{40}}", provenance.lines()[0])
    (checkout / "new").touch()
    assert re.fullmatch(rf"tengen {tengen.__version__}, commit [0-9a-f]{{40}}\+changes", provenance.lines()[0])


def test_without_git_or_repository(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert provenance.lines()[0] == f"tengen {tengen.__version__}"
    monkeypatch.setattr(provenance, "_CHECKOUT", checkout / "nowhere")
    assert provenance.lines()[0] == f"tengen {tengen.__version__}"


def test_a_changed_checkout_is_kept_with_the_run(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path_factory.mktemp("run")
    assert provenance.keep_changes(base) is None
    (checkout / "file").write_text("one\n")
    for command in ("add file", "-c user.name=x -c user.email=x@y commit -q -m file"):
        subprocess.run(["git", "-C", str(checkout), *command.split()], check=True)
    assert provenance.keep_changes(base) is None
    (checkout / "file").write_text("two\n")
    (checkout / "new").touch()
    first = provenance.keep_changes(base)
    assert first is not None
    assert first.read_text().startswith("# not known to git: new\n")
    assert "-one\n+two\n" in first.read_text()
    assert provenance.keep_changes(base) == first
    (checkout / "file").write_text("three\n" * 100)
    monkeypatch.setattr(provenance, "_LARGEST", 200)
    second = provenance.keep_changes(base)
    assert second is not None
    assert len(second.read_bytes()) < 300
    assert len(list((base / provenance.CODE).iterdir())) == 2
