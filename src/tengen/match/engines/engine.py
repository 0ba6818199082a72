"""The interface to foreign engines of either protocol, and how they are started."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tengen.errors import OptionError, TengenError
from tengen.match.engines.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from tengen.games.core import Game
    from tengen.match.engines.process import Process

RESIGN = "resign"
PROTOCOLS = ("gtp", "uci")
_MOST_NODES = 10**9


@dataclass(frozen=True)
class Terms:
    """What engines are told about time, and how long Tengen waits for them."""

    seconds: float | None = None  # per move, as engines are told; None: as long as they like
    nodes: int | None = None  # per move, for engines that speak UCI
    grace: float = 2.0  # seconds on top of those: this machine has other things to do too
    patience: float = 60.0  # seconds for any answer, and for a move if there are no `seconds`
    options: tuple[tuple[str, str], ...] = ()  # (name, value), for engines that speak UCI

    @property
    def move_limit(self) -> float:
        """Seconds after which an engine that has not moved has lost."""
        return self.patience if self.seconds is None else self.seconds + self.grace

    def check(self) -> None:
        """TengenError if no engine could play under these terms."""
        for name, value in (("--seconds-per-move", self.seconds), ("--patience", self.patience)):
            if value is not None and not (math.isfinite(value) and 0 < value <= 1e6):
                raise TengenError(f"{name}: expected a number of seconds above 0, got {value:g}")


class NotStarted(TengenError):
    """An engine could not be started, or did not answer the first commands as it should."""

    def __init__(self, text: str, fault: Fault) -> None:
        super().__init__(f"{text}: did not start: {fault}")
        self.fault = fault


class ForeignEngine(Protocol):
    """One process that plays one game after another. Players are 0 and 1; moves have the names that the game uses.

    All methods raise Fault, after which the engine cannot be used any more.
    """

    about: str  # its name and version, as it gives them
    remarks: tuple[str, ...]  # how its rules may differ from those of the game

    def begin(self) -> None:
        """Begins a new game."""
        ...

    def tell(self, player: int, move: str) -> None:
        """Plays a move that the engine has not chosen."""
        ...

    def choose(self, player: int) -> str:
        """Its move, which counts as played, or RESIGN."""
        ...

    def opinion(self) -> str | None:
        """Who has won, in its view, as `B+3.5`; None if it has none."""
        ...

    def close(self) -> None:
        """Ends the process."""
        ...


def split(text: str) -> tuple[str, int | None, str]:
    """(protocol, nodes per move, command) of the text of an engine, such as `uci@100:stockfish`. OptionError."""
    kind, _, line = text.partition(":")
    protocol, at, nodes = kind.partition("@")
    if not at:
        return protocol, None, line
    if protocol != "uci" or not (nodes.isascii() and nodes.isdigit() and 0 < int(nodes) <= _MOST_NODES):
        raise OptionError(f"{text}: expected the nodes per move of an engine that speaks UCI, as in uci@100:stockfish")
    return protocol, int(nodes), line


def is_foreign(text: str) -> bool:
    """Whether a text names an engine, as `gtp:gnugo --mode gtp` and `uci@100:stockfish` do."""
    return text.partition(":")[0].partition("@")[0] in PROTOCOLS and ":" in text


def check(text: str, game: "Game") -> None:
    """TengenError if that engine cannot play the game, or there is no such program."""
    from tengen.match.engines import process

    protocol, _, line = split(text)
    fits = game.name == "go" if protocol == "gtp" else game.name == "chess"
    if not fits:
        plays = "Go (--game go)" if protocol == "gtp" else "chess (--game chess)"
        raise TengenError(f"{text}: engines that speak {protocol.upper()} play {plays}, and this is {game.name}")
    if getattr(game.options, "chess960", False):
        raise TengenError(f"{text}: engines are told games from the usual position, so chess960 must be false")
    process.command(line)


def start(
    text: str, game: "Game", terms: Terms, made: "Callable[[Process], None]" = lambda process: None
) -> ForeignEngine:
    """Starts the engine that a text names. NotStarted, or TengenError if it is not for this game.

    `made` gets the process before its first answer.
    """
    from tengen.match.engines import gtp_client, process, uci_client

    protocol, nodes, line = split(text)
    terms = terms if nodes is None else replace(terms, nodes=nodes)
    running = process.Process(process.command(line))
    made(running)
    try:
        if protocol == "gtp":
            return gtp_client.GtpEngine(running, game, terms, line)
        return uci_client.UciEngine(running, terms)
    except BaseException as error:
        running.close()
        if isinstance(error, Fault):
            raise NotStarted(text, error) from None
        raise
