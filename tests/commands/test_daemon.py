"""`tengen daemon` as a process: what it says on standard output, and how it ends."""

import json
import signal
import socket
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tengen.protocol.messages import (
    Error,
    Log,
    NetworkExported,
    Shutdown,
    StartTraining,
    TrainingStatus,
    decode,
    encode,
)
from tests.helpers.daemon_data import chunks, overrides
from tests.helpers.patience import LONG, eventually


class Process:
    """The command, and all that it said."""

    def __init__(self, base: Path, *arguments: str) -> None:
        sets = [word for text in overrides() for word in ("--set", text)]
        self.log = base.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tengen", "daemon", "--base", str(base), *sets, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.lines: list[bytes] = []
        self._reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self._reader.start()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdin.close()
        self.process.stdout.close()

    def say(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def told(self, kind: type) -> list[Any]:
        return [message for line in list(self.lines) if isinstance(message := decode(line), kind)]

    def end(self) -> int:
        code = self.process.wait(LONG)
        self._reader.join(LONG)
        return code


@pytest.mark.slow
def test_a_run_over_standard_input_and_output(tmp_path: Path) -> None:
    base = tmp_path / "run"
    chunks(base, 0, 4)
    (base / "selfplay" / "bad.npz").write_text("bad")
    with Process(base) as daemon:
        daemon.say(b"garbage\n" + encode(StartTraining("no_such")) + encode(StartTraining("tic_tac_toe")))
        eventually(lambda: daemon.told(NetworkExported), daemon.log.read_text)
        daemon.say(encode(Shutdown()))
        assert daemon.end() == 0, daemon.log.read_text()
    # Nothing but protocol, all of it whole, and statuses as time goes on.
    assert all(line.endswith(b"\n") and decode(line) for line in daemon.lines)
    assert [(each.where, each.goes_on) for each in daemon.told(Error)] == [
        ("standard input", True),
        ("start_training", True),
    ]
    assert any("bad.npz" in each.text for each in daemon.told(Log))
    times = [each.uptime for each in daemon.told(TrainingStatus)]
    assert times
    assert all(sooner < later for sooner, later in pairwise(times))
    assert "exported" in daemon.log.read_text()


def test_a_daemon_with_a_socket_outlives_its_input_and_saves_at_the_end(tmp_path: Path) -> None:
    base, path = tmp_path / "run", tmp_path / "s"
    with Process(base, "--listen", str(path), "tic_tac_toe") as daemon:
        eventually(path.exists, daemon.log.read_text)
        daemon.process.stdin.close()
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(LONG)
            client.connect(str(path))
            with client.makefile("rb") as lines:
                for line in lines:
                    status = json.loads(line)
                    if status["type"] == "training_status" and "new chunks" in status["payload"]["schedule"]["words"]:
                        break
        assert daemon.process.poll() is None
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.end() == 128 + signal.SIGTERM
    assert not path.exists()


def test_a_closed_input_ends_it_and_half_a_line_is_told(tmp_path: Path) -> None:
    with Process(tmp_path / "run") as daemon:
        daemon.say(b'{"type": "shutdo')
        daemon.process.stdin.close()
        assert daemon.end() == 0
        assert "in the middle of a line" in daemon.told(Error)[0].what


def test_a_configuration_that_is_refused_is_an_error_of_the_user(tmp_path: Path) -> None:
    with Process(tmp_path / "run", "go99") as daemon:
        daemon.process.stdin.close()
        assert daemon.end() == 2
        assert "unknown configuration" in daemon.log.read_text()


def test_a_place_that_cannot_be_listened_at_is_an_error_of_the_user(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "file"
    place.write_text("mine")
    found = subprocess.run(
        [sys.executable, "-m", "tengen", "daemon", "--listen", str(place)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LONG,
    )
    assert found.returncode == 2
    assert b"is not a socket" in found.stderr
    assert found.stdout == b""
