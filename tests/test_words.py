"""Numbers as people read them."""

import math
import shutil
import sys
from typing import Any

import pytest

from tengen.words import (
    age,
    clock,
    counted,
    duration,
    figure,
    first_few,
    in_bytes,
    printable,
    program,
    rate,
    short,
    short_clock,
    short_rate,
)


def test_clock() -> None:
    times = (0, 59.9, 3600, 86_399, 86_400, 200_000)
    words = ["00:00:00", "00:00:59", "01:00:00", "23:59:59", "1d 00:00:00", "2d 07:33:20"]
    assert [clock(time) for time in times] == words
    assert {clock(time) for time in (-1, math.nan, math.inf)} == {"--:--:--"}


def test_short_times() -> None:
    times = (0, 61, 3723, 200_000, math.nan, None)
    assert [short_clock(time) for time in times] == ["0:00", "1:01", "1:02:03", "2d 07:33:20", "--:--:--", ""]
    assert [age(time) for time in (5, 90, 7200, 90_000, math.inf)] == ["5s", "1m", "2h", "1d", "?"]


def test_durations() -> None:
    times = (0, 1, 59, 60, 119, 7100, 7200, 10_000, 172_800)
    words = "0 seconds, 1 second, 59 seconds, 1 minute, 2 minutes, 118 minutes, 2 hours, 3 hours, 2 days"
    assert ", ".join(map(duration, times)) == words


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (9999, "9,999"),
        (12_345, "12.3k"),
        (123_456, "123k"),
        (1_234_567, "1.23M"),
        (0.123, "0.12"),
        (3.14159, "3.1"),
        (212.4, "212"),
        (-5, "-5"),
        (math.nan, "?"),
        (10**400, "?"),
        (None, ""),
    ],
)
def test_numbers_in_few_columns(number: Any, text: str) -> None:
    assert short(number) == text


def test_rates() -> None:
    speeds = (None, 0.0, 0.2512, 9.14, 1204.4)
    assert [rate(speed) for speed in speeds] == ["", "0.0/s", "0.25/s", "9.1/s", "1,204/s"]
    assert [short_rate(speed) for speed in (None, 3, 12_345)] == ["", "3.0/s", "12.3k/s"]


def test_sizes() -> None:
    sizes = (10, 1500, 1_234_567, 5 * 10**9, 2 * 10**15)
    assert [in_bytes(size) for size in sizes] == ["10 bytes", "1.5 kB", "1.2 MB", "5.0 GB", "2,000.0 TB"]


def test_figures_and_counts() -> None:
    assert [figure(value) for value in (0.0, 0.00123, 2.314, 1234.5, math.nan)] == [
        "0.00",
        "0.0012",
        "2.31",
        "1,234.50",
        "nan",
    ]
    assert [counted(1, "game"), counted(1204, "game"), counted(1.5, "minute")] == [
        "1 game",
        "1,204 games",
        "1.5 minutes",
    ]


def test_first_few() -> None:
    lines = [f"{number}.npz" for number in range(9)]
    assert first_few(lines[:5], "not used") == lines[:5]
    assert first_few(lines[:6], "not used") == [*lines[:5], "and 1 more file is not used"]
    assert first_few(lines, "not used") == [*lines[:5], "and 4 more files are not used"]
    assert first_few(lines[:5], "not used", 1205) == [*lines[:5], "and 1,200 more files are not used"]


def test_plurals() -> None:
    assert [counted(1, "inaccuracy"), counted(2, "inaccuracy"), counted(2, "day")] == [
        "1 inaccuracy",
        "2 inaccuracies",
        "2 days",
    ]


def test_printable() -> None:
    assert printable("a\x1b[31mb\nc\u202ed é") == "a [31mb c d é"


@pytest.mark.parametrize(
    ("called", "found", "name"),
    [
        (".venv/bin/tengen", None, ".venv/bin/tengen"),
        (".venv/bin/tengen", "/usr/bin/tengen", "tengen"),
        ("tengen", None, "tengen"),
        ("/here/tengen/__main__.py", None, "tengen"),
    ],
)
def test_the_program_as_it_can_be_called(
    called: str, found: str | None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called, "run"])
    monkeypatch.setattr(shutil, "which", lambda name: found)
    assert program() == name
