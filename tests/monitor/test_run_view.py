"""What is shown of a run: exact lines where there is no terminal, and panels that fit where there is one."""

import io
import itertools
import math
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from tengen.config.sections import GoalSection
from tengen.monitor.display import Display, PlainDisplay, TerminalDisplay, open_display
from tengen.monitor.run_view import RunPanel, RunView, loss_words
from tengen.run.goals import RunCounts
from tengen.run.part_status import PartStatus
from tengen.run.status import NetworkCounts, RatedNetwork, RunStatus

SOME = RunStatus(
    RunCounts(games=1204, rows=21400, seconds=130),
    stage="playing",
    network="c4-main-s79360-d21400",
    speeds={"games": 9.1},
    window=21400,
    steps=310,
    figures={"loss": 2.31, "policy_loss": 1.72, "value_loss": 0.59, "learning_rate": 0.002},
    rating=RatedNetwork(412.3, 38),
)
FULL = replace(
    SOME,
    waiting="12,410 of 20,000 rows until training begins",
    speeds={"games": 9.1, "rows": 164.2, "evaluations": 1_204_000, "steps": 2.44, "samples": 614},
    rating=RatedNetwork(412.3, 38, "mcts:200"),
    goal=GoalSection(10, None, None, None),
)
HEADS = {f"head {number}_loss": math.nan for number in range(40)}
STRANGE = RunStatus(
    RunCounts(games=10**15, rows=-1, seconds=math.nan),
    stage="s" * 300,
    waiting="w\n[red]" * 20,
    network="[n" * 100,
    speeds={"games": math.inf, "rows": math.nan, "evaluations": 1e-9, "steps": -math.inf, "samples": 0.0},
    window=2**70,
    figures={"learning_rate": math.nan, "loss": math.inf, **HEADS},
    rating=RatedNetwork(math.nan, math.inf, "a" * 90),
    goal=GoalSection(0, 0, 0, 0),
)
SHUFFLE = PartStatus("shuffle", "a1", words="12,410 of 20,000 rows", waiting=True, seconds=70, done=62, of=100)
TRAIN = PartStatus("train", "main", words="trained 4,096 samples", seconds=5, restarts=2)
PARTS = RunStatus(
    RunCounts(games=1204, rows=21400, seconds=130),
    stage="running",
    speeds={"rows": 164},
    parts=(SHUFFLE, TRAIN),
    networks=NetworkCounts(accepted=3, rejected=1),
)


def status(stage: str, waiting: str = "", steps: int = 0, lr: float | None = None, **counts: float) -> RunStatus:
    figures = None if lr is None else {"learning_rate": lr}
    return RunStatus(RunCounts(**counts), steps=steps, figures=figures, stage=stage, waiting=waiting)  # type: ignore[arg-type]


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def plain(every: float = 10.0) -> tuple[PlainDisplay, io.StringIO, Clock]:
    """A display without its thread."""
    file, now = io.StringIO(), Clock()
    return PlainDisplay(RunView(every, now), file), file, now


def said(file: io.StringIO) -> list[str]:
    """What was printed since the last time."""
    lines = file.getvalue().splitlines()
    file.seek(0)
    file.truncate()
    return lines


def console(width: int = 80, height: int = 24, **options: object) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, **{"_environ": {}, **options})


def drawn(status: RunStatus, width: int = 80, height: int = 24, **options: object) -> list[str]:
    """The lines of a screen, without colours."""
    device = console(width, height, **options)
    with device.capture() as captured:
        device.print(RunPanel(status))
    return re.sub(r"\x1b\[[\d;]*m", "", captured.get()).splitlines()


def test_a_plain_line() -> None:
    shown, file, now = plain()
    shown.update(SOME)
    now.time += 10
    shown.tick()
    assert said(file) == [
        "00:02:10 playing",
        "00:02:20 games 1,204 (9.1/s) rows 21,400 window 21,400 steps 310 loss 2.31 (policy 1.72 value 0.59) "
        "lr 0.002 rating 412 +-38",
    ]


