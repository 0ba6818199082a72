"""A run directory has one configuration, which is never silently replaced."""

import os
from pathlib import Path

import pytest

from tengen import files
from tengen.config import load
from tengen.config.problems import ConfigError
from tengen.run.directory import write


def problems(config: str, base: Path, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        write(load(config, overrides), base, ["later"])
    return list(caught.value.problems)


def test_writes_what_can_be_loaded_under_its_provenance(tmp_path: Path) -> None:
    config = load("go9", ["game.komi=5.5"])
    path = write(config, tmp_path / "runs" / "a", ["tengen 1", "python 3"])
    assert path == tmp_path / "runs" / "a" / "config.yaml"
    assert path.read_text().startswith("# tengen 1\n# python 3\n# A complete")
    assert load(path) == config
    assert [file.name for file in path.parent.iterdir()] == ["config.yaml"]


def test_the_same_configuration_again_leaves_the_file_alone(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, ["first"])
    edited = path.read_text() + "# a note of mine\n"
    path.write_text(edited)
    assert write(load("go9"), tmp_path, ["second"]) == path
    assert path.read_text() == edited


def test_a_run_from_before_a_setting_existed_goes_on(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, ["tengen 0.1.0"])
    old = "".join(line for line in path.read_text().splitlines(True) if not line.startswith("    deadline:"))
    assert old != path.read_text()
    path.write_text(old)
    assert load(path) == load("go9")
    write(load("go9"), tmp_path, ["second"])
    assert path.read_text() == old
    write(load("go9", ["daemon.upload.deadline=60"]), tmp_path, ["third"])
    assert "daemon.upload.deadline: 3600.0 -> 60.0" in path.read_text()
    mine = tmp_path / "mine.yaml"
    mine.write_text(old.removeprefix("# tengen 0.1.0\n"))  # not written by a run: nothing is filled in
    with pytest.raises(ConfigError, match=r"daemon\.upload\.deadline: missing"):
        load(mine)


def test_another_configuration_is_refused_key_by_key(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, [])
    before = path.read_bytes()
    assert problems("go9", tmp_path, "game.size=13", "run.seed=7", "train.loss.policy=0.5") == [
        "run.seed: 1 -> 7",
        "game.size: 9 -> 13",
        "train.loss.policy: 1.0 -> 0.5",
        f"{path}: this run has other settings; keep to them (CONFIG may be this file), or choose another --base",
    ]
    assert "game.swap: (none) -> true" in problems("hex7", tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"\xff", b"run: [", b"run: {name: x}"])
def test_a_damaged_configuration_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    *_, advice = problems("go9", tmp_path)
    assert advice == (f"{path}: the configuration of this run cannot be used; put it right, or choose another --base")
    assert path.read_bytes() == content


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    assert problems("go9", tmp_path)[0].endswith("expected a YAML file or a run (a folder with a config.yaml)")


def test_the_base_is_a_file(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.write_text("precious")
    for path in (base, base / "below"):
        (problem,) = problems("go9", path)
        assert problem.startswith(f"{path}: is a file or lies below one")
    assert base.read_text() == "precious"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied"), "may not be written to"),
        (OSError(28, "No space left on device"), "cannot be written to: No space left on device"),
    ],
)
def test_what_the_disk_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, words: str) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(files, "write_bytes", fail)
    (problem,) = problems("go9", tmp_path)
    assert problem.startswith(f"{tmp_path}: {words}")
    assert os.listdir(tmp_path) == []
