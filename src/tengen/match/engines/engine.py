"""What the referee needs of an engine, whatever language it speaks; and which engine a text names."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tengen.errors import TengenError
from tengen.match.engines.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from tengen.games.core import Game
    from tengen.match.engines.process import Process

RESIGN = "resign"
PROTOCOLS = ("gtp", "uci")


@dataclass(frozen=True)
class Terms:
    """What engines are told about time, and how long they are waited for."""

    seconds: float | None = None  # per move, of which engines are told; None: as long as they like
    nodes: int | None = None  # per move, for engines that speak UCI
    grace: float = 2.0  # seconds on top of those: this machine has other things to do too
    patience: float = 60.0  # seconds for any answer, and for a move if `seconds` says nothing
    options: tuple[tuple[str, str], ...] = ()  # (name, value), for engines that speak UCI

    @property
    def move_limit(self) -> float:
        """Seconds after which an engine that has not moved has lost."""
        return self.patience if self.seconds is None else self.seconds + self.grace

    def check(self) -> None:
        """TengenError if no engine could play so."""
        for name, value in (("--seconds-per-move", self.seconds), ("--patience", self.patience)):
            if value is not None and not (math.isfinite(value) and 0 < value <= 1e6):
                raise TengenError(f"{name}: expected a number of seconds above 0, got {value:g}")


class NotStarted(TengenError):
    """An engine that could not be started, or did not greet as it should."""

    def __init__(self, text: str, fault: Fault) -> None:
        super().__init__(f"{text}: did not start: {fault}")
        self.fault = fault


class ForeignEngine(Protocol):
    """One process that plays one game after the other. Players are 0 and 1, moves have the names that the game uses.

    All of it raises Fault, and an engine that has done so once is of no further use.
    """

    about: str  # what it says that it is
    remarks: tuple[str, ...]  # in words, how its rules may differ from those of the game

    def begin(self) -> None:
        """A new game."""
        ...

    def tell(self, player: int, move: str) -> None:
        """A move that it has not chosen was played."""
        ...

    def choose(self, player: int) -> str:
        """Its move, which counts as played, or RESIGN."""
        ...

    def opinion(self) -> str | None:
        """Who has won, in its view, as `B+3.5`; None if it has none."""
        ...

    def close(self) -> None:
        """End the process."""
        ...


def is_foreign(text: str) -> bool:
    """Whether a text means an engine, as `gtp:gnugo --mode gtp`."""
    return text.partition(":")[0] in PROTOCOLS and ":" in text


def check(text: str, game: "Game") -> None:
    """TengenError if that engine cannot play the game, or is not there."""
    from tengen.match.engines import process

    protocol, _, line = text.partition(":")
    fits = game.name == "go" if protocol == "gtp" else game.name == "pgx:chess"
    if not fits:
        plays = "Go (--game go)" if protocol == "gtp" else "chess (--game pgx:chess)"
        raise TengenError(f"{text}: engines that speak {protocol.upper()} play {plays}, and this is {game.name}")
    process.command(line)


def start(
    text: str, game: "Game", terms: Terms, made: "Callable[[Process], None]" = lambda process: None
) -> ForeignEngine:
    """Start the engine that a text names. NotStarted, or TengenError if it is not for this game.

    `made` is given the process before anybody waits for it.
    """
    from tengen.match.engines import gtp_client, process, uci_client

    protocol, _, line = text.partition(":")
    running = process.Process(process.command(line))
    made(running)
    try:
        return (
            gtp_client.GtpEngine(running, game, terms, line)
            if protocol == "gtp"
            else uci_client.UciEngine(running, terms)
        )
    except Fault as fault:
        running.close()
        raise NotStarted(text, fault) from None
    except BaseException:
        running.close()
        raise
