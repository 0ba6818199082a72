"""Parts as processes: tiny programs stand in for them."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tengen.errors import Diverged
from tengen.run import children
from tengen.run.children import KINDS, ChildProcess, Hopeless
from tests.helpers.patience import eventually

FOR_EVER = "import time\nprint('rea' + 'dy', flush=True)\nwhile True: time.sleep(0.05)"
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + FOR_EVER


class Clock:
    """Time that goes on when it is told to, and with every rest."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        time.sleep(0.005)


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


@contextlib.contextmanager
def closing(*made: ChildProcess) -> Iterator[None]:
    try:
        yield
    finally:
        for child in made:
            child.stop(grace=0.0, say=lambda _: None)


def death(child: ChildProcess) -> str:
    """Wait for it: what is said of it."""
    return eventually(child.look)


def test_the_command_is_the_part_on_the_configuration_of_the_run() -> None:
    words = [sys.executable, "-m", "tengen", "gate", "r/config.yaml", "--base", "r"]
    assert children.command("gate", Path("r")) == words


def test_started_again_with_growing_pauses(tmp_path: Path) -> None:
    clock = Clock()
    child = ChildProcess(
        "train", program("print('one'); print('out of luck'); raise SystemExit(7)"), tmp_path / "a.log", clock
    )
    said = []
    with closing(child):
        for _ in range(8):
            assert child.look() == ""
            assert child.running
            said.append(death(child))
            assert child.look() == ""
            assert not child.running  # it rests
            clock.now += float(said[-1].split()[-2])
        assert [int(text.split()[-2]) for text in said] == [1, 2, 4, 8, 16, 32, 60, 60]
        assert said[2] == "train ended with code 7: out of luck; starting it again in 4 s"
        assert child.restarts == 7
        # One that lived for a minute is not to blame.
        child.look()
        clock.now += 60
        assert death(child).endswith("in 1 s")
    log = (tmp_path / "a.log").read_text().splitlines()
    assert log[1:3] == ["one", "out of luck"]
    assert sum(line.startswith("== 20") and "UTC: " in line for line in log) == 9


def test_one_that_was_killed_or_said_nothing(tmp_path: Path) -> None:
    child = ChildProcess("gate", program("import os; os.kill(os.getpid(), 9)"), tmp_path / "a.log")
    with closing(child):
        child.start()
        assert death(child) == "gate ended by SIGKILL; starting it again in 1 s"
        assert child.words in ("starting again in 1 s", "starting again in 0 s")


def test_the_last_line_is_of_this_start_and_harmless(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"an older line\n" * 10 + b"half")
    text = r"import sys; sys.stdout.buffer.write(b'\x1b[31mred\xff\n \n\n'); sys.exit(1)"
    child = ChildProcess("gate", program(text), log)
    with closing(child):
        child.start()
        assert death(child) == "gate ended with code 1: [31mred�; starting it again in 1 s"


def test_one_that_ends_well_is_not_started_again(tmp_path: Path) -> None:
    child = ChildProcess("train", program("print('1,000 steps are learned')"), tmp_path / "a.log")
    child.start()
    assert death(child) == "train has ended: 1,000 steps are learned"
    assert child.look() == ""
    assert (child.ended, child.running, child.words) == (True, False, "has ended")


def test_the_same_error_three_times_is_hopeless(tmp_path: Path) -> None:
    clock = Clock()
    text = "import sys; print('net.name: unknown'); sys.exit(2)"
    child = ChildProcess("train", program(text), tmp_path / "a.log", clock)
    with closing(child):
        for _ in range(2):
            child.look()
            assert "net.name: unknown" in death(child)
            clock.now += 60
        child.look()
        with pytest.raises(Hopeless, match="train ended 3 times with the same error: net.name: unknown\n.*a.log"):
            death(child)


