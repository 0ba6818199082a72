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

from tengen.monitor.progress import (
    Display,
    Goal,
    LiveDisplay,
    Outlook,
    PlainDisplay,
    RatedNetwork,
    RunProgress,
    Screen,
    clock,
    display,
    loss_words,
)

SOME = RunProgress(
    stage="playing",
    elapsed=130,
    network="c4-main-s79360-d21400",
    games=1204,
    games_per_second=9.1,
    rows=21400,
    window=21400,
    steps=310,
    learning_rate=0.002,
    loss=2.31,
    losses={"policy": 1.72, "value": 0.59},
    rating=RatedNetwork(412.3, 38),
)
FULL = replace(
    SOME,
    waiting="12,410 of 20,000 rows until training begins",
    rows_per_second=164.2,
    evaluations_per_second=1_204_000,
    steps_per_second=2.44,
    samples_per_second=614,
    rating=RatedNetwork(412.3, 38, "mcts:200"),
    goal=Goal(minutes=10),
)
STRANGE = RunProgress(
    stage="s" * 300,
    waiting="w\n[red]" * 20,
    elapsed=math.nan,
    network="[n" * 100,
    games=10**15,
    games_per_second=math.inf,
    rows=-1,
    rows_per_second=math.nan,
    evaluations_per_second=1e-9,
    window=2**70,
    steps_per_second=-math.inf,
    samples_per_second=0.0,
    learning_rate=math.nan,
    loss=math.inf,
    losses={f"head {number}": math.nan for number in range(40)},
    rating=RatedNetwork(math.nan, math.inf, "a" * 90),
    goal=Goal(0, 0, 0, 0),
)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def plain(every: float = 10.0) -> tuple[PlainDisplay, io.StringIO, Clock]:
    """A display without its thread."""
    file, now = io.StringIO(), Clock()
    return PlainDisplay(file, every, now), file, now


def said(file: io.StringIO) -> list[str]:
    """What was printed since the last time."""
    lines = file.getvalue().splitlines()
    file.seek(0)
    file.truncate()
    return lines


def console(width: int = 80, height: int = 24, **options: object) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, **{"_environ": {}, **options})


def drawn(progress: RunProgress, width: int = 80, height: int = 24, **options: object) -> list[str]:
    """The lines of a screen, without colours."""
    device = console(width, height, **options)
    with device.capture() as captured:
        device.print(Screen(progress, clock(progress.elapsed)))
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
    shown.update(replace(FULL, elapsed=140))
    assert said(file) == [
        "00:02:10 playing, waiting: 12,410 of 20,000 rows until training begins",
        "00:02:20 games 1,204 (9.1/s) rows 21,400 (164/s) evaluations 1,204,000/s window 21,400 steps 310 (2.4/s) "
        "samples 614/s loss 2.31 (policy 1.72 value 0.59) lr 0.002 rating 412 +-38 against mcts:200; "
        "23 % of 10 minutes, 00:07:40 left; waiting: 12,410 of 20,000 rows until training begins",
    ]


def test_lines_hold_what_changed_and_nobody_waits_in_silence() -> None:
    shown, file, now = plain()
    shown.update(RunProgress("playing", games=1))
    assert said(file) == ["00:00:00 playing"]
    for _ in range(9):
        now.time += 1
        shown.tick()
    assert said(file) == []
    now.time += 1
    shown.tick()
    assert said(file) == ["00:00:10 games 1"]
    shown.update(RunProgress("playing", elapsed=10, games=1, rows=7, learning_rate=1e-5))
    now.time += 10
    shown.tick()
    assert said(file) == ["00:00:20 rows 7 lr 1e-05"]
    now.time += 10
    shown.tick()
    assert said(file) == ["00:00:30 still playing"]


def test_a_new_stage_or_wait_is_said_at_once_but_counting_is_not() -> None:
    shown, file, _ = plain()
    shown.update(RunProgress("playing", "0 of 20,000 rows"))
    shown.update(RunProgress("playing", "1,024 of 20,000 rows"))
    shown.update(RunProgress("playing", "1,024 of 20,000 games"))
    shown.update(RunProgress("training"))
    assert said(file) == [
        "00:00:00 playing, waiting: 0 of 20,000 rows",
        "00:00:00 playing, waiting: 1,024 of 20,000 games",
        "00:00:00 training",
    ]


