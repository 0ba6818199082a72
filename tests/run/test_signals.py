"""Ctrl-C once and twice."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.run.signals import Stopping
from tests.helpers.patience import LONG, eventually

BUSY = """
import hashlib, sys
from tengen.run.signals import Stopping
with Stopping(lambda text: print(text, flush=True)) as stopping:
    print("ready", flush=True)
    # The thread of the program is in C and runs no handlers, as when it compiles.
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


@pytest.mark.parametrize(
    ("number", "words", "code"), [(signal.SIGINT, "Ctrl-C", 130), (signal.SIGTERM, "SIGTERM", 143)]
)
def test_the_first_one_asks(number: signal.Signals, words: str, code: int) -> None:
    said: list[str] = []
    before = signal.getsignal(number)
    with Stopping(said.append) as stopping:
        assert (stopping.asked, stopping.code, stopping.words) == (False, 0, "")
        os.kill(os.getpid(), number)
        eventually(lambda: stopping.asked)
    assert (stopping.code, stopping.words) == (code, words)
    assert said == ["stopping: everything is being written (Ctrl-C again stops at once)"]
    assert signal.getsignal(number) == before


def test_the_second_one_ends_the_program_at_once_whatever_it_does() -> None:
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline().startswith("stopping: ")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=LONG) == 130
    finally:
        process.kill()
        process.communicate()


COMPILING = """
import hashlib, sys
from pathlib import Path
from tengen.run.signals import Stopping
from tengen.run import safe_exit
from tengen.run.part_status import StatusWriter
base = Path(sys.argv[1])
with Stopping(lambda text: print(text, flush=True)) as stopping, StatusWriter(base, "fused", "fused"):
    stopping.on_leave = lambda: print("go on: ...")
    with safe_exit.before(lambda: (base / "rows").write_text("written")), safe_exit.possible():
        print("ready", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


@pytest.mark.parametrize(
    ("number", "words", "code"), [(signal.SIGINT, "Ctrl-C", 130), (signal.SIGTERM, "SIGTERM", 143)]
)
def test_who_compiles_does_not_wait_for_the_end_of_it(
    tmp_path: Path, number: signal.Signals, words: str, code: int
) -> None:
    process = subprocess.Popen([sys.executable, "-c", COMPILING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(timeout=LONG) == code
        first, *rest = process.stdout.read().splitlines()
    finally:
        process.kill()
        process.communicate()
    assert first.startswith("stopping: ")
    assert rest == [f"stopped by {words}: everything is written", "go on: ..."]
    assert (tmp_path / "rows").read_text() == "written"
    assert list((tmp_path / "parts").iterdir()) == [], "it was not killed"


CHILD = """
import sys, time
from tengen.run.signals import Stopping
with Stopping(print) as stopping:
    print("ready", flush=True)
    while not stopping.asked:
        time.sleep(0.01)
print(stopping.words, flush=True)
"""
PARENT = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1]], env={**os.environ, "TENGEN_PARENT": str(os.getpid())})
sys.stdin.read()
"""


def test_a_child_whose_parent_is_killed_is_asked_too() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    try:
        assert parent.stdout.readline() == "ready\n"
    finally:
        parent.kill()
        # Until the child has ended too, which holds the same pipe.
        rest = parent.communicate(timeout=LONG)[0]
    assert rest.splitlines() == ["stopping: everything is being written (Ctrl-C again stops at once)", "SIGTERM"]


def test_whoever_has_no_driver_does_not_look_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENGEN_PARENT", str(os.getppid()))
    with Stopping(print) as stopping:
        assert "TENGEN_PARENT" not in os.environ  # nor do those that it starts
    assert not stopping.asked
    monkeypatch.setenv("TENGEN_PARENT", "nonsense")
    with Stopping(print) as stopping:
        assert not stopping.asked
