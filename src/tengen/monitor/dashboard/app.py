"""The dashboard: listens to a `StatusClient`, keeps what it hears in a `Model`, and shows it four times a second."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer

from tengen.monitor.dashboard.client import StatusClient
from tengen.monitor.dashboard.model import LogLine, Model, ProcessEnded
from tengen.monitor.dashboard.panes import (
    ExitPane,
    NetworksPane,
    Pane,
    PipelinePane,
    SchedulePane,
    SelfplayPane,
    TrainingPane,
)
from tengen.monitor.dashboard.widgets import Answer, Heading, Help, LogPane, Quit
from tengen.protocol.messages import ExportNow, StartTraining, StartTrainingImmediately, StopTraining

_BEAT = 0.25  # seconds between two checks for something new
_CLOCK = 1.0  # seconds after which it is redrawn anyway, because ages and times go on


class Dashboard(App[int]):
    """`name` is the run's until a status has another; `config` is for `start_training`, if it is known."""

    CSS_PATH = "app.tcss"
    TITLE = "tengen"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "start_now", "start now"),
        Binding("x", "stop", "stop"),
        Binding("e", "export", "export"),
        Binding("v", "turn", "view"),
        Binding("p", "pause", "pause log"),
        Binding("r", "again", "start again"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "leave", "quit"),
        Binding("ctrl+c,ctrl+q", "leave", "quit", show=False, priority=True),
    ]

    def __init__(
        self, client: StatusClient, name: str, config: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self.client, self._config, self._clock = client, config, clock
        self.model = Model(name, client.name)
        self._drawn, self._drawn_at = -1, 0.0  # of the model's changes, and when
        client.hear = self._hear

    def compose(self) -> ComposeResult:
        yield Heading()
        with Horizontal(id="main"):
            with Vertical(id="left"):
                yield ExitPane()
                yield SelfplayPane()
                yield PipelinePane()
                yield LogPane()
            with Vertical(id="right"):
                yield SchedulePane()
                yield TrainingPane()
                yield NetworksPane()
        yield Footer(compact=True, show_command_palette=False)

    async def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(ValueError, RuntimeError):  # only the first thread may
                loop.add_signal_handler(number, self._hang_up)
        self.screen.query_one(LogPane).focus()
        self.set_interval(_BEAT, self._beat)
        await self.client.start()

    async def on_unmount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(number)
        await self.client.close()

    def _beat(self) -> None:
        """Draw only if there is something new, to leave the CPU to the training."""
        if self.model.changes != self._drawn or self._clock() - self._drawn_at >= _CLOCK:
            self.draw()

    def on_resize(self) -> None:
        self._drawn = -1  # draw again once the panes have their new size

    def draw(self) -> None:
        now, main = self._clock(), self.screen_stack[0]
        self._drawn, self._drawn_at = self.model.changes, now
        for found in main.query("Heading, Pane, LogPane"):
            if isinstance(found, Heading | Pane | LogPane):
                found.show(self.model, now)

    def _hear(self, event: Any) -> None:
        self.model.hear(event, self._clock())
        if isinstance(event, ProcessEnded):
            self.refresh_bindings()
            if self.model.leaving:
                self.exit(event.code or 0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only keys that do something."""
        if action == "again":
            return self.model.ended is not None
        if action in ("start_now", "export"):
            return self.client.orders
        return True

    def action_start_now(self) -> None:
        status = self.model.status
        idle = status is not None and status.schedule.stage in ("IDLE", "ERROR")
        order = StartTraining(self._config) if idle and self._config else StartTrainingImmediately()
        self._order(order, "to start now")

    def action_stop(self) -> None:
        if self.client.orders:
            self._order(StopTraining(), "to stop")
        elif self.client.alive and self.client.ask_to_end():
            self._note(f"asked {self.client.name} to stop; it writes everything first")
        else:
            self._unreachable()

    def action_export(self) -> None:
        self._order(ExportNow(), "to export the network as it is")

    def action_turn(self) -> None:
        self.model.turn()
        self.draw()

    def action_pause(self) -> None:
        log = self.screen.query_one(LogPane)
        log.paused = not log.paused
        self.draw()

    async def action_again(self) -> None:
        if self.model.ended is not None:
            await self.client.start()
            self.refresh_bindings()
            self.draw()

    async def action_help(self) -> None:
        if not isinstance(self.screen, Help):
            await self.push_screen(Help())

    async def action_leave(self) -> None:
        """Ask first if the daemon can stay; a second time ends it at once."""
        if self.model.ended is not None:
            self.exit(self.model.ended.code or 0)
        elif self.model.leaving or isinstance(self.screen, Quit):
            self._at_once()
        elif self.client.stays:
            await self.push_screen(Quit(self.client.name), self._answered)
        else:
            self._end()

    def _answered(self, answer: Answer | None) -> None:
        if answer == "go on":
            self.exit(0)
        elif answer == "shut down":
            self._end()

    def _end(self) -> None:
        """Ask the process to end, and quit when it has."""
        if self.client.alive and self.client.ask_to_end():
            self.model.leaving = True
            self._note(f"asked {self.client.name} to end")
        else:
            self.exit(0)
        self.draw()

    def _at_once(self) -> None:
        if not self.client.stays:
            self.client.signal(signal.SIGKILL)
        self.exit(1)

    def _hang_up(self) -> None:
        """The terminal is closed or the system shuts down: ask a child to end."""
        if self.client.stays or not self.client.alive:
            self.exit(0)
        else:
            self._end()

    def _order(self, message: Any, words: str) -> None:
        if not self.client.orders:
            return
        if self.client.send(message):
            self._note(f"asked {self.client.name} {words}")
        else:
            self._unreachable()

    def _note(self, text: str) -> None:
        self._hear(LogLine("note", text))
        self.notify(text, timeout=2)

    def _unreachable(self) -> None:
        self.notify(f"{self.client.name} cannot be reached", severity="warning", timeout=3)
