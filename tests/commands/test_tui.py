"""The dashboard's command, and runs that are told of in lines of the protocol."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tengen.commands import main
from tengen.monitor import overview
from tengen.protocol.messages import TrainingStatus, decode
from tests.helpers.patience import LONG
from tests.helpers.tiny_runs import settings


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["tui"], "tengen tui: expected CONFIG, or --attach PATH"),
        (["tui", "go9", "--attach", "x.sock"], "--attach: that daemon already has its configuration"),
        (["tui", "no.yaml"], "no.yaml"),
        (["tui", "go9"], "the dashboard needs a terminal"),
        (["tui", "--attach", "x.sock"], "the dashboard needs a terminal"),
        (["run", "go9", "--tui"], "the dashboard needs a terminal"),
        (["run", "go9", "--tui", "--progress", "jsonl"], "leave out --progress"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str) -> None:
    assert main(arguments) == 2
    assert complaint in capsys.readouterr().err


def test_help_waits_for_neither_textual_nor_jax() -> None:
    program = "import sys, tengen.commands as it; it.main(['--help']); print({'textual', 'jax'} & {*sys.modules})"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.endswith("set()\n")


UNRATED = settings("rating.references=[]", "rating.earlier=0")  # a match is one more program to compile
RUN = [sys.executable, "-m", "tengen", "run", "tic_tac_toe", *(f"--set={text}" for text in UNRATED)]


@pytest.mark.slow
def test_a_run_in_lines_of_the_protocol(tmp_path: Path) -> None:
    command = [*RUN, "--base", str(tmp_path / "run"), "--set=goal.games=40", "--progress", "jsonl"]
    ended = subprocess.run(command, capture_output=True, timeout=LONG, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    statuses = [decode(line) for line in ended.stdout.splitlines()]
    assert all(isinstance(status, TrainingStatus) for status in statuses)
    assert statuses[-1].selfplay.games >= 40
    assert re.search(r"^1 [.xo] [.xo] [.xo]$", statuses[-1].selfplay.board, re.MULTILINE)
    assert "go on" in ended.stderr.decode() or "train further" in ended.stderr.decode()


@pytest.mark.slow
def test_a_run_in_the_dashboard_ends_politely_by_a_key(tmp_path: Path) -> None:
    """On a pseudo-terminal: the real command, from its start to the summary."""
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        [*RUN, "--base", str(tmp_path / "run"), "--tui"],
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"},
        start_new_session=True,
    )
    os.close(other_end)
    seen = b""
    try:
        seen = _read(terminal, b"policy")  # a loss: it learns
        os.write(terminal, b"q")
        seen = _read(terminal, b"the run has ended")
        assert b"stopped by Ctrl-C" in seen
        assert process.wait(LONG) == 130
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


@pytest.mark.slow
def test_a_closed_window_ends_the_run_politely_and_the_dashboard(tmp_path: Path) -> None:
    terminal, other_end = pty.openpty()
    words = [*RUN, "--base", str(tmp_path / "run"), "--tui"]
    dashboard = subprocess.Popen(words, stdin=other_end, stdout=other_end, stderr=other_end, start_new_session=True)
    os.close(other_end)
    try:
        _read(terminal, b"policy")
        os.close(terminal)
        assert dashboard.wait(LONG) == 128 + signal.SIGHUP
        assert overview.look(tmp_path / "run").state == "stopped", "not killed"
    finally:
        dashboard.kill()
        dashboard.wait()


def _read(terminal: int, words: bytes) -> bytes:
    seen, until = b"", time.monotonic() + LONG
    while words not in seen:
        if time.monotonic() > until or not select.select([terminal], [], [], LONG)[0]:
            pytest.fail(f"waited for {words!r}: {seen[-2000:]!r}")
        try:
            seen += os.read(terminal, 65536)
        except OSError:
            pytest.fail(f"it ended before {words!r}: {seen[-2000:]!r}")
    time.sleep(0.2)
    while select.select([terminal], [], [], 0.2)[0]:
        try:
            more = os.read(terminal, 65536)
        except OSError:
            break
        if not more:
            break
        seen += more
    return seen
