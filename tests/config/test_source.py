"""A configuration is found by name or by path, never by chance."""

from pathlib import Path

import pytest

from tengen.config.source import as_config, base_of, find, shipped
from tengen.errors import ConfigError


def problem(config: str | Path) -> str:
    with pytest.raises(ConfigError) as caught:
        find(config)
    (line,) = caught.value.problems
    return line


def test_shipped_names_in_the_order_people_count() -> None:
    names = shipped()
    assert names.index("go5") < names.index("go9") < names.index("go19")
    assert {"tic_tac_toe", "connect_four", "othello", "hex7", "hironaka"} < set(names)


def test_a_name_is_looked_up_and_a_path_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "go9").write_text("mine: 1")
    (tmp_path / "go9.yaml").write_text("mine: 2")
    monkeypatch.chdir(tmp_path)
    assert "mine" not in find("go9").text
    assert find("./go9").text == "mine: 1"
    assert find(Path("go9")).text == "mine: 1"
    assert find("go9.yaml").text == "mine: 2"


def test_a_name_that_nobody_knows() -> None:
    assert problem("go99") == ('"go99": unknown configuration, did you mean go9? (`tengen config list` shows them all)')
    assert "expected one of chess, connect_four, connect_four_gpu, dqn_hironaka2" in problem("")
    assert problem("x" * 5000).startswith('"xxx')


def test_a_file_that_was_taken_for_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").touch()
    monkeypatch.chdir(tmp_path)
    assert problem("mine") == '"mine": for the file of that name write ./mine'


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder.yaml", tmp_path / "file"
    folder.mkdir()
    file.touch()
    assert problem(tmp_path / "none.yaml") == f"{tmp_path}/none.yaml: there is no such file"
    assert problem(folder) == f"{folder}: is a folder, expected a YAML file or a run (a folder with a config.yaml)"
    assert problem(file / "x.yaml").endswith(": cannot be read: Not a directory")
    assert "cannot be read: embedded null" in problem("a\0.yaml")
    file.write_bytes(b"#" * 200_000)
    assert problem(file) == f"{file}: has more than 100000 bytes, expected a configuration"


def test_no_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tengen.files.open_regular", refuse)
    assert problem("secret.yaml") == "secret.yaml: may not be read, ask its owner for permission"


def test_text_must_be_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"a: 1\nb: caf\xe9\n")
    assert problem(file) == f"not UTF-8 text: byte 0xe9 ({file}, line 2)"
    file.write_text("a: 1", "utf-16")
    assert "not UTF-8 text" in problem(file)
    file.write_text("a: é", "utf-8-sig")
    assert find(file).text == "a: é"


def test_a_run_is_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs" / "mine"
    run.mkdir(parents=True)
    assert problem(run) == f"{run}: is a folder, expected a YAML file or a run (a folder with a config.yaml)"
    (run / "config.yaml").write_text("mine: 1")
    for config in (run, str(run), f"{run}/"):
        found = find(config)
        assert (found.text, found.label) == ("mine: 1", f"{run}/config.yaml")
        assert base_of(config, "other") == run
    assert base_of(run, "other", tmp_path / "copy") == tmp_path / "copy"
    assert base_of("go9", "other") == Path("runs", "other")
    assert base_of(run / "config.yaml", "other") == Path("runs", "other")
    monkeypatch.chdir(run.parent)
    assert problem("mine") == '"mine": for the run of that name write ./mine'
    assert as_config(Path("mine")) == "./mine"
    assert find(as_config(Path("mine"))).text == "mine: 1"
    assert as_config(run) == str(run)
