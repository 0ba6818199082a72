"""Networks reach whoever is to have them: exactly once, whatever happens in between."""

import errno
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tengen.config.settings.data import UploadSettings
from tengen.daemon.uploads import Uploads
from tengen.protocol import messages
from tengen.run import networks
from tests.helpers.daemon_data import chunks, running
from tests.helpers.patience import LONG, eventually
from tests.helpers.upload_receiver import receiving


def network(base: Path, number: int, size: int = 1000) -> str:
    """Something with the name and the file of a network."""
    name = networks.name_of("r", "main", number, number)
    folder = base / "models" / name
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(f"{number}".encode() * size)
    (folder / "made.json").write_text("{}")
    return name


class Said:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, level: str, text: str) -> None:
        self.lines.append(f"{level}: {text}")


def http(address: str, **more: object) -> UploadSettings:
    return UploadSettings(**{"kind": "http", "target": address, "first_pause": 0.02, "timeout": LONG, **more})


def waiting(base: Path) -> list[str]:
    return sorted(path.stem for path in (base / "uploads").glob("*.json"))


def arrived(base: Path) -> list[str]:
    return sorted(path.stem for path in (base / "uploads" / "done").glob("*.json"))


def send(base: Path, settings: UploadSettings, *names: str) -> Said:
    """Until all of them are done."""
    said = Said()
    with Uploads(base, settings, said) as uploads:
        for name in names:
            uploads.put(name)
        eventually(lambda: all(uploads.state(name) == "done" for name in names), said.lines)
    return said


def test_a_server_that_fails_cuts_off_and_forgets_to_answer(tmp_path: Path) -> None:
    name = network(tmp_path, 1, 3_000_000)
    with receiving("fail", "cut", "refuse", "lose") as receiver:
        said = send(tmp_path, http(receiver.address + "/nets"), name)
    place = f"/nets/{name}.safetensors"
    assert receiver.stored == {place: b"1" * 3_000_000}
    assert receiver.accepted[place] == 1  # it was asked again, and said that it had it
    assert receiver.asked == [place] * 5
    failed = [line for line in said.lines if "could not" in line]
    assert len(failed) == 4
    assert "answered 500 Internal Server Error: try again later; again in 0.02 s" in failed[0]
    assert "again in 0.04 s" in failed[1]
    assert waiting(tmp_path) == []
    assert arrived(tmp_path) == [name]


def test_a_server_that_stalls_is_asked_again(tmp_path: Path) -> None:
    name = network(tmp_path, 1)
    said = Said()
    with receiving(*["stall"] * 2) as receiver:
        # The second time it may well be silent for longer than this, too.
        with Uploads(tmp_path, http(receiver.address, timeout=0.1), said) as uploads:
            uploads.put(name)
            eventually(lambda: len(receiver.asked) >= 2)
            assert "was silent for 0.1 s; again in 0.02 s" in said.lines[0]
        receiver.plan.clear()
        send(tmp_path, http(receiver.address), name)
    assert arrived(tmp_path) == [name]


def test_a_token_from_the_environment_that_nobody_gets_to_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = network(tmp_path, 1)
    with receiving(token="secret-42") as receiver:
        settings = http(receiver.address + "/{name}.bin?run=r", token_variable="TENGEN_TEST_TOKEN")
        said = Said()
        with Uploads(tmp_path, settings, said) as uploads:
            uploads.put(name)
            eventually(lambda: "TENGEN_TEST_TOKEN is not set" in uploads.state(name))
            monkeypatch.setenv("TENGEN_TEST_TOKEN", "secret\n42")
            eventually(lambda: "odd characters" in uploads.state(name))
            monkeypatch.setenv("TENGEN_TEST_TOKEN", "secret-43")
            eventually(lambda: "answered 403" in uploads.state(name))
            monkeypatch.setenv("TENGEN_TEST_TOKEN", "secret-42")
            eventually(lambda: uploads.state(name) == "done")
    assert list(receiver.stored) == [f"/{name}.bin?run=r"]
    assert "secret" not in "".join(said.lines)


def test_nothing_is_lost_and_nothing_is_sent_twice_over_restarts(tmp_path: Path) -> None:
    names = [network(tmp_path, number) for number in range(1, 4)]
    said = Said()
    with Uploads(tmp_path, http("http://127.0.0.1:9"), said) as uploads:  # nobody is there
        for name in names:
            uploads.put(name)
        eventually(lambda: all("failed" in uploads.state(name) for name in names))
    assert waiting(tmp_path) == sorted(names)
    (tmp_path / "uploads" / "notes.txt").write_text("mine")
    (tmp_path / "uploads" / f"{networks.name_of('r', 'main', 9, 9)}.json").write_text("{}")  # never made
    with receiving() as receiver:
        send(tmp_path, http(receiver.address), *names)
        assert [path.split("-s")[1][0] for path in receiver.asked] == ["1", "2", "3"]  # in the order of training
        send(tmp_path, http(receiver.address), *names)
        assert len(receiver.asked) == 3
    assert arrived(tmp_path) == sorted(names)
    assert waiting(tmp_path) == []


def test_the_end_does_not_wait_for_a_receiver_that_stalls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tengen.daemon.uploads._PATIENCE", LONG)
    name = network(tmp_path, 1)
    with receiving("stall") as receiver:
        with Uploads(tmp_path, http(receiver.address, timeout=10 * LONG), Said()) as uploads:
            uploads.put(name)
            eventually(lambda: receiver.asked and uploads.state(name) == "uploading")
        assert not uploads._thread.is_alive(), "the end has ended the upload"
        assert waiting(tmp_path) == [name]
        send(tmp_path, http(receiver.address), name)
        assert len(receiver.asked) == 2


