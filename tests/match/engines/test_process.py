"""A program that is talked to in lines: nothing hangs, nothing is left behind, and its last words are kept."""

import os
import sys
import time
from collections.abc import Callable

import pytest

from tengen.errors import TengenError
from tengen.match.engines.process import Fault, Process, command
from tests.helpers.patience import LONG, eventually

SOON = 0.2


def later(seconds: float = LONG) -> float:
    return time.monotonic() + seconds


@pytest.fixture
def start() -> object:
    started: list[Process] = []

    def run(code: str) -> Process:
        started.append(Process([sys.executable, "-S", "-c", code]))
        return started[-1]

    yield run
    for process in started:
        process.close()


def gone(number: int) -> bool:
    """Whether a process has ended (a zombie that nobody waits for counts)."""
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_lines_go_both_ways(start: Callable[[str], Process]) -> None:
    process = start("import sys\nfor line in sys.stdin: print(line[::-1].strip(), flush=True)")
    process.send("hello", LONG)
    process.send("wörld", LONG)
    assert process.line(later(), "") == "olleh"
    assert process.line(later(), "") == "dlröw"


def test_lines_of_windows_and_bytes_that_are_no_text(start: Callable[[str], Process]) -> None:
    process = start(r"import sys; sys.stdout.buffer.write(b'one\r\n\xff\xfe\ntwo')")
    assert process.line(later(), "") == "one"
    assert process.line(later(), "") == "��"
    with pytest.raises(Fault, match="exit status 0"):  # half a line is none
        process.line(later(), "")


def test_a_wait_has_an_end(start: Callable[[str], Process]) -> None:
    process = start("import sys, time; print('thinking', file=sys.stderr, flush=True); input(); time.sleep(1000)")
    with pytest.raises(Fault, match="did not answer") as caught:
        process.line(later(SOON), "did not answer")
    assert caught.value.kind == "time"
    assert caught.value.ending == "time"


def test_one_that_does_not_read_is_not_waited_for(start: Callable[[str], Process]) -> None:
    process = start("import time; time.sleep(1000)")
    with pytest.raises(Fault, match="did not read") as caught:
        process.send("x" * 10_000_000, SOON)
    assert caught.value.kind == "time"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit(3)", "exit status 3$"),
        ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL$"),
        (
            "import sys; print('a\\nb\\nc\\nno memory', file=sys.stderr); sys.exit(1)",
            "1; it said: b / c / no memory",
        ),
        ("raise ValueError('bad\\x1b[2Jnews')", "ValueError: bad\\?\\[2Jnews"),
        ("import os, time; os.close(1); time.sleep(1000)", "closed its output"),
    ],
)
def test_how_it_ended_is_told(code: str, words: str, start: Callable[[str], Process]) -> None:
    process = start(code)
    with pytest.raises(Fault, match=words) as caught:
        process.line(later(), "")
    assert caught.value.kind == "crash"
    with pytest.raises(Fault, match=words):
        process.send("are you there?" * 100_000, 60)


def test_floods_do_no_harm(start: Callable[[str], Process]) -> None:
    process = start("import sys; sys.stderr.write('noise\\n' * 500_000); print('done', flush=True); input()")
    assert process.line(later(), "") == "done"
    assert process.last_words() == "noise / noise / noise"
    process = start("import sys\nwhile True: sys.stdout.write('x' * 1000)")
    with pytest.raises(Fault, match="megabyte") as caught:
        process.line(later(), "")
    assert caught.value.kind == "nonsense"
    process = start("import sys\nwhile True: sys.stderr.write('x' * 1000)")
    with pytest.raises(Fault, match="nothing"):
        process.line(later(SOON), "nothing")


def test_nothing_is_left_behind(start: Callable[[str], Process]) -> None:
    process = start(
        "import signal, subprocess, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '1000']); print(child.pid, flush=True); time.sleep(1000)"
    )
    child = int(process.line(later(), ""))
    process.close("quit")
    assert gone(process.number)
    eventually(lambda: gone(child))
    process.close()
    assert not process.running


def test_a_kill_is_seen_by_who_waits(start: Callable[[str], Process]) -> None:
    process = start("input()")
    process.kill()
    with pytest.raises(Fault, match="SIGKILL"):
        process.line(later(), "")


def test_ctrl_c_does_not_reach_it(start: Callable[[str], Process]) -> None:
    process = start("input()")
    assert os.getpgid(process.number) == process.number != os.getpgid(0)


def test_programs_and_what_is_none() -> None:
    found = command(f"{sys.executable} -c 'a b'")
    assert found == [sys.executable, "-c", "a b"]
    for text, words in (
        ("no-such-program-here -x", "no such program"),
        ("", "expected the command"),
        ("a 'b", "not a"),
    ):
        with pytest.raises(TengenError, match=words):
            command(text)
    with pytest.raises(TengenError, match="cannot be started"):
        Process(["/etc/passwd"])
