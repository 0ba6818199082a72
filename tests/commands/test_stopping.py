"""Ctrl-C once and twice."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tengen.commands.stopping import Stopping

BUSY = """
import hashlib, sys
from tengen.commands.stopping import Stopping
with Stopping(lambda text: print(text, flush=True)) as stopping:
    print("ready", flush=True)
    # The thread of the program is in C and runs no handlers, as when it compiles.
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


def wait_for(stopping: Stopping) -> None:
    for _ in range(500):
        if stopping.asked:
            return
        time.sleep(0.01)
    pytest.fail("nobody asked")


@pytest.mark.parametrize(
    ("number", "words", "code"), [(signal.SIGINT, "Ctrl-C", 130), (signal.SIGTERM, "SIGTERM", 143)]
)
def test_the_first_one_asks(number: signal.Signals, words: str, code: int) -> None:
    said: list[str] = []
    before = signal.getsignal(number)
    with Stopping(said.append) as stopping:
        assert (stopping.asked, stopping.code, stopping.words) == (False, 0, "")
        os.kill(os.getpid(), number)
        wait_for(stopping)
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
        assert process.wait(timeout=20) == 130
    finally:
        process.kill()
        process.communicate()