def test_copies_appear_whole_and_one_that_is_there_is_kept(tmp_path: Path) -> None:
    names = [network(tmp_path, number) for number in (1, 2)]
    target = tmp_path / "out" / "nets"
    (target / names[1]).mkdir(parents=True)  # by a daemon that was killed before it could say so
    (target / f".{names[0]}.0123.part").mkdir()
    send(tmp_path, UploadSettings(kind="copy", target=str(target)), *names)
    assert sorted(path.name for path in target.iterdir()) == sorted(names)
    assert sorted(path.name for path in (target / names[0]).iterdir()) == ["made.json", "model.safetensors"]
    assert (target / names[0] / "model.safetensors").read_bytes() == b"1" * 1000


def test_a_directory_that_cannot_be_written_to_is_tried_again(tmp_path: Path) -> None:
    name = network(tmp_path, 1)
    target = tmp_path / "out"
    target.write_text("a file")
    said = Said()
    with Uploads(tmp_path, UploadSettings(kind="copy", target=str(target), first_pause=0.02), said) as uploads:
        uploads.put(name)
        eventually(lambda: "failed" in uploads.state(name))
        target.unlink()
        eventually(lambda: uploads.state(name) == "done")


def test_a_command_has_the_folder_as_argument_and_is_ended_if_it_takes_too_long(tmp_path: Path) -> None:
    name = network(tmp_path, 1)
    script = tmp_path / "send it.py"
    script.write_text(
        "import pathlib, sys, time\n"
        "mode = pathlib.Path(sys.argv[1])\n"
        "if mode.read_text() == 'fail': sys.exit('not now')\n"
        "if mode.read_text() == 'hang': time.sleep(3600)\n"
        "mode.with_name('got').write_text(sys.argv[2])\n"
    )
    mode = tmp_path / "mode"
    mode.write_text("hang")
    command = f"{sys.executable} '{script}' {mode}"
    settings = UploadSettings(kind="command", target=command, first_pause=0.02, timeout=LONG)
    with Uploads(tmp_path, replace(settings, timeout=0.2), Said()) as uploads:
        uploads.put(name)
        eventually(lambda: "took longer than 0.2 s" in uploads.state(name))
    mode.write_text("fail")
    said = Said()
    with Uploads(tmp_path, settings, said) as uploads:
        eventually(lambda: "ended with 1: not now" in uploads.state(name))
        mode.write_text("work")
        eventually(lambda: uploads.state(name) == "done", lambda: said.lines)
    assert (tmp_path / "got").read_text() == str(tmp_path / "models" / name)
    missing = network(tmp_path, 2)
    with Uploads(tmp_path, UploadSettings(kind="command", target="/no/such/program"), said) as uploads:
        uploads.put(missing)
        eventually(lambda: "No such file" in uploads.state(missing))


def test_without_a_receiver_nothing_waits(tmp_path: Path) -> None:
    name = network(tmp_path, 1)
    with Uploads(tmp_path, UploadSettings(), Said()) as uploads:
        uploads.put(name)
        assert uploads.state(name) == ""
    assert not (tmp_path / "uploads").exists()


@pytest.mark.slow
def test_a_daemon_trains_on_while_nobody_takes_its_networks(tmp_path: Path) -> None:
    chunks(tmp_path, 0, 3)
    with receiving(*["stall"] * 2) as receiver:
        more = ("daemon.upload.kind=http", f"daemon.upload.target={receiver.address}", "daemon.upload.timeout=3600.0")
        with running(tmp_path, *more) as (core, told):
            core.post(messages.StartTraining("tic_tac_toe"))
            eventually(lambda: len(told.networks) == 1, told.lines)
            chunks(tmp_path, 3, 3)
            eventually(lambda: len(told.networks) == 2, told.lines)
            assert core.session.uploads.state(told.networks[0]) == "uploading"
            assert receiver.stored == {}
        receiver.plan.clear()
        with running(tmp_path, *more) as (core, again):
            core.post(messages.StartTraining("tic_tac_toe"))
            eventually(lambda: len(receiver.stored) == 2, again.lines)
            session = eventually(lambda: core.session, again.lines)  # its uploads begin before the daemon knows it
            eventually(lambda: session.uploads.state(told.networks[1]) == "done")
    assert set(receiver.accepted.values()) == {1}
    assert receiver.stored[f"/{told.networks[0]}.safetensors"] == (
        (tmp_path / "models" / told.networks[0] / "model.safetensors").read_bytes()
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_queue_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "uploads").mkdir(mode=0o500)
    with Uploads(tmp_path, http("http://127.0.0.1:9"), Said()) as uploads, pytest.raises(Exception, match="uploads"):
        uploads.put(network(tmp_path, 1))


def test_a_disk_that_does_not_answer_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, known, stale = network(tmp_path, 1), networks.known, [1, 2, 3]

    def sometimes(base: Path, name: str) -> Path | None:
        if stale:
            stale.pop()
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return known(base, name)

    with receiving() as receiver:
        said = Said()
        with Uploads(tmp_path, http(receiver.address), said) as uploads:
            monkeypatch.setattr(networks, "known", sometimes)
            uploads.put(name)
            eventually(lambda: uploads.state(name) == "done", said.lines)
        assert len(receiver.stored) == 1


def test_a_network_that_is_removed_while_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, said = network(tmp_path, 1), Said()
    shutil.move(tmp_path / "models" / name, tmp_path / "gone")
    with receiving() as receiver, Uploads(tmp_path, http(receiver.address), said) as uploads:
        monkeypatch.setattr(uploads, "_next", iter([(name, tmp_path / "models" / name), None]).__next__)
        uploads.put(name)
        uploads._work()
        assert uploads.state(name).startswith("failed (")
        monkeypatch.undo()
        assert uploads._thread.is_alive()
