"""What the dashboard knows, without a screen."""

from dataclasses import replace
from typing import Any

import pytest

from tengen.monitor.dashboard.model import (
    LINES,
    Curve,
    LogLine,
    Model,
    ProcessEnded,
    ProcessStarted,
    clean,
    still,
)
from tengen.protocol.messages import Error, Log, NetworkExported, StopTraining
from tests.helpers.dashboard_samples import loader, stage, status


def heard(*events: Any, at: float = 10.0) -> Model:
    model = Model("run")
    for event in events:
        model.hear(event, at)
    return model


def texts(model: Model) -> list[str]:
    return [line.text for line in model.lines]


def test_the_log_has_everything_for_people_in_its_order() -> None:
    model = heard(
        LogLine("stderr", "a warning of JAX"),
        Log("info", "three\nlines\nof text"),
        Error("no space", "chunk 7", True),
        Error("no device", "", False),
        LogLine("garbage", "not a message: no JSON"),
        StopTraining(),
    )
    assert texts(model) == [
        "a warning of JAX",
        "three",
        "lines",
        "of text",
        "error: chunk 7: no space",
        "error: no device; it does not go on",
        "not a message: no JSON",
        "StopTraining is not a message that the daemon sends",
    ]
    assert [line.kind for line in model.lines] == ["stderr", *["info"] * 3, "error", "error", "garbage", "garbage"]


def test_what_comes_as_a_message_and_on_standard_error_is_shown_once() -> None:
    exported = NetworkExported("n", "models/n", 7, 8, 1.25)
    words = "exported n (step 7, validation loss 1.25): models/n"
    model = heard(
        Log("info", "two\nlines"),
        LogLine("stderr", "12:00:00 two"),
        LogLine("stderr", "lines"),
        LogLine("stderr", "12:00:01 warning: late"),
        Log("warning", "late"),
        Error("no space", "disk", True),
        LogLine("stderr", "12:00:02 error: disk: no space"),
        exported,
        LogLine("stderr", f"12:00:03 {words}"),
        LogLine("stderr", "12:00:04 two"),  # said again: shown again
        Log("info", "twice"),
        Log("info", "twice"),
    )
    shown = ["two", "lines", "12:00:01 warning: late", "error: disk: no space", words, "12:00:04 two", "twice", "twice"]
    assert texts(model) == shown
    assert model.tail()[-1] == "12:00:04 two"


def test_only_the_last_lines_are_kept_and_all_are_counted() -> None:
    model = heard(*(LogLine("stderr", f"line {number}") for number in range(10_000)))
    assert (len(model.lines), model.written) == (LINES, 10_000)
    assert texts(model)[0] == "line 9000"
    assert model.tail()[-1] == "line 9999"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("10 %\r20 %\r30 %", "30 %"),
        ("the end\r", "the end"),
        ("a\tb", "a   b"),
        ("\x1b]0;title\x07bell\x07\x00", "bell"),
        ("x" * 3000, "x" * 2000 + "... (3,000 characters)"),
    ],
)
def test_lines_are_made_harmless(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_views_choose_stages_losses_and_curve() -> None:
    model = heard(status(100), status(200))
    assert [stage.name for stage in model.stages()] == ["watch", "read", "unpack", "mix", "batch", "consumer"]
    assert model.losses()[0] == status(200).training.loss
    assert [step for step, _ in model.curve] == [60_100, 60_200]
    assert model.turn() == "validation"
    assert model.losses() == (1.91, {"policy": 1.4, "value": 0.51})
    assert model.curve == [(60_100, 1.91)]  # there was one validation
    assert model.turn() == "test"
    assert [stage.name for stage in model.stages()] == ["watch"]
    assert (model.losses(), model.curve) == ((None, {}), [])
    assert model.turn() == "train"


def test_a_split_that_nobody_knows_has_a_view_too() -> None:
    more = replace(loader(), stages=(*loader().stages, stage("read", "opening")))
    model = heard(status(loader=more))
    assert [model.turn() for _ in range(4)] == ["validation", "test", "opening", "train"]


def test_an_exported_network_is_there_before_the_next_status() -> None:
    model = heard(status())
    model.hear(NetworkExported("fresh", "models/fresh", 7, 8, 1.25), 12.0)
    first, second = model.networks(15.0)[:2]
    assert (first.name, first.seconds, first.validation_loss) == ("fresh", 3.0, 1.25)
    assert (second.name, second.seconds) == ("go9-main-s49152-d12000", 60.0 + 5.0)
    told = replace(status().networks[0], name="fresh", upload="done")
    model.hear(status(networks=(told,)), 16.0)
    assert [(network.name, network.upload) for network in model.networks(16.0)] == [("fresh", "done")]


def test_time_goes_on_between_statuses_and_stops_at_the_end() -> None:
    model = heard(status(0), at=10.0)
    assert model.uptime(12.5) == 3723.0 + 2.5
    assert model.silence(14.9) == 0.0
    assert model.silence(17.0) == 7.0
    model.hear(ProcessEnded("killed", -9), 20.0)
    assert model.uptime(99.0) == 3723.0
    assert model.silence(99.0) == 0.0


def test_an_end_and_a_new_start() -> None:
    model = heard(
        ProcessStarted("go"), LogLine("stderr", "before"), ProcessEnded("the daemon has ended with code 1", 1)
    )
    assert model.ended == ProcessEnded("the daemon has ended with code 1", 1)
    assert model.tail() == ["before"]
    model.hear(ProcessStarted("again"), 11.0)
    assert model.ended is None
    assert model.tail() == []
    assert texts(model)[-1] == "again"


def test_last_words_are_what_came_after_the_last_status() -> None:
    assert list(heard(LogLine("stderr", "early"), status(), LogLine("stderr", "the summary")).last_words) == [
        "the summary"
    ]


def test_one_that_only_talks_on_its_output_has_last_words_too() -> None:
    assert heard(LogLine("garbage", "not a message: not valid JSON: x")).tail() == ["not a message: not valid JSON: x"]
    assert heard(LogLine("garbage", "not a message: not valid JSON: x"), LogLine("stderr", "why")).tail() == ["why"]


@pytest.mark.parametrize(
    ("change", "red"),
    [
        ({}, False),
        ({"rate": 0.0, "last_second": 0.0, "since": 9.0}, True),  # at the same piece of work for long
        ({"rate": 0.0, "last_second": 0.0, "since": 9.0, "doing": "waiting for input"}, True),
        ({"rate": 0.0, "last_second": 0.0, "since": 2.0}, False),
        ({"rate": 0.1, "last_second": 0.0, "since": 9.0}, False),
        ({"rate": 0.0, "last_second": 0.0, "since": 9.0, "doing": "ended"}, False),
        ({"rate": 0.0, "last_second": 0.0, "since": 9.0, "doing": "idle"}, False),
    ],
)
def test_what_stands_still(change: dict[str, Any], red: bool) -> None:
    assert still(stage("read", **change)) == red


def test_a_long_curve_keeps_its_shape_in_few_points() -> None:
    curve = Curve()
    for step in range(100_000):
        curve.add(step, step / 2)
    assert 500 <= len(curve.points) <= 2000
    assert curve.points[0] == (0, 0.0)
    assert curve.points[-1][0] > 99_000
    assert all(value == step / 2 for step, value in curve.points)


def test_a_restart_from_an_earlier_step_forgets_what_came_after_it() -> None:
    curve = Curve()
    for step in (1, 2, 3, 4, 2, 3):
        curve.add(step, float(step))
    assert [step for step, _ in curve.points] == [1, 2, 3]
