"""Whatever lies under the name of a file ends quickly, with words, whoever reads it."""

import ast
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tengen
from tengen import config, files
from tengen.config.settings.data import UploadSettings
from tengen.daemon.senders import CopySender, HttpSender
from tengen.data.format import chunk
from tengen.data.records.records import load_records
from tengen.data.shuffle import folders
from tengen.engine.gtp.commands import GtpError
from tengen.engine.gtp.go_commands import _record as load_sgf
from tengen.errors import TengenError
from tengen.files import lock
from tengen.match import match_games, results
from tengen.monitor.totals import TotalsCounter
from tengen.nets import saving
from tengen.roles import replay
from tengen.run import children, config_file, metrics, networks, part_status
from tengen.sweep import folder
from tengen.sweep.folder import SweepFolder

KINDS = ("FIFO", "socket", "folder", "device", "dangling link")


def put(path: Path, kind: str) -> Path:
    """Something of that kind under the name of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:  # its own path may be too long for a socket
            os.chdir(path.parent)
            made.bind(path.name)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to(path.with_name("nowhere"))
    return path


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """A test that waits for a FIFO would wait for ever: SIGALRM ends it, with an error that nothing here expects."""
    import signal

    def ring(*_: object) -> None:
        raise AssertionError("still waiting after a minute")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path.cwd())


# What each reader is given, and how it is read: all of them raise TengenError or GtpError with the reason.
RAISING: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a chunk": ("a.npz", chunk.read_chunk),
    "the meta of a chunk": ("a.npz", chunk.read_meta),
    "a configuration": ("a.yaml", config.load),
    "the configuration of a run": ("config.yaml", lambda path: config_file.check(config.load("go5"), path.parent)),
    "the lock of a run": (".lock", lambda path: locked(path.parent)),
    "games as SGF": ("a.sgf", load_records),
    "games as text": ("a.txt", load_records),
    "an SGF file for GTP": ("a.sgf", load_sgf),
    "a network": ("model.safetensors", saving.read),
    "a network to play with": ("model.safetensors", saving.load),
    "a replay buffer": ("a.safetensors", replay._read),
    "the index of a shuffle": ("index.json", lambda path: folders.Shuffle.load(path.parent)),
    "metrics": ("metrics.jsonl", lambda path: metrics.read(path) if path.exists() else missing()),
    "metrics to be added to": ("metrics.jsonl", lambda path: metrics.Metrics(path.parent).close() or missing()),
    "results of matches": ("results.jsonl", lambda path: results.read(path) if path.exists() else missing()),
    "the games of a match": ("games.jsonl", lambda path: match_games._read(path, 2) if path.exists() else missing()),
    "what a match is": ("about.json", lambda path: match_games._check(path, {"a": 1}) or missing()),
    "the plan of a sweep": ("plan.json", lambda path: SweepFolder(path.parent).open()),
    "a run that is copied": (
        "run/a.json",
        lambda path: folder.copy_run(path.parent, path.parent.parent / "copy") or missing(),
    ),
    "a network that is copied": ("net/model.safetensors", lambda path: copied(path)),
}


def missing() -> None:
    """For those to whom a dangling link is the same as no file, or a folder nothing special, which is no error."""
    raise TengenError("cannot be read: there is nothing")


def locked(base: Path) -> None:
    with lock.locked(base):
        missing()


def copied(path: Path) -> None:
    """An upload passes over what is no file; what arrives without a network is an error of the caller's."""
    CopySender(path.parent.parent / "target").send("net", path.parent)
    assert not (path.parent.parent / "target" / "net" / path.name).exists()
    missing()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", RAISING)
def test_readers_that_say_what_is_wrong(tmp_path: Path, reader: str, kind: str) -> None:
    name, read = RAISING[reader]
    path = put(tmp_path / name, kind)
    with pytest.raises((TengenError, GtpError)) as caught:
        read(path)
    text = str(caught.value)
    if kind in ("FIFO", "socket", "device") and "there is nothing" not in text:
        assert f"is a {kind}, not a regular file" in text


