"""The dashboard on a terminal that is not there, driven by Textual's pilot, with the stand-in for a daemon."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tengen.monitor.dashboard.app import Dashboard
from tengen.monitor.dashboard.client import Attached, ChildClient, StatusClient, Staying
from tengen.monitor.dashboard.drawing import figure
from tengen.monitor.dashboard.model import LogLine
from tengen.monitor.dashboard.panes import (
    ExitPane,
    NetworksPane,
    Pane,
    PipelinePane,
    SchedulePane,
    SelfplayPane,
    TrainingPane,
)
from tengen.monitor.dashboard.widgets import Help, LogPane, Quit
from tengen.protocol.messages import Log
from tests.helpers.dashboard_samples import loader, selfplay_status, stage, status
from tests.helpers.patience import LONG

STANDIN = [sys.executable, "-m", "tests.helpers.fake_daemon"]
SIZES = [(80, 24), (160, 50)]


class Silent(StatusClient):
    """Nobody: tests say what is heard."""

    def __init__(self) -> None:
        super().__init__("the daemon", "")
        self.sent: list[Any] = []

    async def start(self) -> None:
        self.alive = True

    def send(self, message: Any) -> bool:
        self.sent.append(message)
        return True

    async def _run(self) -> Any:
        raise NotImplementedError


@asynccontextmanager
async def showing(
    client: StatusClient,
    size: tuple[int, int] = (80, 24),
    config: str = "",
    clock: Callable[[], float] = lambda: 1000.0,
) -> AsyncIterator[tuple[Dashboard, Pilot[int]]]:
    """With a clock that stands still: what is shown does not depend on how long the drawing takes."""
    app = Dashboard(client, "go9", config, clock)
    async with app.run_test(size=size) as pilot:
        yield app, pilot


def screen(app: Dashboard) -> list[str]:
    """What is on the terminal, line by line."""
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


def text(app: Dashboard) -> str:
    return "\n".join(screen(app))


async def settle(app: Dashboard, pilot: Pilot[int]) -> None:
    """As after the next beat; twice, because a layout may give panes another size."""
    for _ in range(3):
        app.draw()
        await pilot.pause()


async def until(pilot: Pilot[int], found: Callable[[], Any]) -> None:
    while not found():  # `drive` ends a wait that has no end
        await pilot.pause(0.05)


def drive(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, LONG))


@pytest.mark.parametrize("size", SIZES)
def test_everything_that_matters_is_on_one_screen(size: tuple[int, int]) -> None:
    async def main() -> None:
        async with showing(Silent(), size) as (app, pilot):
            for step in range(100, 3300, 100):
                app.client.hear(status(step))
            app.client.hear(LogLine("stderr", "a line of the log"))
            await settle(app, pilot)
            shown = text(app)
            for words in (
                "go9  TRAINING  network 13, step 3,200 of 5,000",
                "up 1:07:23",
                *("watch", "read", "unpack", "mix", "batch", "consumer", "12/16", "88%", "9.81M", "212/s"),
                *("rejected 3 corrupt, 1 foreign", "networks 12", "410/1,000", "3:01/5:00", "10:20/14:00"),
                *("3,200/5,000", "12.3/s", "2:25 left", f"loss {figure(status(3200).training.loss)}"),
                *("lr 0.002", "policy", "value 0.2", "score 0.1"),
                *("1.8", "1.85", "1.9", "uploading", "failed:", "done", "a line of the log"),
                *("s start now", "x stop", "e export", "v view", "p pause log", "? help", "q quit"),
            ):
                assert words in shown, words
            assert any("\u2801" <= character <= "\u28ff" for character in shown)  # the chart
            assert [len(line) for line in screen(app)] == [size[0]] * size[1]
            for pane in app.screen.query(Pane):
                if pane.display:
                    assert pane.region.width >= 34
                    assert app.screen.region.contains_region(pane.region)
            # Only the list of networks may be longer than its pane.
            scrolls = [pane for pane in app.screen.query(Pane) if pane.display and pane.max_scroll_y]
            assert all(isinstance(pane, NetworksPane) for pane in scrolls)

    drive(main())


@pytest.mark.parametrize("size", SIZES)
def test_a_run_that_plays_itself_has_its_own_pane(size: tuple[int, int]) -> None:
    async def main() -> None:
        async with showing(Silent(), size) as (app, pilot):
            await settle(app, pilot)
            assert not app.screen.query_one(SelfplayPane).display
            app.client.hear(selfplay_status())
            await settle(app, pilot)
            shown = text(app)
            assert app.screen.query_one(SelfplayPane).display
            assert not app.screen.query_one(PipelinePane).display
            for words in ("1,204", "9.1/s", "1.20M/s", "412 +-38 against mcts:200", "1 x o x o x o .", "to play: o"):
                assert words in shown, words

    drive(main())


@pytest.mark.parametrize("size", [(40, 12), (59, 20), (20, 5)])
def test_small_terminals_scroll(size: tuple[int, int]) -> None:
    async def main() -> None:
        async with showing(Silent(), size) as (app, pilot):
            app.client.hear(status())
            await settle(app, pilot)
            assert "TRAINING" in text(app) or size[0] < 40
            await pilot.resize_terminal(80, 24)
            await settle(app, pilot)
            assert "410/1,000" in text(app)

    drive(main())


def test_updates_and_what_nobody_knows_yet_appear() -> None:
    async def main() -> None:
        async with showing(Silent()) as (app, pilot):
            app.client.hear(status(100))
            await settle(app, pilot)
            assert "step 100 of 5,000" in text(app)
            more = replace(
                loader(), stages=(*loader().stages, stage("augment", queue="mirrored", filled=1, capacity=2))
            )
            figures = replace(status(200).training, losses={"policy": 1.0, "ownership": 0.25})
            app.client.hear(status(200, loader=more, training=figures))
            await settle(app, pilot)
            assert "step 200 of 5,000" in text(app)
            assert "augment" in text(app)
            assert "ownership 0.25" in text(app)

    drive(main())


def test_keys_that_give_orders() -> None:
    async def main() -> None:
        client = Silent()
        async with showing(client, config="go9.yaml") as (app, pilot):
            client.hear(status())
            await pilot.press("s", "x", "e")
            idle = replace(status().schedule, stage="IDLE")
            client.hear(status(schedule=idle))
            await pilot.press("s")
            assert [str(order) for order in client.sent] == [
                "StartTrainingImmediately()",
                "StopTraining()",
                "ExportNow()",
                "StartTraining(config_filepath='go9.yaml')",
            ]
            assert [line.text for line in app.model.lines][1] == "asked the daemon to stop"

    drive(main())


def test_keys_for_view_log_and_help() -> None:
    async def main() -> None:
        async with showing(Silent()) as (app, pilot):
            app.client.hear(status())
            await pilot.press("v")
            await settle(app, pilot)
            assert "data pipeline: validation" in text(app)
            assert "loss 1.91" in text(app)
            await pilot.press("v")
            await settle(app, pilot)
            assert "nothing is read for test yet" in text(app)
            await pilot.press("v")
            await settle(app, pilot)
            assert "data pipeline: train" in text(app)
            await pilot.press("p")
            for number in range(5):
                app.client.hear(LogLine("stderr", f"while paused {number}"))
            await settle(app, pilot)
            assert "log: paused, 5 new lines" in text(app)
            assert "while paused" not in text(app)
            await pilot.press("p")
            await settle(app, pilot)
            assert "while paused 4" in text(app)
            await pilot.press("question_mark")
            await pilot.pause()
            assert isinstance(app.screen, Help)
            assert "start now: train at once" in text(app)
            app.draw()  # goes on behind it
            await pilot.press("escape")
            assert not isinstance(app.screen, Help)

    drive(main())


def test_ten_thousand_lines() -> None:
    async def main() -> None:
        async with showing(ChildClient([*STANDIN, "--log", "10000"])) as (app, pilot):
            await until(pilot, lambda: app.model.written >= 10_000)
            await settle(app, pilot)
            assert "line 9999" in text(app)
            log = app.screen.query_one(LogPane)
            assert 1000 <= len(log.lines) <= 1300
            await pilot.press("home")
            await until(pilot, lambda: log.scroll_y == 0)
            app.client.hear(LogLine("stderr", "one more"))
            await settle(app, pilot)
            assert log.scroll_y == 0  # a person reads
            await pilot.press("end")
            await until(pilot, lambda: log.scroll_y == log.max_scroll_y)
            app.client.hear(LogLine("stderr", "the last one"))
            await settle(app, pilot)
            assert "the last one" in text(app)

    drive(main())


def test_lines_are_wrapped_anew_for_another_width() -> None:
    async def main() -> None:
        async with showing(Silent()) as (app, pilot):
            app.client.hear(LogLine("stderr", "word " * 12 + "end"))
            await settle(app, pilot)
            assert not any("word end" in line and line.count("word") == 12 for line in screen(app))
            await pilot.resize_terminal(200, 40)
            await settle(app, pilot)
            assert any(line.count("word") == 12 for line in screen(app))

    drive(main())


def test_garbage_is_shown_as_such() -> None:
    async def main() -> None:
        async with showing(ChildClient([*STANDIN, "--garbage"]), (160, 50)) as (app, pilot):
            await until(pilot, lambda: app.model.status is not None and app.model.status.training.step > 100)
            await settle(app, pilot)
            assert "not a message: not valid JSON" in text(app)
            assert "TRAINING" in screen(app)[0]

    drive(main())


def test_a_daemon_that_dies_is_started_again() -> None:
    async def main() -> None:
        client = ChildClient([*STANDIN, "--fragile"])
        async with showing(client) as (app, pilot):
            await until(pilot, lambda: app.model.status is not None)
            await pilot.press("r")  # does nothing while it lives
            await pilot.press("x")
            await until(pilot, lambda: app.model.ended is not None)
            await settle(app, pilot)
            assert "the daemon has ended with code 3" in screen(app)[0]
            assert "Traceback: the stand-in breaks" in text(app)
            assert "r starts it again, q quits" in text(app)
            assert app.screen.query_one(ExitPane).display
            await pilot.press("s")
            assert "cannot be reached" in str([note.message for note in app._notifications])
            await pilot.press("r")
            await until(pilot, lambda: app.model.ended is None and client.alive)
            app.model.status = None
            await until(pilot, lambda: app.model.status is not None)
            await settle(app, pilot)
            assert not app.screen.query_one(ExitPane).display
            assert "TRAINING" in screen(app)[0]
            client.signal(signal.SIGKILL)
            await until(pilot, lambda: app.model.ended is not None)
            await pilot.press("q")
            await until(pilot, lambda: not app.is_running)
        assert app.return_value == -9

    drive(main())


def test_quitting_ends_the_child_politely() -> None:
    async def main() -> None:
        async with showing(ChildClient(STANDIN)) as (app, pilot):
            await until(pilot, lambda: app.model.status is not None)
            await pilot.press("q")
            await until(pilot, lambda: not app.is_running)
            assert app.model.ended.code == 0
            assert Log("info", "got Shutdown()").text in [line.text for line in app.model.lines]

    drive(main())


STUBBORN = """
import signal, time
signal.signal(signal.SIGINT, lambda *_: print("writing", flush=True))
print("up", flush=True)
time.sleep(3600)
"""


def test_a_run_is_interrupted_and_then_killed() -> None:
    async def main() -> None:
        client = ChildClient([sys.executable, "-c", STUBBORN], "the run", orders=False)
        async with showing(client) as (app, pilot):
            await until(pilot, lambda: app.model.written >= 2)
            assert "start now" not in text(app)
            await pilot.press("e", "s")  # a run takes no orders
            await pilot.press("ctrl+c")
            await until(pilot, lambda: any("writing" in line.text for line in app.model.lines))
            await settle(app, pilot)
            assert "ENDING: the run is writing everything (q again: at once)" in screen(app)[0]
            await pilot.press("q")
            await until(pilot, lambda: not app.is_running)

    drive(main())


def test_a_stopped_run_leaves_the_dashboard() -> None:
    async def main() -> None:
        # Programs that are started in the background of a shell inherit that SIGINT is ignored.
        program = "import signal, sys, time; signal.signal(signal.SIGINT, signal.SIG_DFL); "
        program += "print('going', file=sys.stderr, flush=True); time.sleep(3600)"
        client = ChildClient([sys.executable, "-c", program], "the run", orders=False)
        async with showing(client) as (app, pilot):
            await until(pilot, lambda: any(line.text == "going" for line in app.model.lines))
            await pilot.press("x")
            await until(pilot, lambda: app.model.ended is not None)
            await settle(app, pilot)
            assert "the run was killed by SIGINT" in screen(app)[0]

    drive(main())


def test_joining_leaving_and_shutting_down(tmp_path: Path) -> None:
    path = tmp_path / "daemon.sock"

    async def main() -> None:
        client = Staying([*STANDIN, "--listen", str(path)], path)
        async with showing(client) as (app, pilot):
            await until(pilot, lambda: app.model.status is not None)
            await pilot.press("q")
            assert isinstance(app.screen, Quit)
            await pilot.pause()
            assert "Shall the daemon go on without the dashboard?" in text(app)
            await pilot.press("escape")
            assert not isinstance(app.screen, Quit)
            await pilot.press("q", "g")
            await until(pilot, lambda: not app.is_running)
        assert client._process.poll() is None
        async with showing(Attached(path)) as (app, pilot):
            await until(pilot, lambda: app.model.status is not None)
            await settle(app, pilot)
            assert "TRAINING" in screen(app)[0]
            await pilot.press("q", "s")
            await until(pilot, lambda: not app.is_running)
        assert client._process.wait(LONG) == 0

    drive(main())


def test_a_connection_that_ends_can_be_joined_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with showing(Attached(tmp_path / "none.sock")) as (app, pilot):
            await until(pilot, lambda: app.model.ended is not None)
            await settle(app, pilot)
            assert app.model.ended is not None
            assert "does the daemon listen there?" in app.model.ended.words
            assert "starts it again" in text(app)
            await pilot.press("r")
            await until(pilot, lambda: app.model.written >= 4)
            assert app.model.ended is not None
            await pilot.press("q")

    drive(main())


def test_a_terminal_that_goes_away_ends_a_child(tmp_path: Path) -> None:
    async def main() -> None:
        client = ChildClient(STANDIN)
        async with showing(client) as (app, pilot):
            await until(pilot, lambda: app.model.status is not None)
            os.kill(os.getpid(), signal.SIGTERM)
            await until(pilot, lambda: not app.is_running)
        assert client._process.poll() == 0

    drive(main())


def test_a_daemon_that_says_nothing_is_noticed() -> None:
    now = 1000.0

    async def main() -> None:
        nonlocal now
        async with showing(Silent(), clock=lambda: now) as (app, pilot):
            await settle(app, pilot)
            assert "waiting for the daemon" in screen(app)[0]
            app.client.hear(status())
            now += 30
            await settle(app, pilot)
            assert "no word from the daemon for 0:30" in screen(app)[0]

    drive(main())


def test_panes_are_where_they_are_looked_for() -> None:
    async def main() -> None:
        async with showing(Silent()) as (app, _):
            for kind in (PipelinePane, SchedulePane, TrainingPane, NetworksPane, LogPane):
                assert app.screen.query_one(kind).display

    drive(main())