def test_everything_in_a_plain_line() -> None:
    shown, file, now = plain()
    shown.update(FULL)
    now.time += 10
    shown.update(replace(FULL, counts=replace(FULL.counts, seconds=140)))
    assert said(file) == [
        "00:02:10 playing, waiting: 12,410 of 20,000 rows until training begins",
        "00:02:20 games 1,204 (9.1/s) rows 21,400 (164/s) evaluations 1,204,000/s window 21,400 steps 310 (2.4/s) "
        "samples 614/s loss 2.31 (policy 1.72 value 0.59) lr 0.002 rating 412 +-38 against mcts:200; "
        "23 % of 10 minutes, 00:07:40 left; waiting: 12,410 of 20,000 rows until training begins",
    ]


def test_lines_hold_what_changed_and_nobody_waits_in_silence() -> None:
    shown, file, now = plain()
    shown.update(status("playing", games=1))
    assert said(file) == ["00:00:00 playing"]
    for _ in range(9):
        now.time += 1
        shown.tick()
    assert said(file) == []
    now.time += 1
    shown.tick()
    assert said(file) == ["00:00:10 games 1"]
    shown.update(status("playing", seconds=10, games=1, rows=7, lr=1e-5))
    now.time += 10
    shown.tick()
    assert said(file) == ["00:00:20 rows 7 lr 1e-05"]
    now.time += 10
    shown.tick()
    assert said(file) == ["00:00:30 still playing"]


def test_a_new_stage_or_wait_is_said_at_once_but_counting_is_not() -> None:
    shown, file, _ = plain()
    shown.update(status("playing", "0 of 20,000 rows"))
    shown.update(status("playing", "1,024 of 20,000 rows"))
    shown.update(status("playing", "1,024 of 20,000 games"))
    shown.update(status("training"))
    assert said(file) == [
        "00:00:00 playing, waiting: 0 of 20,000 rows",
        "00:00:00 playing, waiting: 1,024 of 20,000 games",
        "00:00:00 training",
    ]


def test_stages_that_alternate_do_not_flood() -> None:
    shown, file, now = plain()
    for step, stage in itertools.product(range(95), ("playing", "training")):
        now.time = 1000 + step / 10
        shown.update(status(stage, seconds=step / 10, games=5))
    assert said(file) == ["00:00:00 playing", "00:00:00 training"]
    now.time += 60
    shown.update(status("playing a match", seconds=69.4))
    shown.update(status("playing", seconds=69.4))  # for the first time in a minute
    shown.update(status("playing a match", seconds=69.4))
    assert [line.split(" ", 1)[1] for line in said(file)] == ["playing a match", "still playing a match", "playing"]


def test_the_end_shows_what_was_not_yet_shown() -> None:
    shown, file, _ = plain()
    shown.update(status("playing", games=1))
    shown.close()
    shown.close()
    assert said(file) == ["00:00:00 playing", "00:00:00 games 1"]


def test_messages_are_printed_as_they_are() -> None:
    shown, file, _ = plain()
    shown.say("[red]saved[/red] 100 %")
    assert said(file) == ["[red]saved[/red] 100 %"]


def test_a_thread_keeps_lines_coming() -> None:
    reader, writer = os.pipe()
    with open(reader) as lines, open(writer, "w") as file, PlainDisplay(RunView(every=0.01), file, beat=0.01) as shown:
        assert lines.readline().split(" ", 1)[1] == "starting\n", "before anything is known"
        shown.update(status("compiling"))
        found = (line for line in lines if "starting" not in line)
        assert [next(found).split(" ", 1)[1] for _ in range(3)] == ["compiling\n", *2 * ["still compiling\n"]]


class Failing(io.StringIO):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


@pytest.mark.parametrize("error", [OSError(5, "gone"), ValueError("closed")])
def test_output_that_fails_stops_no_run(error: Exception) -> None:
    for shown in (
        PlainDisplay(RunView(), Failing(error)),
        TerminalDisplay(RunView(), Console(file=Failing(error), force_terminal=True)),
    ):
        with shown:
            shown.update(SOME)
            shown.say("text")


def test_a_pipe_that_nobody_reads_stops_a_run() -> None:
    with pytest.raises(BrokenPipeError):
        PlainDisplay(RunView(), Failing(BrokenPipeError())).update(SOME)


