"""How a session lives and ends, with commands of its own."""

import threading
import time

import pytest

from tengen.errors import TengenError
from tests.helpers.gtp_dialogue import Controller
from tests.helpers.patience import LONG


class Standin:
    """A dialect whose commands do what tests need."""

    def __init__(self) -> None:
        self.pondered = 0
        self.commands = {
            "quit": lambda arguments: "",
            "echo": " ".join,
            "wrong": self._wrong,
            "broken": self._broken,
            "slow": lambda arguments: time.sleep(0.2) or "done",
        }
        self.streams = {"count": self._count, "late": self._late, "never": lambda arguments, stream: self._wrong([])}

    def ponder(self, stream) -> None:
        self.pondered += 1
        assert isinstance(stream.interrupted, threading.Event)

    def _wrong(self, arguments: list[str]) -> str:
        raise TengenError("this\nis wrong")

    def _broken(self, arguments: list[str]) -> str:
        raise ZeroDivisionError("oops")

    def _count(self, arguments: list[str], stream) -> None:
        stream.begin()
        number = 0
        while not stream.interrupted.wait(0.001):
            stream.line(f"line {number}")
            stream.line("")  # must not end the answer
            number += 1

    def _late(self, arguments: list[str], stream) -> None:
        stream.line("first")
        raise TengenError("too late to say")


@pytest.fixture
def standin() -> Standin:
    return Standin()


@pytest.fixture
def talk(standin: Standin) -> Controller:
    return Controller(standin)  # type: ignore[arg-type]


def test_a_stream_ends_with_the_next_line_whatever_it_is(talk: Controller) -> None:
    talk.send("5 count")
    assert talk.read_line() == "=5"
    assert talk.read_line() == "line 0"
    talk.send("# nothing to do")
    while talk.read_line():
        pass
    assert talk.ask("echo a b") == "a b"
    talk.end()


def test_a_stream_ends_when_the_controller_goes_away(talk: Controller) -> None:
    talk.send("count")
    assert talk.read_line() == "="
    talk.end()


def test_errors_are_answers(talk: Controller, capsys: pytest.CaptureFixture[str]) -> None:
    assert talk.raw("1 wrong") == "?1 this\nis wrong"
    assert talk.fails("broken") == "internal error: oops"
    assert talk.fails("never") == "this\nis wrong"
    assert talk.raw("late") == "=\nfirst"
    assert talk.ask("echo still here") == "still here"
    told = capsys.readouterr().err
    assert "ZeroDivisionError" in told
    assert "too late to say" in told
    talk.end()


def test_commands_that_wait_are_answered_in_turn(talk: Controller) -> None:
    for line in ("1 slow", "2 echo x", "3 slow", "4 quit"):
        talk.send(line)
    assert [talk.answer() for _ in range(4)] == ["=1 done", "=2 x", "=3 done", "=4"]
    talk.thread.join(timeout=LONG)
    assert not talk.thread.is_alive()


def test_ponders_only_when_nobody_waits(talk: Controller, standin: Standin) -> None:
    talk.ask("echo")
    talk.end()
    assert standin.pondered <= 1
