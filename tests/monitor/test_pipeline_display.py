"""What is shown of all parts: exact lines where there is no terminal, a panel where there is one."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tengen.monitor.pipeline_display import PartRow, PipelineScreen, PipelineView
from tengen.monitor.progress import Goal, LiveDisplay, PlainDisplay

SHUFFLE = PartRow("shuffle a1", "12,410 of 20,000 rows", waiting=True, seconds=70, share=0.62)
TRAIN = PartRow("train main", "trained 4,096 samples", seconds=5, restarts=2)
RING = PipelineView(
    elapsed=130, games=1204, rows=21400, rows_per_second=164, accepted=3, rejected=1, shown=(SHUFFLE, TRAIN)
)


def test_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    now, file = 0.0, io.StringIO()
    display = PlainDisplay(file, 10.0, lambda: now)
    display.update(RING)
    display.update(replace(RING, shown=(replace(SHUFFLE, words="12,500 of 20,000 rows"), TRAIN)))  # it only counts on
    display.update(replace(RING, shown=(replace(SHUFFLE, words="writing", waiting=False), TRAIN)))
    now = 10.0
    display.tick()
    now = 20.0
    display.tick()
    assert file.getvalue().splitlines() == [
        "00:02:10 shuffle a1: waiting: 12,410 of 20,000 rows",
        "00:02:10 train main: trained 4,096 samples",
        "00:02:10 shuffle a1: writing",
        "00:02:20 games 1,204; rows 21,400 (164/s); networks 3 accepted, 1 rejected",
        "         shuffle a1: writing (for 00:01:10)",
        "         train main: trained 4,096 samples",
        "00:02:30 still running",
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_panel(width: int) -> None:
    file = io.StringIO()
    console = Console(file=file, width=width, height=30, force_terminal=True, color_system=None)
    ring = replace(RING, network="go-main-s1-d2", goal=Goal(minutes=10))
    console.print(PipelineScreen(ring, "00:02:10"))
    text = file.getvalue()
    for words in (
        "shuffle a1",
        "train main",
        "3 accepted, 1 rejected",
        "00:02:10",
        "go-main-s1-d2",
        "22 % of 10 minutes",
    ):
        assert words in " ".join(text.split())
    assert all(len(line) <= width for line in text.splitlines())
    if width == 200:
        assert "trained 4,096 samples (2 restarts)" in text
        assert "00:01:10" in text


def test_on_a_terminal() -> None:
    file = io.StringIO()
    console = Console(file=file, width=100, height=30, force_terminal=True)
    with LiveDisplay(console, drawn=PipelineScreen) as shown:
        shown.update(RING)
        shown.tick()
        shown.say("train ended")
    assert "shuffle a1" in file.getvalue()
    assert "train ended" in file.getvalue()


def test_figures_for_programs() -> None:
    values = RING.values()
    assert (values["rows"], values["accepted"]) == (21400, 3)
    assert "shown" not in values