def test_characters_that_the_output_does_not_have() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    PlainDisplay(RunView(), file).say("五 in a row")
    assert file.buffer.getvalue() == rb"\u4e94 in a row" + os.linesep.encode()


def test_no_output_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with open_display(RunView()) as shown:
        shown.update(SOME)
        shown.say("text")


def test_the_panel() -> None:
    assert drawn(FULL) == [
        "╭────────────────────────── c4-main-s79360-d21400 ───────────────────────────╮",
        "│ playing, waiting: 12,410 of 20,000 rows until training begins     00:02:10 │",
        "│ ━━━━━━━━╸━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 22 % of 10 minutes, 00:07:50 left │",
        "│                                                                            │",
        "│ games              1,204         9.1/s steps                  310    2.4/s │",
        "│ rows              21,400         164/s samples                       614/s │",
        "│ window            21,400               learning rate        0.002          │",
        "│ evaluations                1,204,000/s                                     │",
        "│                                                                            │",
        "│ loss 2.31 (policy 1.72 value 0.59)                                         │",
        "│ rating 412 +-38 against mcts:200                                           │",
        "╰────────────────────────────────────────────────────────────────────────────╯",
    ]


def test_a_small_terminal_gets_lines() -> None:
    for width, height in ((59, 24), (80, 12)):
        text = " ".join(drawn(FULL, width, height))
        assert "─" not in text
        for words in ("00:02:10; playing", "22 % of 10 minutes", "games 1,204", "loss 2.31", "412 +-38"):
            assert words in re.sub(r"\s+", " ", text)
    assert len(drawn(FULL, 80, 13)) == 12


@pytest.mark.parametrize("shown", [RunStatus(), FULL, STRANGE, PARTS, replace(FULL, figures=STRANGE.figures)])
def test_every_size_of_terminal(shown: RunStatus) -> None:
    for width, height in itertools.product((1, 2, 5, 20, 59, 60, 80, 200), (1, 2, 5, 13, 24, 60)):
        lines = drawn(shown, width, height)
        assert max(map(len, lines)) <= width
        assert any("╭" in line for line in lines) <= (len(lines) < height)


def test_an_output_with_letters_only() -> None:
    ascii_only = Console(
        file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"), width=80, height=24, force_terminal=True
    )
    ascii_only.print(RunPanel(FULL))


def test_the_live_display_leaves_the_last_state_below_the_messages() -> None:
    device = console()
    with TerminalDisplay(RunView(), device) as shown:
        shown.update(SOME)
        shown.say("[red]saved[/red] " + "x" * 100)
        print("a library prints")
        shown.update(replace(FULL, counts=RunCounts(games=98765)))
    text = device.file.getvalue()
    assert "[red]saved[/red] " + "x" * 100 + "\n" in text
    assert "a library prints\n" in text
    last = text[text.rindex("╭") :]
    assert "98,765" in last
    assert "\x1b[?25h" in last  # the cursor is shown again
    assert text.rindex("saved") < text.rindex("╭")


def test_the_live_display_survives_resizing() -> None:
    device = console()
    with TerminalDisplay(RunView(), device) as shown:
        for width, height in ((80, 24), (3, 2), (1, 1), (300, 100), (40, 10)):
            device.size = (width, height)  # type: ignore[assignment]
            shown.update(FULL)
            shown.tick()
            shown.say("text")


def test_the_clock_of_the_panel_goes_on_between_updates() -> None:
    now = Clock()
    device = console()
    shown = TerminalDisplay(RunView(now=now), device)
    shown.update(SOME)
    now.time += 5
    device.print(shown.draw())
    assert "00:02:15" in device.file.getvalue()


def test_while_a_program_is_compiled_the_time_left_goes_on() -> None:
    compiling = replace(FULL, stage="compiling the games", waiting="")
    now, device = Clock(), console()
    panel = TerminalDisplay(RunView(now=now), device)
    panel.update(compiling)
    lines, file, clock_of_lines = plain()
    lines.update(compiling)
    now.time += 40
    clock_of_lines.time += 40
    device.print(panel.draw())
    lines.tick()
    for text in (device.file.getvalue(), said(file)[-1]):
        assert "28 % of 10 minutes, 00:07:10 left" in text
    assert "compiling the games, 40 s so far" in device.file.getvalue()
    clock_of_lines.time += 10
    lines.tick()
    assert said(file) == ["00:03:00 still compiling the games, 50 s so far; 30 % of 10 minutes, 00:07:00 left"]


