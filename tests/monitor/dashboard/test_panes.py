"""What panes draw, for statuses of all kinds and sizes of all kinds."""

import re
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from tengen.monitor.dashboard.drawing import bar, chart, figure, fit, harmless
from tengen.monitor.dashboard.model import Model, ProcessEnded
from tengen.monitor.dashboard.panes import (
    ExitPane,
    NetworksPane,
    PipelinePane,
    SchedulePane,
    SelfplayPane,
    TrainingPane,
)
from tengen.monitor.dashboard.widgets import heading
from tengen.protocol.messages import (
    LoaderStage,
    LoaderStatus,
    NetworkStatus,
    SelfplayStatus,
    TrainingFigures,
    TrainingStatus,
)
from tests.helpers.dashboard_samples import loader, selfplay_status, stage, status

PANES = (PipelinePane, SchedulePane, TrainingPane, NetworksPane, SelfplayPane, ExitPane)


def model_of(*statuses: TrainingStatus) -> Model:
    model = Model("run")
    for number, each in enumerate(statuses):
        model.hear(each, float(number))
    return model


def drawn(kind: Any, model: Model, width: int = 42, height: int = 8) -> str:
    return kind().draw(model, 1.0, width, height).plain


def test_fitting() -> None:
    assert fit("abc", 5) == "abc  "
    assert fit("abcdef", 4) == "abc…"
    assert fit("abcdef", 4, right=True) == "…def"
    assert fit("日本語", 4) == "日 …"


@pytest.mark.parametrize(("share", "full"), [(0, 0), (0.5, 5), (1, 10), (7, 10), (-1, 0), (float("nan"), 0)])
def test_bars(share: float, full: int) -> None:
    text = bar(share, 10).plain
    assert len(text) == 10
    assert text.count("━") == full


def test_a_chart_falls_from_the_top_left_to_the_bottom_right() -> None:
    lines = chart([(0, 3.0), (10, 2.0), (20, 1.0)], 30, 4)
    assert [len(line) for line in lines] == [30] * 4
    assert lines[0].startswith("3│")
    assert lines[-1].startswith("1│")
    columns = [re.search(r"[\u2801-\u28ff]", line.partition("│")[2]).start() for line in lines]
    assert columns == sorted(columns)
    assert lines[-1][-1] not in " \u2800"


def test_the_pipeline_has_a_row_for_each_stage_in_the_order_of_the_flow() -> None:
    rows = drawn(PipelinePane, model_of(status())).splitlines()
    assert [row.split()[0] for row in rows[1:7]] == ["watch", "read", "unpack", "mix", "batch", "consumer"]
    assert rows[2].split() == ["read", "3.1/s", "12.4k", "62%", "━━━╸─", "12/16"]
    assert rows[7:] == [
        "chunks 12.4k train, 610 validation, 0 test",
        "rejected 3 corrupt, 1 foreign: chunk-00412.npz: the file ends too early",
    ]
    assert max(map(len, rows[:8])) <= 42


def test_a_stage_that_stands_still_is_red_and_says_what_it_waits_for() -> None:
    model = model_of(status())
    model.turn()
    text = PipelinePane().draw(model, 1.0, 42, 12)
    red = [text.plain[span.start : span.end].split()[0] for span in text.spans if "red" in str(span.style)]
    assert red == ["read", "read"]
    assert "read waits for files" in text.plain


def test_stages_and_losses_that_nobody_knows_appear() -> None:
    more = replace(loader(), stages=(*loader().stages, stage("augment", queue="mirrored", filled=1, capacity=2)))
    figures = replace(status().training, losses={"policy": 1.0, "ownership": 0.25, "moves_left": 0.125})
    model = model_of(status(loader=more, training=figures))
    assert "augment" in drawn(PipelinePane, model)
    assert "ownership 0.25" in drawn(TrainingPane, model)
    assert "moves_left 0.125" in drawn(TrainingPane, model)


def test_wide_rows_tell_what_stages_do() -> None:
    model = model_of(status())
    model.turn()
    assert "waiting for input 0:34: files" in drawn(PipelinePane, model, 100)