def test_stages_that_alternate_do_not_flood() -> None:
    shown, file, now = plain()
    for step, stage in itertools.product(range(95), ("playing", "training")):
        now.time = 1000 + step / 10
        shown.update(RunProgress(stage, elapsed=step / 10, games=5))
    assert said(file) == ["00:00:00 playing", "00:00:00 training"]
    now.time += 60
    shown.update(RunProgress("playing a match", elapsed=69.4))
    shown.update(RunProgress("playing", elapsed=69.4))  # for the first time in a minute
    shown.update(RunProgress("playing a match", elapsed=69.4))
    assert [line.split(" ", 1)[1] for line in said(file)] == ["playing a match", "still playing a match", "playing"]


def test_the_end_shows_what_was_not_yet_shown() -> None:
    shown, file, _ = plain()
    shown.update(RunProgress("playing", games=1))
    shown.close()
    shown.close()
    assert said(file) == ["00:00:00 playing", "00:00:00 games 1"]


def test_messages_are_printed_as_they_are() -> None:
    shown, file, _ = plain()
    shown.say("[red]saved[/red] 100 %")
    assert said(file) == ["[red]saved[/red] 100 %"]


def test_a_thread_keeps_lines_coming() -> None:
    reader, writer = os.pipe()
    with open(reader) as lines, open(writer, "w") as file, PlainDisplay(file, every=0.01) as shown:
        assert lines.readline().split(" ", 1)[1] == "starting\n", "before anything is known"
        shown.update(RunProgress("compiling"))
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
    for shown in (PlainDisplay(Failing(error)), LiveDisplay(Console(file=Failing(error), force_terminal=True))):
        with shown:
            shown.update(SOME)
            shown.say("text")


def test_a_pipe_that_nobody_reads_stops_a_run() -> None:
    with pytest.raises(BrokenPipeError):
        PlainDisplay(Failing(BrokenPipeError())).update(SOME)


def test_characters_that_the_output_does_not_have() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    PlainDisplay(file).say("五 in a row")
    assert file.buffer.getvalue() == rb"\u4e94 in a row" + os.linesep.encode()


def test_no_output_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with display() as shown:
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


@pytest.mark.parametrize("progress", [RunProgress(), FULL, STRANGE, replace(FULL, losses=STRANGE.losses)])
def test_every_size_of_terminal(progress: RunProgress) -> None:
    for width, height in itertools.product((1, 2, 5, 20, 59, 60, 80, 200), (1, 2, 5, 13, 24, 60)):
        lines = drawn(progress, width, height)
        assert max(map(len, lines)) <= width
        assert any("╭" in line for line in lines) <= (len(lines) < height)


def test_an_output_with_letters_only() -> None:
    ascii_only = Console(
        file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"), width=80, height=24, force_terminal=True
    )
    ascii_only.print(Screen(FULL, "00:02:10"))


def test_the_live_display_leaves_the_last_state_below_the_messages() -> None:
    device = console()
    with LiveDisplay(device) as shown:
        shown.update(SOME)
        shown.say("[red]saved[/red] " + "x" * 100)
        print("a library prints")
        shown.update(replace(FULL, games=98765))
    text = device.file.getvalue()
    assert "[red]saved[/red] " + "x" * 100 + "\n" in text
    assert "a library prints\n" in text
    last = text[text.rindex("╭") :]
    assert "98,765" in last
    assert "\x1b[?25h" in last  # the cursor is shown again
    assert text.rindex("saved") < text.rindex("╭")


def test_the_live_display_survives_resizing() -> None:
    device = console()
    with LiveDisplay(device) as shown:
        for width, height in ((80, 24), (3, 2), (1, 1), (300, 100), (40, 10)):
            device.size = (width, height)  # type: ignore[assignment]
            shown.update(FULL)
            shown.tick()
            shown.say("text")


def test_the_clock_of_the_panel_goes_on_between_updates() -> None:
    now = Clock()
    device = console()
    shown = LiveDisplay(device, now)
    shown.update(SOME)
    now.time += 5
    device.print(shown._screen())
    assert "00:02:15" in device.file.getvalue()


