"""Those that the dashboard listens to, without a screen. Each test drives an event loop of its own."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tengen.monitor.dashboard.client import Attached, ChildClient, StatusClient, Staying, log_of, understood
from tengen.monitor.dashboard.model import LogLine, ProcessEnded, ProcessStarted
from tengen.protocol.messages import GetStatus, Log, Shutdown, StopTraining, TrainingStatus, encode
from tests.helpers.patience import LONG

STANDIN = [sys.executable, "-m", "tests.helpers.fake_daemon"]


async def until(found: Callable[[], Any]) -> None:
    async with asyncio.timeout(LONG):
        while not found():
            await asyncio.sleep(0.02)


def listen(client: StatusClient) -> list[Any]:
    heard: list[Any] = []
    client.hear = heard.append
    return heard


def kinds(heard: list[Any], kind: type) -> list[Any]:
    return [event for event in heard if isinstance(event, kind)]


def lines(heard: list[Any], kind: str) -> list[LogLine]:
    return [event for event in heard if isinstance(event, LogLine) and event.kind == kind]


def test_a_child_from_start_to_end() -> None:
    async def main() -> None:
        client = ChildClient([*STANDIN, "--log", "3"])
        heard = listen(client)
        await client.start()
        await until(lambda: kinds(heard, TrainingStatus))
        assert client.send(StopTraining())
        await until(lambda: Log("info", "got StopTraining()") in heard)
        assert client.ask_to_end()
        await until(lambda: kinds(heard, ProcessEnded))
        assert isinstance(heard[0], ProcessStarted)
        assert heard[-1] == ProcessEnded("the daemon has ended", 0)
        assert [LogLine("stderr", f"line {number}") for number in range(3)] == lines(heard, "stderr")[1:4]
        assert not client.alive
        assert not client.send(StopTraining())
        await client.close()

    asyncio.run(main())


def test_a_child_that_dies_can_be_started_again() -> None:
    async def main() -> None:
        client = ChildClient([*STANDIN, "--fragile"])
        heard = listen(client)
        for number in (1, 2):
            await client.start()
            await until(lambda: len(kinds(heard, ProcessStarted)) == number and client.send(StopTraining()))
            await until(lambda: len(kinds(heard, ProcessEnded)) == number)
        assert kinds(heard, ProcessEnded) == [ProcessEnded("the daemon has ended with code 3", 3)] * 2
        assert LogLine("stderr", "Traceback: the stand-in breaks") in heard
        await client.close()

    asyncio.run(main())


def test_a_child_that_is_killed_and_one_that_is_no_program() -> None:
    async def main() -> None:
        client = ChildClient(STANDIN)
        heard = listen(client)
        await client.start()
        await until(lambda: kinds(heard, TrainingStatus))
        client.signal(signal.SIGKILL)
        await until(lambda: kinds(heard, ProcessEnded))
        assert heard[-1] == ProcessEnded("the daemon was killed by SIGKILL", -9)
        none = ChildClient(["/no/such/program"])
        heard = listen(none)
        await none.start()
        await until(lambda: kinds(heard, ProcessEnded))
        assert heard[-1].words == "the daemon: No such file or directory"
        await none.close()

    asyncio.run(main())


def test_a_grandchild_that_keeps_the_pipes_does_not_keep_us() -> None:
    async def main() -> None:
        client = ChildClient(["/bin/sh", "-c", "sleep 3600 & echo $! >&2; exit 4"])
        heard = listen(client)
        await client.start()
        await until(lambda: kinds(heard, ProcessEnded))
        os.kill(int(lines(heard, "stderr")[0].text), signal.SIGKILL)
        assert heard[-1] == ProcessEnded("the daemon has ended with code 4", 4)
        await client.close()

    asyncio.run(main())


def test_closing_takes_a_child_along() -> None:
    async def main() -> None:
        client = ChildClient(STANDIN)
        heard = listen(client)
        await client.start()
        await until(lambda: kinds(heard, TrainingStatus))
        assert client._process is not None
        number = client._process.pid
        await client.close()
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)

    asyncio.run(main())


def test_garbage_is_told_as_such_and_the_rest_is_heard() -> None:
    async def main() -> None:
        client = ChildClient([*STANDIN, "--garbage"])
        heard = listen(client)
        await client.start()
        await until(lambda: len(lines(heard, "garbage")) >= 9 and isinstance(heard[-1], TrainingStatus))
        reasons = [event.text for event in lines(heard, "garbage")]
        assert "expected at most 4,194,304" in reasons[-2]
        assert any("training_status: run: expected text, got 7" in reason for reason in reasons)
        assert "not a message: StopTraining is for the daemon, not from it" in reasons
        await client.close()

    asyncio.run(main())


def test_lines_that_are_no_messages() -> None:
    assert understood(b"\xff\xff").kind == "garbage"
    assert understood(encode(GetStatus())).kind == "garbage"
    assert understood(encode(Log("info", "x"))) == Log("info", "x")


def test_joining_one_that_listens(tmp_path: Path) -> None:
    path = tmp_path / "daemon.sock"

    async def main() -> None:
        server = await asyncio.create_subprocess_exec(
            *STANDIN, "--listen", str(path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
        )
        log_of(path).write_text("an old line\n")
        await until(path.exists)
        client = Attached(path)
        heard = listen(client)
        await client.start()
        await until(lambda: kinds(heard, TrainingStatus))
        assert LogLine("stderr", "an old line") in heard
        assert client.send(StopTraining())
        await until(lambda: Log("info", "got StopTraining()") in heard)
        await client.close()
        assert server.returncode is None  # it goes on without us
        again = Attached(path)
        heard = listen(again)
        await again.start()
        await until(lambda: kinds(heard, TrainingStatus))
        again.send(Shutdown())
        await until(lambda: kinds(heard, ProcessEnded))
        assert heard[-1] == ProcessEnded("the daemon has closed the connection")
        assert await server.wait() == 0
        await again.close()

    asyncio.run(main())


def test_nobody_listens(tmp_path: Path) -> None:
    async def main() -> None:
        client = Attached(tmp_path / "nothing.sock")
        heard = listen(client)
        await client.start()
        await until(lambda: kinds(heard, ProcessEnded))
        assert "does the daemon listen there?" in heard[-1].words
        await client.close()

    asyncio.run(main())


def test_one_that_stays_outlives_us_and_writes_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "daemon.sock"

    async def main() -> subprocess.Popen[bytes]:
        client = Staying([*STANDIN, "--listen", str(path), "--log", "2"], path)
        heard = listen(client)
        await client.start()
        await until(lambda: kinds(heard, TrainingStatus))
        await until(lambda: LogLine("stderr", "line 1") in heard)
        assert client._process is not None
        await client.close()
        return client._process

    process = asyncio.run(main())
    assert process.poll() is None
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(encode(Shutdown()))
        while connection.recv(65536):
            pass
    assert process.wait(LONG) == 0
    assert "line 1" in log_of(path).read_text()
    assert log_of(path).stat().st_mode & 0o077 == 0


def test_one_that_stays_tells_of_its_end(tmp_path: Path) -> None:
    path = tmp_path / "daemon.sock"

    async def main() -> None:
        client = Staying([*STANDIN, "--listen", str(path), "--fragile"], path)
        heard = listen(client)
        await client.start()
        await until(lambda: kinds(heard, TrainingStatus))
        assert client.send(StopTraining())
        await until(lambda: kinds(heard, ProcessEnded))
        assert heard[-1] == ProcessEnded("the daemon has ended with code 3", 3)
        assert LogLine("stderr", "Traceback: the stand-in breaks") in heard
        await client.close()

    asyncio.run(main())


_CHATTY = """
import signal, sys
def end(number, frame):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    sys.stdout.write("x" * 1_000_000)  # more than a pipe holds
    sys.exit(3)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("asked", [False, True])
def test_a_child_ends_although_nobody_reads_it_and_is_asked_once(asked: bool) -> None:
    client = ChildClient([])
    client._process = process = subprocess.Popen([sys.executable, "-c", _CHATTY], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if asked:
            assert client.ask_to_end()
            assert client.ask_to_end()
        client.leave()
        assert process.wait(LONG) == 3
    finally:
        process.kill()
        process.stdout.close()
