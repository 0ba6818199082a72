"""GTP's commands and answers (version 2 of the Go Text Protocol), and the clock that the controller keeps."""

import math
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tengen.errors import TengenError

_ID = re.compile(r"(\d+)(?:\s+|$)")
System = Literal["none", "absolute", "byoyomi", "canadian"]
_LONGEST = 1e7


class GtpError(TengenError):
    """A command that fails; the text is the answer."""


@dataclass(frozen=True)
class GtpCommand:
    """One line of a controller. The `id` is repeated in the answer; it may be empty."""

    id: str
    name: str
    arguments: list[str]


def parse(line: str) -> GtpCommand | None:
    """The command in a line; None if the line is empty or a comment."""
    line = line.replace("\t", " ").partition("#")[0]
    line = "".join(c for c in line if c >= " " and c != "\x7f").strip()
    if not line:
        return None
    number = _ID.match(line)
    if number is None:
        name, *arguments = line.split()
        return GtpCommand("", name, arguments)
    name, *arguments = line[number.end() :].split() or [""]
    return GtpCommand(number[1], name, arguments)


def success(command: GtpCommand, text: str = "") -> str:
    return f"={command.id}{_body(text)}\n\n"


def failure(command: GtpCommand, text: str) -> str:
    return f"?{command.id}{_body(text)}\n\n"


def _body(text: str) -> str:
    """An empty line would end the answer, and control characters have no place in one."""
    first, *others = ("".join(c for c in line if c >= " ").rstrip() for line in text.split("\n"))
    return "\n".join([f" {first}" if first else "", *(line for line in others if line)])


class GtpAnswer:
    """The answer to one command, sent as it comes; `interrupted` is set when the next command waits."""

    def __init__(self, command: GtpCommand, write: Callable[[str], None], interrupted: threading.Event) -> None:
        self.interrupted = interrupted
        self._command, self._write, self._begun = command, write, False

    def begin(self) -> None:
        """Say that the command was understood."""
        if not self._begun:
            self._begun = True
            self._write(f"={self._command.id}\n")

    def line(self, text: str) -> None:
        """Send a line, which begins the answer if nothing has. Empty ones, which would end it, are left out."""
        self.begin()
        if text:
            self._write(text + "\n")

    def end(self) -> None:
        self.begin()
        self._write("\n")

    def fail(self, text: str) -> None:
        """Report an error, as an answer if none has begun."""
        if self._begun:
            print(f"{self._command.name}: {text}", file=sys.stderr)
            self._write("\n")
        else:
            self._write(failure(self._command, text))


def exactly(arguments: list[str], count: int, what: str) -> list[str]:
    """The first `count` arguments; there may be more, as GTP allows."""
    if len(arguments) < count:
        raise GtpError(f"syntax error: expected {what}")
    return arguments[:count]


def whole(text: str, what: str = "a whole number") -> int:
    """A whole number. GtpError for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise GtpError(f"syntax error: expected {what}")
    return int(text)


def real(text: str, problem: str) -> float:
    """A finite number. GtpError, with that problem, for any other text."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise GtpError(f"syntax error: {problem}")
    return number


def outcome(black: float) -> str:
    """Black's points as GTP writes a result: B+3.5, W+1, 0."""
    return "0" if black == 0 else f"{'B' if black > 0 else 'W'}+{abs(black):g}"


@dataclass
class _Side:
    main: float
    overtime: bool = False
    seconds: float = 0.0  # of the present period of overtime
    count: int = 0  # stones to play in it (canadian), or periods left with it (byoyomi)


class Clock:
    """Main time, then overtime: some stones per period (canadian), or some periods of one move (byoyomi)."""

    def __init__(
        self, system: System = "none", main: float = 0.0, period: float = 0.0, count: int = 0, lag: float = 0.5
    ) -> None:
        self.system, self.period, self.count, self.lag = system, period, count, lag
        self._sides = [self._fresh(main), self._fresh(main)]

    def _fresh(self, main: float) -> _Side:
        if main <= 0 and self.system in ("byoyomi", "canadian"):
            return _Side(0.0, True, self.period, self.count)
        return _Side(main)

    def left(self, player: int, seconds: float, count: int) -> None:
        """What the controller says that a player has left; `count` is 0 in main time."""
        if self.system == "none":
            self.system = "absolute" if count == 0 else "canadian"
        if count == 0:
            self._sides[player] = _Side(max(seconds, 0.0))
        else:
            self._sides[player] = _Side(0.0, True, max(seconds, 0.0), count)

    def spend(self, player: int, used: float) -> None:
        """Update the clock of a player after a move, for controllers that do not report times."""
        side, used = self._sides[player], used + self.lag
        if not side.overtime:
            side.main -= used
            if side.main > 0 or self.system in ("none", "absolute"):
                side.main = max(side.main, 0.0)
                return
            used, side.main = -side.main, 0.0
            side.overtime, side.seconds, side.count = True, self.period, self.count
        if self.system == "canadian":
            side.seconds, side.count = side.seconds - used, side.count - 1
            if side.count <= 0:
                side.seconds, side.count = self.period, self.count
        else:
            lost = math.floor(used / self.period) if self.period > 0 else 0
            side.seconds, side.count = self.period, max(side.count - lost, 1)

    def seconds(self, player: int, moves: float) -> float | None:
        """Seconds that this move may take if the player has about that many still to make; None: no limit."""
        if self.system == "none":
            return None
        side = self._sides[player]
        if side.overtime:
            share = side.seconds / max(side.count, 1) if self.system == "canadian" else side.seconds
            return self._less_lag(share)
        even = max(side.main - self.lag, 0.0) / max(moves, 1.0)
        if self.system == "absolute":
            return max(even - self.lag / 10, even / 2)
        # Main time may run out: a period follows.
        period = self.period / max(self.count, 1) if self.system == "canadian" else self.period
        return max(even, self._less_lag(period))

    def _less_lag(self, seconds: float) -> float:
        return max(seconds - self.lag, seconds / 2)


def standard(arguments: list[str], lag: float) -> Clock:
    """GTP's `time_settings MAIN PERIOD STONES`."""
    main, period, stones = _numbers(arguments, 3)
    if stones == 0 and (period > 0 or main == 0):  # no time at all is no game: who says so means no clock
        return Clock("none", lag=lag)
    if period == 0 or stones == 0:
        return Clock("absolute", main, lag=lag)
    return Clock("canadian", main, period, int(stones), lag)


def kgs(arguments: list[str], lag: float) -> Clock:
    """KGS' `kgs-time_settings SYSTEM ...`."""
    system, rest = (arguments[0].lower(), arguments[1:]) if arguments else ("", [])
    if system == "none":
        return Clock("none", lag=lag)
    if system == "absolute":
        return Clock("absolute", _numbers(rest, 1)[0], lag=lag)
    if system == "byoyomi" or system == "canadian":
        main, period, count = _numbers(rest, 3)
        if count < 1 or period <= 0:
            return Clock("absolute", main, lag=lag)
        return Clock(system, main, period, int(count), lag)
    raise GtpError("unknown time system, expected none, absolute, byoyomi or canadian")


def _numbers(arguments: list[str], count: int) -> list[float]:
    try:
        found = [float(text) for text in arguments]
    except ValueError:
        found = []
    if len(found) != count or not all(0 <= number <= _LONGEST for number in found):
        raise GtpError(f"syntax error: expected {count} numbers, seconds or stones")
    return found
