"""A daemon's run that is as small as can be: chunks of random rows, and somebody who remembers what was told."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tengen.daemon.cycle import DaemonCycle
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.protocol import messages
from tests.helpers.game_recording import make
from tests.helpers.patience import LONG
from tests.helpers.tiny_runs import settings
from tests.helpers.train_samples import random_rows

DAEMON = (
    "daemon.chunks_per_network=3",
    "daemon.steps_per_network=5",
    "daemon.validation=0.3",
    "daemon.validation_rows=16",
    "daemon.loader.pool_chunks=50",
    "daemon.loader.reservoir_rows=64",
    "daemon.poll_seconds=0.02",
    "train.checkpoints.interval=2",
)


def overrides(*more: str) -> list[str]:
    """Of the tiny run, with changes."""
    return settings(*{text.partition("=")[0]: text for text in (*DAEMON, *more)}.values())


def chunk(folder: Path, number: int, rows: int = 40) -> Path:
    """A good chunk, which appears by renaming."""
    game = make("tic_tac_toe")
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{number:06}.npz"
    write_chunk(hidden, RowFormat.of(game), random_rows(game, rows, (), number), GameIdentity.of(game), network="n")
    return hidden.rename(folder / f"{number:06}.npz")


def chunks(base: Path, start: int, count: int) -> None:
    for number in range(start, start + count):
        chunk(base / "selfplay", number)


class Told:
    """All that a core told."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.lines: list[str] = []

    def log(self, level: str, text: str) -> None:
        self.lines.append(f"{level}: {text}")

    def of(self, kind: type) -> list[Any]:
        return [message for message in self.messages if isinstance(message, kind)]

    @property
    def networks(self) -> list[str]:
        return [message.name for message in self.of(messages.NetworkExported)]

    @property
    def errors(self) -> list[str]:
        return [message.what for message in self.of(messages.Error)]


@contextmanager
def running(base: Path, *more: str) -> Iterator[tuple[DaemonCycle, Told]]:
    """A core on its thread, in this process."""
    told = Told()
    core = DaemonCycle(told.messages.append, told.log, base, overrides(*more))
    core.start()
    try:
        yield core, told
    finally:
        core.post(messages.Shutdown())
        assert core.ended.wait(LONG)