@pytest.mark.parametrize("between", ["print('other'); raise SystemExit(2)", "print('same'); raise SystemExit(1)"])
def test_other_errors_in_between(tmp_path: Path, between: str) -> None:
    clock = Clock()
    script = tmp_path / "script.py"
    child = ChildProcess("train", [sys.executable, str(script)], tmp_path / "a.log", clock)
    same = "print('same'); raise SystemExit(2)"
    with closing(child):
        for text in (same, same, between, same, same):
            script.write_text(text)
            child.look()
            assert "starting it again" in death(child)
            clock.now += 60


def test_one_that_cannot_be_started(tmp_path: Path) -> None:
    child = ChildProcess("gate", ["/no/such/program"], tmp_path / "a.log")
    assert child.start() == (
        "gate cannot be started: /no/such/program No such file or directory; starting it again in 1 s"
    )
    (tmp_path / "file").write_text("")
    child = ChildProcess("gate", program("pass"), tmp_path / "file" / "a.log")
    assert "gate cannot be started" in child.start()


def test_what_children_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "'TENGEN_PARENT', 'XLA_PYTHON_CLIENT_PREALLOCATE'"
    text = f"import os; print(*map(os.environ.get, [{names}]), os.getsid(0) == os.getpid())"
    for chosen, value in ((None, "false"), ("true", "true")):
        monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
        if chosen:
            monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", chosen)
        child = ChildProcess("gate", program(text), tmp_path / "a.log")
        child.start()
        assert death(child) == f"gate has ended: {os.getpid()} {value} True"


def test_all_are_asked_before_one_is_waited_for(tmp_path: Path) -> None:
    # Each of them ends only when all have been asked.
    text = (
        "import glob, signal, sys, time\n"
        "def end(*_):\n"
        "    open({base!r} + '/{kind}.asked', 'w').close()\n"
        "    while len(glob.glob({base!r} + '/*.asked')) < 5: time.sleep(0.01)\n"
        "    sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, end)\n"
    )
    made = [
        ChildProcess(kind, program(text.format(base=str(tmp_path), kind=kind) + FOR_EVER), tmp_path / f"{kind}.log")
        for kind in reversed(KINDS)
    ]
    said: list[str] = []
    with closing(*made):
        for child in made:
            child.start()
        for child in made:
            eventually(lambda child=child: "ready" in child.log.read_text())
        children.stop_all(made, said.append)
    assert said == [f"ending {kind}" for kind in KINDS], "and that none had to be killed"
    assert not any(child.running for child in made)


def test_killed_when_it_does_not_end(tmp_path: Path) -> None:
    clock, said = Clock(), []
    child = ChildProcess("gate", program(STUBBORN), tmp_path / "a.log", clock)
    with closing(child):
        child.start()
        number = child.process
        eventually(lambda: "ready" in child.log.read_text())
        child.stop(30.0, clock.sleep, said.append)
    assert said == ["gate did not end within 30 s, and was killed"]
    assert clock.now >= 1030
    assert number is not None
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_an_error_while_ending_is_told(tmp_path: Path) -> None:
    text = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit('no space left'))\n" + FOR_EVER
    child, said = ChildProcess("gate", program(text), tmp_path / "a.log"), []
    with closing(child):
        child.start()
        eventually(lambda: "ready" in child.log.read_text())
        child.stop(say=said.append)
    assert said == ["gate ended with code 1: no space left"]


def test_a_training_that_diverges_is_not_started_again(tmp_path: Path) -> None:
    says = f"print({str(Diverged.at(1200, 'it was so'))!r}); print('  tengen train ...'); raise SystemExit(2)"
    child = ChildProcess("train", program(says), tmp_path / "a.log", Clock())
    child.start()
    with closing(child), pytest.raises(Diverged, match="^training diverged at step 1,200: it was so$"):
        death(child)
    assert child.starts == 1


def test_names_of_signals() -> None:
    assert [children.signal_name(number) for number in (9, 999)] == ["SIGKILL", "signal 999"]
