"""The messages between the daemon and its clients, one JSON object a line: {"type": ..., "payload": {...}}.

Each message is a frozen dataclass, registered under its type. A payload has exactly these fields; those with a default
may be missing. docs/protocol.md shows an example of each. Any line gives a message or a ProtocolError that names the
problem. Needs no JAX.

    line = encode(StopTraining())                # b'{"type":"stop_training","payload":{}}\\n'
    decode(line) == StopTraining()
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar, dataclass_transform

from tengen import schema
from tengen.errors import OptionError, TengenError
from tengen.run.metrics import plain
from tengen.schema import quote, unknown

Kind = TypeVar("Kind", bound=type)
TYPES: dict[str, type] = {}
"""Type -> dataclass of the payload."""


@dataclass_transform(frozen_default=True)
def message(name: str) -> Callable[[Kind], Kind]:
    """Make a class a frozen dataclass, and the payload of messages of that type."""

    def register(kind: Kind) -> Kind:
        TYPES[name] = dataclass(frozen=True)(kind)
        return TYPES[name]  # type: ignore[return-value]

    return register


# To the daemon.


@message("start_training")
class StartTraining:
    """Train with this configuration as soon as there are enough new chunks."""

    config_filepath: str


@message("start_training_immediately")
class StartTrainingImmediately:
    """Do not wait for more data this time."""


@message("stop_training")
class StopTraining:
    """Finish the step, save, and go idle."""


@message("export_now")
class ExportNow:
    """Export the network as it is."""


@message("get_status")
class GetStatus:
    """Send a status at once to this client."""


@message("shutdown")
class Shutdown:
    """Save, and end."""


# From the daemon.

Stage = Literal["IDLE", "WAITING_FOR_DATA", "TRAINING", "EXPORTING", "ERROR"]


@dataclass(frozen=True)
class LoaderStage:
    """One stage of the loader, with the queue behind it."""

    name: str
    doing: str  # working, waiting for input, waiting for output, idle, ended; other words of a part of a run
    since: float  # seconds in that state
    split: str = ""  # train, validation, test; empty for what they share
    last_second: float = 0.0  # items
    rate: float = 0.0  # items per second, over the last ten seconds
    total: int = 0  # items since the start
    rows: int = 0  # in them
    load: float = 0.0  # share of its time at work, 0 to 1
    waits_for: str = ""  # in words
    queue: str = ""  # what the queue behind it holds, as "batches"; empty without a queue
    filled: int = 0
    capacity: int = 0


@dataclass(frozen=True)
class LoaderStatus:
    """The data loader, or the parts of a run."""

    stages: tuple[LoaderStage, ...]  # in the order of the flow
    chunks: dict[str, int] = field(default_factory=dict)  # split -> chunks since the beginning
    rows: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)  # corrupt, foreign, unreadable -> files
    last_rejected: tuple[str, ...] = ()  # the last few, with the reasons


@dataclass(frozen=True)
class ScheduleStatus:
    """The cycle of waiting, training and exporting."""

    stage: Stage
    words: str  # what is being done or waited for, for people
    since: float  # seconds in this stage
    networks_done: int = 0  # epochs: networks since the beginning
    new_chunks: int = 0  # since the last network
    chunks_to_wait_for: int = 0
    cycle_seconds: float = 0.0  # so far
    training_seconds: float = 0.0
    previous_cycle_seconds: float | None = None
    previous_training_seconds: float | None = None


@dataclass(frozen=True)
class TrainingFigures:
    """The training of the current network."""

    step: int  # of this network
    steps: int  # that it will take
    total_steps: int  # since the beginning
    steps_per_second: float | None
    seconds_left: float | None
    loss: float | None
    losses: dict[str, float]
    learning_rate: float | None
    validation: dict[str, float] = field(default_factory=dict)  # losses of the last network
    test: dict[str, float] = field(default_factory=dict)  # the same on the chunks for tests


@dataclass(frozen=True)
class NetworkStatus:
    """One of the last networks."""

    name: str
    step: int
    seconds: float  # ago
    validation_loss: float | None = None
    rating: float | None = None
    upload: str = ""  # waiting, uploading, done, failed (with the reason); empty without a receiver


@dataclass(frozen=True)
class SelfplayStatus:
    """Self-play of a run; the daemon has none."""

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
class NetworkExported:
    """A network was exported."""

    name: str
    path: str
    step: int
    samples: int
    validation_loss: float | None = None


@message("error")
class Error:
    """Something went wrong."""

    what: str
    where: str  # a message's type, a file, a part of the daemon
    goes_on: bool


@message("log")
class Log:
    """A line for people."""

    level: Literal["info", "warning", "error"]
    text: str


def in_words(message: NetworkExported | Error | Log) -> str:
    """The message for people, on standard error and in the dashboard."""
    if isinstance(message, Log):
        return message.text
    if isinstance(message, Error):
        where = f"{message.where}: " if message.where else ""
        return f"{where}{message.what}{'' if message.goes_on else '; it does not go on'}"
    loss = "" if message.validation_loss is None else f", validation loss {message.validation_loss:.4g}"
    return f"exported {message.name} (step {message.step}{loss}): {message.path}"


LONGEST = 4 * 2**20
"""Bytes of a line, at most."""


class ProtocolError(TengenError):
    """A line is not a message."""


def encode(message: Any) -> bytes:
    """A message as a line. Numbers that are not finite become null."""
    name = next(name for name, kind in TYPES.items() if kind is type(message))
    found = {"type": name, "payload": plain(asdict(message))}
    return json.dumps(found, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode(line: bytes | str) -> Any:
    if len(line) > LONGEST:
        raise ProtocolError(f"a line of {len(line):,} bytes; expected at most {LONGEST:,}")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not valid JSON: {error}: {quote(_start(line))}") from None
    if not isinstance(found, dict) or set(found) - {"type", "payload"} or not isinstance(found.get("type"), str):
        raise ProtocolError(f'expected {{"type": ..., "payload": {{...}}}}, got {quote(_start(line))}')
    kind = TYPES.get(found["type"])
    if kind is None:
        raise ProtocolError(unknown("type", found["type"], list(TYPES)))
    try:
        return schema.from_data(kind, found.get("payload", {}), found["type"], strict=True, noun="field")
    except OptionError as error:
        raise ProtocolError(str(error)) from None


class LineSplitter:
    """Splits a stream into lines, and holds at most `longest` bytes of it."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()
        self._skipping = False  # the rest of a line that is too long

    def feed(self, data: bytes) -> Iterator[bytes | ProtocolError]:
        """The lines that end in `data`, without their ends, and errors."""
        begin = 0
        while begin < len(data):
            end = data.find(b"\n", begin)
            stop = len(data) if end < 0 else end
            if not self._skipping and len(self._held) + stop - begin > self._longest:
                self._skipping = True
                self._held = bytearray()
                yield ProtocolError(f"a line of more than {self._longest:,} bytes, which is skipped up to its end")
            if not self._skipping:
                self._held += data[begin:stop]
            if end < 0:
                return
            if not self._skipping:
                line, self._held = bytes(self._held), bytearray()
                yield line
            self._skipping = False
            begin = end + 1

    def end(self) -> ProtocolError | None:
        """The error at the end of the stream, if there is one."""
        if self._held:
            start = _start(bytes(self._held))
            return ProtocolError(f"it ended in the middle of a line, which is ignored: {start!r}")
        return None


def _start(line: bytes | str) -> str:
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    return text[:80].strip()
