"""A run of tic-tac-toe that is as small as can be, and a display that remembers what was said."""

from collections.abc import Callable
from pathlib import Path

from tengen.config import load
from tengen.config.sections import Config
from tengen.loop.fused import Fused
from tengen.monitor.display import Display
from tengen.monitor.run_view import RunView
from tengen.run.status import RunStatus

TINY = (
    "net.name=b1c8",
    "search.simulations=4",
    "selfplay.games=8",
    "selfplay.cheap_simulations=2",
    "data.first_rows=50",
    "data.chunk_rows=60",
    "data.ring_rows=300",
    "data.record_share=0.5",
    "train.batch=16",
    "train.checkpoints.interval=20",
    "rating.games=2",
    "rating.simulations=2",
    "rating.opening_moves=1",
    "rating.references=[random]",
    "goal.minutes=null",
)


def tiny(*overrides: str) -> Config:
    """The configuration, with changes."""
    return load("tic_tac_toe", settings(*overrides))


def settings(*overrides: str) -> list[str]:
    """Of the tiny run, with changes."""
    return list({text.partition("=")[0]: text for text in (*TINY, *overrides)}.values())


class Listener(Display):
    """Remembers."""

    def __init__(self) -> None:
        super().__init__(RunView(), 3600.0)
        self.said: list[str] = []
        self.shown: list[RunStatus] = []

    def update(self, state: RunStatus) -> None:
        super().update(state)
        self.shown.append(state)

    def say(self, text: str) -> None:
        self.said.append(text)

    def tick(self) -> None:
        pass


def prepared(base: Path, *overrides: str) -> Fused:
    """A run that is ready to go on in `base`."""
    loop = Fused(tiny(*overrides), base, Listener())
    loop.prepare()
    return loop


def never() -> bool:
    return False


def after(calls: int) -> Callable[[], bool]:
    """A `stop` that says so from the given call on."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > calls

    return stop
