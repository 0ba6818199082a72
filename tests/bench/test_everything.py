"""`tengen bench all`: a benchmark that is slow, fails or crashes costs its own figures only."""

import json
import sys
from collections.abc import Iterable, Iterator

import pytest

from tengen.bench import child, everything, parts
from tengen.bench.everything import BenchTable, Doing, Event, Skipped, measure
from tengen.bench.figures import BenchReport, Figure, Machine
from tengen.bench.parts import BenchPart, seconds_left

HERE = Machine("cpu", "cpu", 1, "0.11.2")
GOOD = Figure("good", 2.0, "x")
PROGRAMS = {
    "good": "print(json.dumps({'figure': {'name': 'good', 'value': 2.0, 'unit': 'x'}}))",
    "fails": "print(json.dumps({'error': 'a job: no memory'})); sys.exit(1)",
    "breaks": "raise ImportError('no such module')",
    "crashes": "print('first'); print('the cause', file=sys.stderr); os._exit(9)",
    "hangs": "print(json.dumps({'figure': {'name': 'early', 'value': 1.0, 'unit': 'x'}}), flush=True); time.sleep(1e6)",
}


def part(name: str, share: float = 1.0) -> BenchPart:
    return BenchPart(name, "", (1.0, share), lambda machine: iter(()))


def fake(name: str, _: str) -> list[str]:
    return [sys.executable, "-c", f"import json, os, sys, time; {PROGRAMS[name]}"]


def run(*names: str) -> Iterator[Event]:
    return measure([part(name) for name in names], HERE, 1e6, fake)


def test_what_fails_or_crashes_is_named_and_the_rest_is_measured() -> None:
    events = [event for event in run("fails", "breaks", "crashes", "good") if not isinstance(event, Doing)]
    assert events == [
        Skipped("fails", "a job: no memory", failed=True),
        Skipped("breaks", "ended with code 1: ImportError: no such module", failed=True),
        Skipped("crashes", "ended with code 9: the cause", failed=True),
        GOOD,
    ]


def test_what_takes_too_long_is_ended_and_keeps_its_figures() -> None:
    clock = [0.0]
    found: list[Event] = []
    for event in measure([part("hangs"), part("good")], HERE, 1e6, fake, now=lambda: clock[0]):
        found.append(event)
        if event == Figure("early", 1.0, "x"):
            clock[0] = 6e5  # more than its half
    assert [event for event in found if isinstance(event, Figure)] == [Figure("early", 1.0, "x"), GOOD]
    (late,) = (event for event in found if isinstance(event, Skipped))
    assert late.why.startswith("stopped after 6 days")
    assert not late.failed


def test_what_this_machine_cannot_measure_is_left_out_by_name() -> None:
    events = list(measure([part("program", 0.0)], HERE, 10.0, fake))
    assert events == [Skipped("program", "needs an NVIDIA GPU")]


def test_later_parts_get_the_time_that_earlier_ones_left() -> None:
    one, two = part("one", 1.0), part("two", 3.0)
    assert seconds_left(100.0, one, [two], HERE) == 25.0
    assert seconds_left(90.0, two, [], HERE) == 90.0


def test_a_job_that_fails_does_not_end_the_others(capfd: pytest.CaptureFixture[str]) -> None:
    def bad() -> Iterable[Figure]:
        yield Figure("before", 1.0, "x")
        raise MemoryError("too\nlarge")

    told: list[dict[str, object]] = []
    jobs = [("bad", bad), ("nan", lambda: [Figure("a", float("nan"), "x")]), ("good", lambda: [GOOD])]
    assert child.measure(iter(jobs), lambda **message: told.append(message)) == 1
    assert [message["error"] for message in told if "error" in message] == [
        "bad: too",
        "nan: a: nan is not a measurement",
    ]
    assert [message["figure"]["name"] for message in told if "figure" in message] == ["before", "good"]  # type: ignore[index]
    assert "MemoryError" in capfd.readouterr().err


def test_the_machine_is_found() -> None:
    found = everything.machine()
    assert (found.backend, found.device) == ("cpu", "cpu")


def test_the_table_marks_what_got_worse() -> None:
    before = BenchReport(HERE, (Figure("search", 0.9, "x"), Figure("speed", 10.0, "/s"), Figure("gone", 1.0, "x")))
    table = BenchTable(HERE, before, now=lambda: 0.0)
    assert table.add(Doing("a", "b")) == []
    (row,) = table.add(Figure("search", 0.6, "x", 0.01))
    assert row.split() == ["search", "0.600", "0.900", "0.67x", "worse"]
    assert table.add(Figure("speed", 5.0, "/s"))[0].split() == ["speed", "5.0", "/s"], "speeds of CPUs are not compared"
    assert table.add(Skipped("loop", "needs more")) == ["loop: needs more"]
    text = "\n".join(table.summary(whole=True))
    assert "worse than stored by more than the noise: 1 of 1\n  search: 0.900 -> 0.600 (0.67 times as good" in text
    assert "stored, but not measured now: gone" in text
    assert not table.failed
    assert json.loads(json.dumps(dict(table.report().missing))) == {"loop": "needs more"}


def test_every_part_has_its_jobs() -> None:
    """Nothing is measured: the jobs only have to be listed, with sizes for this kind of machine."""
    for backend in ("cpu", "gpu"):
        machine = Machine("x", backend, 1, "0.11")
        for each in parts.PARTS:
            if each.share(machine):
                assert all(words for words, _ in each.jobs(machine)), each.name
