"""What is told first of a run: alive, stopped or killed; since when, how far, how strong, what next."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tengen.monitor import overview
from tengen.monitor.overview_text import head
from tengen.run import diverged, metrics
from tengen.run.part_status import PartStatus
from tengen.run.status import RatedNetwork

GOAL = "goal: {minutes: 10.0, games: null, rows: null, steps: null}\nrating: {minutes: 3.0}\n"


def a_run(base: Path, elapsed: float, kind: str = "progress", config: str = GOAL, **values: object) -> datetime:
    """A run whose metrics have a line after so many seconds; when that was written."""
    (base / "config.yaml").write_text(config)
    with metrics.Metrics(base, iter([0.0, elapsed]).__next__) as file:
        file.write(kind, {"games": 120, "rows": 900, "steps": 40, **values})
    line = metrics.last(base / metrics.NAME)
    assert line is not None
    return datetime.fromisoformat(line["time"])


def driver(kind: str = "fused", alive: bool = True, running: float = 20.0, seconds: float = 3.0) -> PartStatus:
    return PartStatus(kind, kind, alive, "bigbox", 4711, "learning", False, seconds, running, figures={"steps": 55})


def told(base: Path, *parts: PartStatus, after: float = 0.0, **more: object) -> list[str]:
    now = a_run(base, 300.0) + timedelta(seconds=after)
    return head(overview.summarise(base, parts, {"games": 110, "rows": 950}, now=now, **more))  # type: ignore[arg-type]


def test_a_living_run(tmp_path: Path) -> None:
    first, *rest = told(
        tmp_path, driver(), after=6.0, rated=("c4-main-s9", RatedNetwork(412.3, 38.2, "random")), playable=True
    )
    assert first.startswith("running for 00:00:20, since ")
    assert first.endswith(" (fused, process 4711 on bigbox): learning")
    assert rest == [
        "how far:  51 % of 10 minutes, 00:04:54 left; 120 games, 950 rows, 55 steps",
        "strength: 412 +-38 Elo above random (c4-main-s9)",
        "next:     a rating, which is due; the end in 00:04:54",
        f"          play it: tengen play {tmp_path}",
    ]


def test_since_when_and_for_how_long(tmp_path: Path) -> None:
    first = told(tmp_path, driver(running=200_000.0, seconds=75.0))[0]
    assert first.startswith("running for 2d 07:33:20, since 20")
    assert first.endswith(": learning (for 00:01:15)")


def test_the_next_rating(tmp_path: Path) -> None:
    now = a_run(tmp_path, 300.0, "rating")
    found = overview.summarise(tmp_path, [driver()], {}, now=now)
    assert found.next_rating == 120.0, "a fifth of the goal, which is less than rating.minutes"
    assert overview.summarise(tmp_path, [driver("async")], {}, now=now).next_rating is None, "those do not rate"
    long = GOAL.replace("10.0", "100.0")
    now = a_run(tmp_path, 300.0, "rating", config=long)
    assert overview.summarise(tmp_path, [driver()], {}, now=now).next_rating == 180.0


def test_shortly_before_the_end_no_rating_but_the_last_comes(tmp_path: Path) -> None:
    now = a_run(tmp_path, 430.0, "rating")
    assert overview.summarise(tmp_path, [driver()], {}, now=now).next_rating is None
    assert overview.summarise(tmp_path, [driver()], {}, now=now + timedelta(seconds=20)).next_rating is None


def test_parts_without_a_driver(tmp_path: Path) -> None:
    part = PartStatus("gate", "gate", True, "here", 7, "playing", False, 5.0, 9.0)
    assert told(tmp_path, part)[0].endswith(" (parts without a driver)")
    dead = driver("async", alive=False)
    assert told(tmp_path, dead, part)[0].endswith(" (parts without a driver)")


def test_one_that_was_stopped(tmp_path: Path) -> None:
    assert told(tmp_path, after=185.0) == [
        "stopped 3 minutes ago after 00:05:00",
        "how far:  50 % of 10 minutes, 00:05:00 left; 120 games, 950 rows, 40 steps",
        "strength: not measured yet",
        f"next:     go on: tengen run {tmp_path}",
    ]


def test_one_that_reached_its_goal(tmp_path: Path) -> None:
    now = a_run(tmp_path, 601.0)
    lines = head(overview.summarise(tmp_path, [], {}, now=now))
    assert lines[0] == "stopped 0 seconds ago after 00:10:01: 10 minutes are over"
    assert lines[-1] == f"next:     train further: tengen run {tmp_path} --set goal.minutes=20"


def test_one_that_was_killed(tmp_path: Path) -> None:
    lines = told(tmp_path, driver(alive=False), after=7300.0)
    assert lines[0] == "killed 2 hours ago after 00:05:00 (fused, process 4711 on bigbox), while: learning"
    assert lines[-1] == f"next:     go on: tengen run {tmp_path}"
    (tmp_path / metrics.NAME).unlink()
    assert told(tmp_path, driver("daemon", alive=False))[-1] == f"next:     go on: tengen daemon {tmp_path}"


@pytest.mark.parametrize("config", ["", "goal: 3", "goal: {minutes: many}", "- [", "rating: []"])
def test_a_configuration_that_says_nothing(tmp_path: Path, config: str) -> None:
    now = a_run(tmp_path, 300.0, config=config)
    found = overview.summarise(tmp_path, [driver()], {}, now=now)
    assert (found.status.outlook(), found.next_rating) == (None, None)
    assert "how far:  120 games, 900 rows, 55 steps" in head(found)


def test_for_programs(tmp_path: Path) -> None:
    now = a_run(tmp_path, 300.0)
    found = overview.values(
        overview.summarise(tmp_path, [driver()], {}, ("x", RatedNetwork(1.0, 2.0, "random")), now=now)
    )["overview"]
    assert (found["state"], found["mode"], found["running"]) == ("running", "fused", 20.0)
    assert found["since"] == (now.astimezone(UTC) - timedelta(seconds=20)).isoformat(timespec="seconds")
    assert found["goal"]["share"] == 0.5
    assert found["rating"] == {"elo": 1.0, "error": 2.0, "against": "random", "network": "x"}


def test_garbage_in_the_metrics(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(GOAL)
    strange = '{"time": "soon", "elapsed": 5, "kind": "progress", "games": -1, "rows": [], "steps": true, "loss": 1}\n'
    (tmp_path / metrics.NAME).write_text(strange)
    found = overview.summarise(tmp_path, [], {})
    assert (found.state, found.status.counts.games, found.status.counts.rows, found.status.steps) == (
        "stopped",
        0,
        0,
        0,
    )
    assert head(found)[0] == "stopped at an unknown time after 00:00:05"


def test_a_supervised_run(tmp_path: Path) -> None:
    """Its trainer has no driver, and writes its own metrics."""
    (tmp_path / "config.yaml").write_text(GOAL)
    folder = tmp_path / "train" / "main"
    with metrics.Metrics(folder, iter([0.0, 12.0, 90.0]).__next__) as file:
        file.write("epoch", {"steps": 40, "rows": 900, "losses": {"loss": 2.5}})
        file.write("stopped", {"steps": 58, "rows": 900, "losses": {"loss": 2.25, "policy": 2.0}})
    line = metrics.last(folder / metrics.NAME)
    assert line is not None
    (tmp_path / "selfplay" / "games").mkdir(parents=True)
    (tmp_path / "selfplay" / "games" / "0000000001-games.npz").touch()
    found = overview.summarise(
        tmp_path, [], {"games": 60, "rows": 900}, now=datetime.fromisoformat(line["time"]) + timedelta(seconds=5)
    )
    assert head(found)[:2] == [
        "stopped 5 seconds ago after 00:01:30",
        "how far:  15 % of 10 minutes, 00:08:30 left; 60 games, 900 rows, 58 steps",
    ]
    assert head(found)[-1] == f"next:     go on: tengen train {tmp_path}"
    assert found.losses == {"loss": 2.25, "policy": 2.0}
    (tmp_path / "selfplay" / "games" / "0000000002-a1.npz").touch()  # of self-play
    assert overview.summarise(tmp_path, [], {}).commands == {"go on": f"tengen run {tmp_path}"}


def test_one_that_diverged(tmp_path: Path) -> None:
    folder = tmp_path / "train" / "main"
    folder.mkdir(parents=True)
    diverged.note(folder, "training diverged at step 40: no number\nStart it again:\n  tengen run RUN --set a=1")
    assert told(tmp_path, after=185.0) == [
        "stopped 3 minutes ago after 00:05:00: training diverged at step 40: no number",
        "how far:  50 % of 10 minutes, 00:05:00 left; 120 games, 950 rows, 40 steps",
        "strength: not measured yet",
        "next:     Start it again:",
        "            tengen run RUN --set a=1",
    ]
    assert told(tmp_path, driver())[0].startswith("running"), "it was started again"
    found = overview.values(overview.summarise(tmp_path, [], {}))["overview"]
    assert (found["state"], found["diverged"].splitlines()[1]) == ("diverged", "Start it again:")
    diverged.forget(folder)
    assert overview.summarise(tmp_path, [], {}).state == "stopped"
    (folder / "diverged.json").write_text("garbage")
    assert overview.summarise(tmp_path, [], {}).state == "stopped"


@pytest.mark.parametrize("kind", ["daemon", "network"])
def test_a_daemon_has_no_end_and_goes_on_as_one(tmp_path: Path, kind: str) -> None:
    (tmp_path / "train" / "main").mkdir(parents=True)
    a_run(tmp_path, 300.0)
    (tmp_path / metrics.NAME).rename(tmp_path / "train" / "main" / metrics.NAME)
    with metrics.Metrics(tmp_path / "train" / "main") as file:
        file.write(kind, {"rows": 900, "steps": 40})
    for parts in ((), (driver("daemon", alive=False),)):
        lines = head(overview.summarise(tmp_path, parts, {"games": 0, "rows": 900}))
        assert lines[1] == f"how far:  0 games, 900 rows, {55 if parts else 40} steps"
        assert lines[3:] == [f"next:     go on: tengen daemon {tmp_path}"]
    running = head(overview.summarise(tmp_path, [driver("daemon")], {"games": 0, "rows": 900}))
    assert "the end in" not in "".join(running)
