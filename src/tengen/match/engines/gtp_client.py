"""The client of GTP, the Go Text Protocol: https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html"""

import re
import time
from typing import TYPE_CHECKING, Any

from tengen.data.records.records import shorten
from tengen.errors import TengenError
from tengen.match.engines import rules
from tengen.match.engines.engine import RESIGN, Terms
from tengen.match.engines.faults import Fault, Refusal
from tengen.match.engines.process import Process

if TYPE_CHECKING:
    from tengen.games.core import Game

COLOURS = ("b", "w")
_ANSWER = re.compile(r"([=?])(\d*)(?:\s+(.*))?")
_VERTEX = re.compile(r"[a-hj-z]\d{1,2}|pass|resign", re.IGNORECASE)
_SCORE = re.compile(r"([BW])\+(\d+(?:\.\d+)?|R|Resign|T|Time|F|Forfeit)?|0|draw|jigo", re.IGNORECASE)
_MOST_LINES = 10_000  # of one answer


class GtpClient:
    """Sends commands and reads their answers."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._number = 0

    def ask(self, command: str, seconds: float) -> str:
        """The answer to a command; several lines are one text. Refusal if the engine answers with an error."""
        self._number += 1
        end = time.monotonic() + seconds
        self._process.send(f"{self._number} {command}", seconds)
        waiting = f"did not answer {shorten(command)} within {seconds:g} s"
        line = ""
        while not line.strip():  # the empty line that ends the previous answer
            line = self._process.line(end, waiting)
        found = _ANSWER.fullmatch(line.rstrip())
        if found is None or found[2] not in ("", str(self._number)):  # some engines do not repeat the number
            raise Fault("nonsense", f"answered {shorten(command)} with {shorten(line)}, which is not GTP")
        lines = [found[3] or ""]
        while (line := self._process.line(end, waiting)).strip():
            lines.append(line.rstrip())
            if len(lines) > _MOST_LINES:
                raise Fault("nonsense", f"answered {shorten(command)} with more than {_MOST_LINES} lines")
        answer = "\n".join(lines).strip()
        if found[1] == "?":
            raise Refusal(command, answer)
        return answer

    def close(self) -> None:
        self._process.close("quit")


class GtpEngine:
    """A Go engine, started by the command `line`. It is told the rules of the game if possible."""

    def __init__(self, process: Process, game: "Game", terms: Terms, line: str = "") -> None:
        self._client, self._terms = GtpClient(process), terms
        self._options: Any = game.options
        name = self._ask("name")
        self.about = f"{name} {self._ask('version')}".strip()[:100]
        version = self._ask("protocol_version")
        if version != "2":
            raise Fault("nonsense", f"speaks version {shorten(version)} of GTP, expected 2")
        self._known = set(self._ask("list_commands").lower().split())
        for needed in ("boardsize", "clear_board", "komi", "play", "genmove"):
            if needed not in self._known:
                raise Fault("nonsense", f"does not know the command {needed}")
        self.remarks = rules.settle(self._ask, self._known, name, line, self._options)
        self.begin()

    def begin(self) -> None:
        try:
            self._ask(f"boardsize {self._options.size}")
        except Refusal as refusal:
            size = self._options.size
            raise TengenError(f"{self.about} cannot play on a {size}x{size} board: {refusal.answer}") from None
        self._ask("clear_board")
        self._ask(f"komi {self._options.komi:g}")
        if self._terms.seconds is not None and "time_settings" in self._known:
            # No main time, and this many seconds for every stone; GTP has whole numbers only.
            self._ask(f"time_settings 0 {max(1, int(self._terms.seconds))} 1")

    def tell(self, player: int, move: str) -> None:
        self._ask(f"play {COLOURS[player]} {move}")

    def choose(self, player: int) -> str:
        answer = self._client.ask(f"genmove {COLOURS[player]}", self._terms.move_limit)
        if not _VERTEX.fullmatch(answer):
            raise Fault("nonsense", f"answered genmove with {shorten(answer)}")
        return RESIGN if answer.lower() == RESIGN else answer

    def opinion(self) -> str | None:
        if "final_score" not in self._known:
            return None
        answer = self._ask("final_score")
        return answer if _SCORE.fullmatch(answer) else None

    def close(self) -> None:
        self._client.close()

    def _ask(self, command: str) -> str:
        return self._client.ask(command, self._terms.patience)


def points(score: str) -> float | None:
    """By how much Black has won: `W+3.5` is -3.5, `0` a draw; None if the score does not say."""
    found = _SCORE.fullmatch(score.strip())
    if found is None:
        return None
    if found[1] is None:
        return 0.0
    try:
        return (1 if found[1].upper() == "B" else -1) * float(found[2])
    except (TypeError, ValueError):
        return None
