"""Clients of every kind: good ones, slow ones, stuck ones, and those that send garbage or go away."""

import contextlib
import os
import resource
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tengen.daemon.server import STANDARD, DaemonClient, Server
from tengen.errors import TengenError
from tengen.protocol import messages
from tengen.protocol.messages import decode, encode
from tests.helpers.patience import LONG, eventually

STATUS = messages.TrainingStatus("r", 1.0, messages.ScheduleStatus("IDLE", "x" * 10_000, 0.0, 0, 0, 0, 0.0, 0.0))


class Listening:
    """A server that remembers what it heard."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.logged: list[str] = []
        self.closed = threading.Event()
        self.server = Server(self._hear, lambda level, text: self.logged.append(text), self.closed.set)

    def _hear(self, client: DaemonClient, message: Any) -> None:
        self.heard.append(message)
        client.tell(messages.Log("info", f"heard {type(message).__name__}"))


@pytest.fixture
def listening() -> Iterator[Listening]:
    it = Listening()
    with it.server:
        yield it


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


def connect(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(LONG)
    client.connect(str(path))
    return client


def lines(client: socket.socket) -> Iterator[Any]:
    with client.makefile("rb") as file:
        for line in file:
            yield decode(line)


def test_pipes_garbage_and_half_a_line(listening: Listening) -> None:
    (source, write), (read, sink) = os.pipe(), os.pipe()
    listening.server.add_standard(source, sink)
    with os.fdopen(read, "rb") as told, os.fdopen(write, "wb", buffering=0) as say:
        say.write(
            b'\xff\xfe\n\n{"type": "get_status"}\nnonsense\n{"type":"log","payload":{"level":"info","text":""}}\n'
        )
        say.write(b'{"type": "shut')
        say.close()
        found = [decode(told.readline()) for _ in range(5)]
    assert [type(each).__name__ for each in found] == ["Error", "Log", "Error", "Error", "Error"]
    assert all(each.goes_on and each.where == STANDARD for each in found if isinstance(each, messages.Error))
    assert "nonsense" in found[2].what
    assert "a message from the daemon" in found[3].what
    assert "in the middle of a line" in found[4].what
    assert listening.heard == [messages.GetStatus()]
    assert listening.closed.wait(LONG)
    assert len(listening.logged) == 4


def test_a_closed_output_and_a_missing_one_do_no_harm(listening: Listening) -> None:
    (source, write), (read, sink) = os.pipe(), os.pipe()
    os.close(read)
    listening.server.add_standard(source, sink)
    listening.server.add_standard(None, None)
    for _ in range(3):
        listening.server.tell(STATUS)
    os.write(write, encode(messages.StopTraining()))
    eventually(lambda: listening.heard == [messages.StopTraining()])
    os.close(write)


def test_a_hundred_megabytes_in_one_line(listening: Listening, path: Path) -> None:
    listening.server.listen(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with connect(path) as client:
        block = b"x" * 2**20
        for _ in range(100):
            client.sendall(block)
        client.sendall(b"\n" + encode(messages.StopTraining()))
        answers = lines(client)
        assert "more than" in next(answers).what
        assert next(answers).text == "heard StopTraining"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 40, f"{grown:.0f} MB"


def test_a_socket_is_for_its_owner_alone_and_goes_with_the_server(path: Path) -> None:
    it = Listening()
    with it.server:
        it.server.listen(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(TengenError, match="another daemon"):
            Listening().server.listen(path)
    assert not path.exists()


def test_the_socket_of_a_dead_daemon_makes_way_but_nothing_else_does(listening: Listening, path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    listening.server.listen(path)
    with connect(path) as client:
        client.sendall(encode(messages.ExportNow()))
        assert next(lines(client)).text == "heard ExportNow"
    other = path.with_name("file")
    other.write_text("mine")
    with pytest.raises(TengenError, match="is not a socket"):
        Listening().server.listen(other)
    assert other.read_text() == "mine"
    with pytest.raises(TengenError, match="--listen"):
        Listening().server.listen(path.with_name("x" * 200))


def test_a_socket_that_is_there_can_be_connected_to(
    listening: Listening, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, named = Path.rename, []

    def renamed(self: Path, target: Path) -> Path:
        with connect(self):  # refused if nobody listens yet
            named.append((len(str(self)), os.path.lexists(target)))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", renamed)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path.with_name("~")))  # of a daemon that died before it had its name
    listening.server.listen(path)
    assert named == [(len(str(path)), False)]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    with connect(path):
        pass


def test_clients_come_and_go(listening: Listening, path: Path) -> None:
    listening.server.listen(path)
    clients = [connect(path) for _ in range(5)]
    eventually(lambda: listening.server.clients == 5)
    clients[0].close()
    eventually(lambda: listening.server.clients == 4)
    listening.server.tell(messages.Log("info", "hello"))
    for client in clients[1:]:
        assert next(lines(client)) == messages.Log("info", "hello")
        client.close()
    eventually(lambda: listening.server.clients == 0)


def test_who_has_said_all_still_gets_the_answer(listening: Listening, path: Path) -> None:
    listening.server.listen(path)
    with connect(path) as client:
        client.sendall(encode(messages.GetStatus()))
        client.shutdown(socket.SHUT_WR)
        assert [each.text for each in lines(client)] == ["heard GetStatus"]


def test_a_stuck_client_holds_up_nobody(listening: Listening, path: Path) -> None:
    listening.server.listen(path)
    with connect(path) as stuck, connect(path) as good:
        eventually(lambda: listening.server.clients == 2)
        seen: list[Any] = []
        reader = threading.Thread(target=lambda: seen.extend(lines(good)), daemon=True)
        reader.start()
        for _ in range(2000):
            listening.server.tell(STATUS)
            if len(seen) < 1:
                time.sleep(0.001)
        listening.server.tell(messages.Log("info", "last"))
        eventually(lambda: bool(seen) and seen[-1] == messages.Log("info", "last"))
        # Once it wakes up it is told what it has missed, and what matters more than statuses is still there.
        found = []
        for message in lines(stuck):
            found.append(message)
            if message == messages.Log("info", "last"):
                break
        assert any(isinstance(each, messages.Log) and "were dropped" in each.text for each in found)
        assert len(found) < 1000


def test_closing_does_not_wait_for_a_stuck_client(path: Path) -> None:
    it = Listening()
    it.server.listen(path)
    with connect(path):
        eventually(lambda: it.server.clients == 1)
        for _ in range(600):
            it.server.tell(STATUS)
        it.server.close()  # would never return if it waited
        assert it.server.clients == 0


def test_the_socket_survives_a_lack_of_files(listening: Listening, path: Path) -> None:
    listening.server.listen(path)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)  # before there are too many files
    client.settimeout(LONG)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 8, limit[1]))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(client.fileno()))
        client.connect(str(path))
        eventually(lambda: bool(listening.logged))
    finally:
        for file in taken:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert listening.logged == ["no client can be accepted at the moment: Too many open files"]
    with client:
        client.sendall(encode(messages.ExportNow()))
        assert next(lines(client)).text == "heard ExportNow"
    with connect(path) as another:
        another.sendall(encode(messages.ExportNow()))
        assert next(lines(another)).text == "heard ExportNow"
