"""What the daemon and its clients say to each other, one JSON object a line: {"type": ..., "payload": {...}}.

Each message is a frozen dataclass, registered under its type. Payloads have exactly these fields; those with a default
may be missing. docs/protocol.md shows an example of each. Needs no JAX.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

Kind = TypeVar("Kind", bound=type)
TYPES: dict[str, type] = {}
"""Type -> dataclass of its payload."""


def message(name: str) -> Callable[[Kind], Kind]:
    """Register a dataclass as the payload of messages of that type."""

    def register(kind: Kind) -> Kind:
        TYPES[name] = kind
        return kind

    return register


# To the daemon.


@message("start_training")
@dataclass(frozen=True)
class StartTraining:
    """Train by this configuration, as soon as there are enough new chunks."""

    config_filepath: str


@message("start_training_immediately")
@dataclass(frozen=True)
class StartTrainingImmediately:
    """Do not wait for more data this time."""


@message("stop_training")
@dataclass(frozen=True)
class StopTraining:
    """Finish the step, save, and go idle."""


@message("export_now")
@dataclass(frozen=True)
class ExportNow:
    """Export the network as it is."""


@message("get_status")
@dataclass(frozen=True)
class GetStatus:
    """Send a status at once, to who asks."""


@message("shutdown")
@dataclass(frozen=True)
class Shutdown:
    """Save, and end."""


# From the daemon.

Stage = Literal["IDLE", "WAITING_FOR_DATA", "TRAINING", "EXPORTING", "ERROR"]


@dataclass(frozen=True)
class LoaderStage:
    """One stage of the loader, with the queue behind it."""

    name: str
    split: str  # train, validation, test; empty for what they share
    last_second: float  # items
    rate: float  # items per second, over the last ten
    total: int  # items since the start
    rows: int  # in them
    load: float  # share of its time at work, 0 to 1
    doing: str  # working, waiting for input, waiting for output, idle, ended
    since: float  # seconds in that state
    waits_for: str = ""  # in words
    queue: str = ""  # what waits behind it, as "batches"; empty without a queue
    filled: int = 0
    capacity: int = 0


@dataclass(frozen=True)
class LoaderStatus:
    """How the loader stands."""

    stages: tuple[LoaderStage, ...]  # in the order of the flow
    chunks: dict[str, int]  # split -> chunks since the beginning
    rows: dict[str, int]
    rejected: dict[str, int]  # corrupt, foreign, unreadable -> files
    last_rejected: tuple[str, ...] = ()  # the last few, with the reasons


@dataclass(frozen=True)
class ScheduleStatus:
    """Where the cycle of waiting, training and exporting stands."""

    stage: Stage
    words: str  # what is being done or waited for, for people
    since: float  # seconds in this stage
    networks_done: int  # epochs: networks since the beginning
    new_chunks: int  # since the last network
    chunks_to_wait_for: int
    cycle_seconds: float  # so far
    training_seconds: float
    previous_cycle_seconds: float | None = None
    previous_training_seconds: float | None = None


@dataclass(frozen=True)
class TrainingFigures:
    """How the training of the present network stands."""

    step: int  # of this network
    steps: int  # that it takes
    total_steps: int  # since the beginning
    steps_per_second: float | None
    seconds_left: float | None
    loss: float | None
    losses: dict[str, float]
    learning_rate: float | None
    validation: dict[str, float] = field(default_factory=dict)  # losses of the last network
    test: dict[str, float] = field(default_factory=dict)  # the same on the chunks that are kept for tests


@dataclass(frozen=True)
class NetworkStatus:
    """One of the last networks."""

    name: str
    step: int
    seconds: float  # ago
    validation_loss: float | None = None
    rating: float | None = None
    upload: str = ""  # waiting, uploading, done, failed (with the reason); empty if there is nothing to hand on


@dataclass(frozen=True)
class SelfplayStatus:
    """Of runs that play themselves; the daemon has none."""

    games: int
    games_per_second: float | None
    rows: int
    rows_per_second: float | None
    evaluations_per_second: float | None
    window: int
    rating: str = ""
    board: str = ""  # one of the games, as the game renders it
    waiting: str = ""


@message("training_status")
@dataclass(frozen=True)
class TrainingStatus:
    """Once a second, and when asked for."""

    run: str
    uptime: float  # seconds
    schedule: ScheduleStatus
    loader: LoaderStatus | None = None
    training: TrainingFigures | None = None
    networks: tuple[NetworkStatus, ...] = ()  # the newest first
    selfplay: SelfplayStatus | None = None


@message("network_exported")
@dataclass(frozen=True)
class NetworkExported:
    """A network is there."""

    name: str
    path: str
    step: int
    samples: int
    validation_loss: float | None = None


@message("error")
@dataclass(frozen=True)
class Error:
    """Something went wrong."""

    what: str
    where: str  # a message's type, a file, a part of the daemon
    goes_on: bool


@message("log")
@dataclass(frozen=True)
class Log:
    """A line for people."""

    level: Literal["info", "warning", "error"]
    text: str


def in_words(message: NetworkExported | Error | Log) -> str:
    """What a person should read of it, on standard error and in a dashboard alike."""
    if isinstance(message, Log):
        return message.text
    if isinstance(message, Error):
        where = f"{message.where}: " if message.where else ""
        return f"{where}{message.what}{'' if message.goes_on else '; it does not go on'}"
    loss = "" if message.validation_loss is None else f", validation loss {message.validation_loss:.4g}"
    return f"exported {message.name} (step {message.step}{loss}): {message.path}"