# Readers for which such a file is the same as none: what they tell is told without it.
PASSING: dict[str, tuple[str, Callable[[Path], object]]] = {
    "the last metrics": ("metrics.jsonl", lambda path: metrics.last(path) is None),
    "a verdict": ("verdict.json", lambda path: networks.verdict(path.parent) == {}),
    "notices": ("parts/selfplay-a.json", lambda path: part_status.look(path.parents[1]) == []),
    "the log of a trial": ("a.log", lambda path: children.last_lines(path, 0) == []),
    "chunks to be counted": (
        "selfplay/net/0000000000-a.npz",
        lambda path: TotalsCounter(path.parents[2]).look().chunks == 0,
    ),
    "shuffles": ("shuffled/00000000-01234567/index.json", lambda path: folders.newest(path.parents[2]) is None),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", PASSING)
def test_readers_that_do_without(tmp_path: Path, reader: str, kind: str) -> None:
    name, read = PASSING[reader]
    assert read(put(tmp_path / name, kind))


@pytest.mark.parametrize("kind", ["FIFO", "socket", "device"])
def test_logs_are_not_waited_for(tmp_path: Path, kind: str) -> None:
    log = put(tmp_path / "selfplay.log", kind)
    with pytest.raises(OSError, match="not a regular file"):
        children.launch(["true"], log, "selfplay", {})
    if kind != "device":
        with pytest.raises(TengenError, match="cannot be written"):
            files.open_log(log)


def test_a_log_may_be_a_terminal_or_what_somebody_reads(tmp_path: Path) -> None:
    with files.open_log(Path("/dev/null")) as log:
        log.write("x")
    fifo = put(tmp_path / "log", "FIFO")
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with files.open_log(fifo) as log:
        log.write("hello")
    assert os.read(reading, 10) == b"hello"
    os.close(reading)


def test_an_upload_of_something_else(tmp_path: Path) -> None:
    fifo = put(tmp_path / "model.safetensors", "FIFO")
    with pytest.raises(TengenError, match="is a FIFO"):
        HttpSender(UploadSettings(kind="http", target="http://127.0.0.1:9/")).send("net", fifo.parent)


@pytest.mark.parametrize("kind", ["FIFO", "socket", "device"])
def test_a_folder_for_a_library_to_read(tmp_path: Path, kind: str) -> None:
    (tmp_path / "step" / "state").mkdir(parents=True)
    (tmp_path / "step" / "state" / "a").write_text("a")
    files.check_tree(tmp_path)
    put(tmp_path / "step" / "state" / "b", kind)
    with pytest.raises(files.NotAFile, match=f"is a {kind}"):
        files.check_tree(tmp_path)


def test_ordinary_files(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    link = tmp_path / "link"
    link.symlink_to(path)
    assert files.read_bytes(link) == b"0123456789"
    assert (files.read_bytes(path, 3), files.read_bytes(path, 99)) == (b"012", b"0123456789")
    assert (files.read_end(path, 4), files.read_end(path, 99, 7), files.read_end(path, 2, 99)) == (b"6789", b"789", b"")
    with files.open_to_append(path) as file:
        file.write(b"ab")
    with files.open_to_append(tmp_path / "new", readable=True, mode=0o600) as file:
        file.write(b"x")
        file.seek(0)
        assert file.read() == b"x"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    assert files.read_text(path) == "0123456789ab"


def test_a_file_that_becomes_another_kind_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fifo = put(tmp_path / "a", "FIFO")
    monkeypatch.setattr(os, "stat", lambda path: SimpleNamespace(st_mode=0o100644))  # as it was a moment ago
    with pytest.raises(files.NotAFile, match="is a FIFO"):
        files.open_regular(fifo)


def test_unfinished_files_are_removed_when_they_are_old(tmp_path: Path) -> None:
    old, new, other, folder = (tmp_path / name for name in (".a.1.part", ".b.1.part", "c.part", ".d.1.part"))
    for path in (old, new, other):
        path.write_text("x")
    folder.mkdir()
    (folder / "inside").write_text("x")
    link = tmp_path / ".e.1.part"
    link.symlink_to(folder)
    for path in (old, other, folder):
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    assert sorted(files.remove_parts([tmp_path, tmp_path / "none"])) == [old, folder]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.1.part", ".e.1.part", "c.part"]
    assert set(files.remove_parts([tmp_path], older_than=0)) == {new, link}


# Where files are opened without `tengen.files`, and why that is right.
ALLOWED = {
    "files/__init__.py": "it is this module",
    "data/shuffle/shuffle.py": "makes new files",
    "data/format/chunk.py": "writes into an open zip",
    "data/format/archive.py": "lists the members of an open zip",
    "data/format/katago_writing.py": "writes a zip in memory",
    "cluster/actor.py": "reads arrays in memory",
    "sweep/ray_executor.py": "writes and reads a tar in memory",
    "data/format/tars.py": "reads a tar that is open",
    "config/source.py": "reads what is installed with the package",
    "web/page.py": "reads what is installed with the package",
    "lazy.py": "reads what is installed with the package",
    "gpu/program.py": "reads what is installed with the package",
    "engine/lines.py": "reads the standard input",
    "commands/__init__.py": "opens /dev/null",
    "commands/daemon.py": "opens /dev/null",
    "commands/web.py": "opens a page in a browser",
    "nets/saving.py": "checks a file before safetensors opens it",
}
OPENING = {"open", "read_text", "read_bytes", "safe_open", "load_file", "ZipFile", "fromfile", "memmap"}
OPENERS = {"Image", "np", "numpy"}  # whose `open` and `load` take paths


def opens(tree: ast.AST) -> Iterator[str]:
    """Calls in a module that open files."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function: Any = node.func
        owner = (
            function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
        )
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if owner == "files" or (name == "open" and owner in OWN_OPEN):
            continue
        if name in OPENING or (name == "load" and owner in OPENERS):
            yield f"{owner}.{name}" if owner else name


OWN_OPEN = {"shuffle", "found", "folder", "hall", "service", "self"}  # what is called `open` and opens no file


def test_no_other_module_opens_files() -> None:
    """Everybody else goes through `tengen.files`. This finds calls by their names, so it cannot find all."""
    source = Path(tengen.__file__).parent
    found = {str(path.relative_to(source)): list(opens(ast.parse(path.read_text()))) for path in source.rglob("*.py")}
    assert {name: calls for name, calls in found.items() if calls and name not in ALLOWED} == {}
    assert [name for name in ALLOWED if not found[name]] == []


def test_writes_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_bytes(path, b"one")
    files.write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    files.write_bytes(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="No space"):
            files.write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "models" / "one"

    def write(folder: Path) -> None:
        (folder / "a").write_text("1")
        assert not target.exists()

    files.write_folder(target, write)
    assert (target / "a").read_text() == "1"
    files.write_folder(target, lambda folder: (folder / "b").write_text("2"))
    assert [path.name for path in target.iterdir()] == ["a"], "what is there is kept"

    def fail(folder: Path) -> None:
        (folder / "a").write_text("1")
        raise OSError(28, "No space left on device")

    with pytest.raises(TengenError, match="No space left"):
        files.write_folder(tmp_path / "models" / "two", fail)
    assert [path.name for path in target.parent.iterdir()] == ["one"]