def test_parts_of_a_ring_say_in_words_what_they_do() -> None:
    part = stage("train main", "", doing="trained 4,096 samples", since=12.0, filled=50, capacity=100)
    text = drawn(PipelinePane, model_of(status(loader=replace(loader(), stages=(part,)))), 60)
    assert text == f"train ma… {'trained 4,096 samples (0:12)':43} ━━━───"


def test_the_schedule_next_to_the_cycle_before() -> None:
    rows = [row.split() for row in drawn(SchedulePane, model_of(status()), 34).splitlines()]
    assert rows[1] == ["networks", "12"]
    assert [row[0] + " " + row[-1] for row in rows[2:]] == [
        "chunks 410/1,000",
        "training 3:01/5:00",
        "cycle 10:20/14:00",
    ]


def test_networks_with_their_losses_or_ratings_and_uploads() -> None:
    text = drawn(NetworksPane, model_of(status()), 34)
    assert "loss" in text
    assert "failed:" in text
    assert "uploading" in text
    rated = drawn(NetworksPane, model_of(selfplay_status()), 34)
    assert "Elo" in rated
    assert "412" in rated


def test_a_board_beside_the_figures_or_below_them() -> None:
    beside = drawn(SelfplayPane, model_of(selfplay_status()), 42).splitlines()
    assert beside[0].rstrip() == "rating 412 +-38 against mcts:200"
    assert re.fullmatch(r"games +1,204 +9.1/s +1 2 3 4 5 6 7", beside[1])
    below = drawn(SelfplayPane, model_of(selfplay_status()), 30).splitlines()
    assert "1 x o x o x o ." in below


def test_the_heading_says_first_whether_it_lives() -> None:
    model = model_of(status(100))
    assert heading(model, 1.0, 80).plain.startswith("go9  TRAINING  network 13")
    assert heading(model, 1.0, 80).plain.endswith("up 1:02:14")
    assert "no word from the daemon for 0:30" in heading(model, 30.0, 80).plain
    model.hear(ProcessEnded("the daemon was killed by SIGKILL", -9), 31.0)
    assert "the daemon was killed by SIGKILL" in heading(model, 31.0, 80).plain


def _all(kind: type, **chosen: Any) -> Any:
    """Any such message, those fields that have defaults too."""
    return st.builds(kind, **({field.name: ... for field in fields(kind)} | chosen))


_STAGES = st.lists(_all(LoaderStage, doing=st.sampled_from(["working", "idle", "strange"])), max_size=4).map(tuple)
_STATUSES = st.builds(
    TrainingStatus,
    loader=st.none() | st.builds(LoaderStatus, stages=_STAGES, last_rejected=...),
    training=st.none() | _all(TrainingFigures),
    networks=st.lists(_all(NetworkStatus), max_size=3).map(tuple),
    selfplay=st.none() | _all(SelfplayStatus),
)


@settings(max_examples=80)
@given(st.lists(_STATUSES, min_size=1, max_size=3), st.integers(1, 200), st.integers(0, 60))
def test_anything_can_be_drawn_at_any_size(statuses: list[TrainingStatus], width: int, height: int) -> None:
    model = model_of(*statuses)
    for _ in range(3):
        for kind in PANES:
            kind().draw(model, 5.0, width, height)
        assert "\n" not in heading(model, 5.0, width).plain
        model.turn()


def test_figures_are_short() -> None:
    assert [figure(value) for value in (1.23456, 0.00012345, 12345.6, None, float("inf"))] == [
        "1.235",
        "0.0001234",
        "1.235e+04",
        "",
        "?",
    ]


def test_control_characters_of_a_status_stay_in_it() -> None:
    schedule = replace(status().schedule, words="\x1b[2Jcleared\nand more")
    shown = heading(model_of(status(schedule=schedule)), 1.0, 80).plain
    assert "cleared and more" in shown
    assert "\x1b" not in shown
    assert harmless(Text("a\x1b[2Jb\nc")).plain == "ab\nc"