def test_an_error_puts_the_terminal_right() -> None:
    device, before = console(), sys.stdout
    with pytest.raises(KeyboardInterrupt), TerminalDisplay(RunView(), device):
        raise KeyboardInterrupt
    assert sys.stdout is before
    assert device.file.getvalue().endswith("\x1b[?25h")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_which_display(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(stream: io.StringIO) -> type[Display]:
        return type(open_display(RunView(), stream))

    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    assert chosen(Terminal()) is TerminalDisplay
    assert chosen(io.StringIO()) is PlainDisplay
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert chosen(io.StringIO()) is PlainDisplay
    monkeypatch.setenv("TERM", "dumb")
    assert chosen(Terminal()) is PlainDisplay


@pytest.mark.parametrize("wanted", [True, False])
def test_no_color(monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    if not wanted:
        monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    with open_display(RunView(), terminal) as shown:
        shown.update(FULL)
    colours = re.findall(r"\x1b\[(?:\d+;)*(?:3[0-8]|9\d)[;m]", terminal.getvalue())
    assert bool(colours) == wanted


def test_losses_in_words() -> None:
    assert loss_words({}) == ""
    assert loss_words({"loss": 0.0}) == "0.00"
    assert loss_words({"value": 0.00123}) == "value 0.0012"
    assert loss_words({"loss": 1234.5, "a": math.nan, "b": 0.1}) == "1,234.50 (a nan b 0.10)"


def test_lines_about_parts() -> None:
    shown, file, now = plain()
    shown.update(PARTS)
    shown.update(
        replace(PARTS, parts=(replace(SHUFFLE, words="12,500 of 20,000 rows"), TRAIN))
    )  # only a number changed
    shown.update(replace(PARTS, parts=(replace(SHUFFLE, words="writing", waiting=False), TRAIN)))
    now.time += 10
    shown.tick()
    now.time += 10
    shown.tick()
    assert said(file) == [
        "00:02:10 shuffle a1: waiting: 12,410 of 20,000 rows",
        "00:02:10 train main: trained 4,096 samples",
        "00:02:10 shuffle a1: writing",
        "00:02:20 games 1,204; rows 21,400 (164/s); networks 3 accepted, 1 rejected",
        "         shuffle a1: writing (for 00:01:10)",
        "         train main: trained 4,096 samples",
        "00:02:30 still running",
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_panel_with_parts(width: int) -> None:
    lines = drawn(replace(PARTS, network="go-main-s1-d2", goal=FULL.goal), width, 30)
    text = " ".join(" ".join(lines).split())
    for words in (
        "shuffle a1",
        "train main",
        "3 accepted, 1 rejected",
        "00:02:10",
        "go-main-s1-d2",
        "22 % of 10 minutes",
    ):
        assert words in text
    assert all(len(line) <= width for line in lines)
    if width == 200:
        assert "trained 4,096 samples (2 restarts)" in text
        assert "00:01:10" in text


def test_jax_is_not_needed() -> None:
    code = "import sys, tengen.monitor.jsonl_display, tengen.monitor.summary; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_nodes_of_a_cluster_have_lines_below_the_figures() -> None:
    now = itertools.count(0, 20)
    view = RunView(every=10, now=lambda: next(now))
    node = PartStatus("node", "box", words="playing (2 actors)", restarts=1)
    view.update(replace(SOME, parts=(node,), appetite=3_400.0))
    *_, line = view.lines()
    first, second = line.splitlines()
    assert "learner could use 3,400 rows/s" in first
    assert "box" not in first
    assert second == "         node box: playing (2 actors)"
    console = Console(file=io.StringIO(), width=100, height=40)
    console.print(RunPanel(replace(SOME, parts=(node,), appetite=3_400.0)))
    drawn = console.file.getvalue()
    assert "node box" in drawn
    assert "playing (2 actors) (1 restart)" in drawn
    assert "learner could use" in drawn