def test_while_a_program_is_compiled_the_time_left_goes_on() -> None:
    compiling = replace(FULL, stage="compiling the games", waiting="")
    now, device = Clock(), console()
    panel = LiveDisplay(device, now)
    panel.update(compiling)
    lines, file, clock_of_lines = plain()
    lines.update(compiling)
    now.time += 40
    clock_of_lines.time += 40
    device.print(panel._screen())
    lines.tick()
    for text in (device.file.getvalue(), said(file)[-1]):
        assert "28 % of 10 minutes, 00:07:10 left" in text
    assert "compiling the games, 40 s so far" in device.file.getvalue()
    clock_of_lines.time += 10
    lines.tick()
    assert said(file) == ["00:03:00 still compiling the games, 50 s so far; 30 % of 10 minutes, 00:07:00 left"]


def test_an_error_puts_the_terminal_right() -> None:
    device, before = console(), sys.stdout
    with pytest.raises(KeyboardInterrupt), LiveDisplay(device):
        raise KeyboardInterrupt
    assert sys.stdout is before
    assert device.file.getvalue().endswith("\x1b[?25h")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_which_display(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(stream: io.StringIO) -> type[Display]:
        return type(display(stream))

    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    assert chosen(Terminal()) is LiveDisplay
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
    with display(terminal) as shown:
        shown.update(FULL)
    colours = re.findall(r"\x1b\[(?:\d+;)*(?:3[0-8]|9\d)[;m]", terminal.getvalue())
    assert bool(colours) == wanted


@pytest.mark.parametrize(
    ("progress", "outlook"),
    [
        (RunProgress(elapsed=60), None),
        (RunProgress(elapsed=150, goal=Goal(minutes=10)), Outlook("10 minutes", 0.25, 450)),
        (RunProgress(elapsed=45, goal=Goal(minutes=1.5)), Outlook("1.5 minutes", 0.5, 45)),
        (RunProgress(elapsed=700, goal=Goal(minutes=10)), Outlook("10 minutes", 1.0, 0)),
        # By the present speed, by the mean if there is none, or not at all.
        (RunProgress(elapsed=9, games=100, games_per_second=50, goal=Goal(games=4000)), Outlook("4,000 games", 0.025, 78)),
        (RunProgress(elapsed=10, rows=100, goal=Goal(rows=400)), Outlook("400 rows", 0.25, 30)),
        (RunProgress(elapsed=10, goal=Goal(steps=400)), Outlook("400 steps", 0.0, None)),
        # Whichever ends first.
        (RunProgress(elapsed=60, rows=10, rows_per_second=1, goal=Goal(10, rows=70)), Outlook("70 rows", 1 / 7, 60)),
        (RunProgress(elapsed=60, rows=10, rows_per_second=1, goal=Goal(1.5, rows=70)), Outlook("1.5 minutes", 2 / 3, 30)),
        (RunProgress(goal=Goal(steps=0)), Outlook("0 steps", 1.0, 0)),
    ],
)  # fmt: skip
def test_outlook(progress: RunProgress, outlook: Outlook | None) -> None:
    found = progress.outlook()
    if outlook is None or found is None:
        assert found is outlook
        return
    assert (found.goal, found.share) == (outlook.goal, pytest.approx(outlook.share))
    assert found.left == (None if outlook.left is None else pytest.approx(outlook.left))


def test_an_outlook_in_words() -> None:
    assert str(Outlook("10 minutes", 0.256, 445.9)) == "26 % of 10 minutes, 00:07:25 left"
    assert str(Outlook("400 steps", 0, None)) == "0 % of 400 steps"


def test_clock() -> None:
    times = (0, 59.9, 3600, 86_399, 86_400, 200_000)
    words = ["00:00:00", "00:00:59", "01:00:00", "23:59:59", "1d 00:00:00", "2d 07:33:20"]
    assert [clock(time) for time in times] == words
    assert {clock(time) for time in (-1, math.nan, math.inf)} == {"--:--:--"}


def test_losses_in_words() -> None:
    assert loss_words(None, {}) == ""
    assert loss_words(0.0, {}) == "0.00"
    assert loss_words(None, {"value": 0.00123}) == "value 0.0012"
    assert loss_words(1234.5, {"a": math.nan, "b": 0.1}) == "1,234.50 (a nan b 0.10)"


def test_values_for_the_metrics() -> None:
    values = FULL.values()
    assert values["losses"] == {"policy": 1.72, "value": 0.59}
    assert (values["stage"], values["games"], values["steps"]) == ("playing", 1204, 310)
    assert not {"elapsed", "rating", "goal", "time", "kind"} & set(values)


def test_jax_is_not_needed() -> None:
    code = "import sys, tengen.loop.progress, tengen.loop.metrics, tengen.loop.summary; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
