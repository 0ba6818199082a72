"""The client of UCI, the protocol of chess engines: https://backscattering.de/chess/uci/

A position is given by all moves since the start, so an engine sees repetitions. Moves are named alike in UCI and in
Tengen's chess (`e2e4`, `e1g1` for castling, `e7e8q`).
"""

import re
import time

from tengen.data.records.records import shorten
from tengen.match.engines.engine import Terms
from tengen.match.engines.faults import Fault
from tengen.match.engines.process import Process

_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][qrbn]?", re.IGNORECASE)
_MOST_LINES = 10_000  # of one answer that are kept
_SECOND = 1.0  # for a move, if there is no other limit


class UciEngine:
    """A chess engine."""

    def __init__(self, process: Process, terms: Terms) -> None:
        self._process, self._terms = process, terms
        self._moves: list[str] = []
        self.about, self.remarks = "", ()  # the rules of chess are the same everywhere
        self._send("uci")
        options: set[str] = set()
        for line in self._until("uciok"):
            if line.startswith("id name "):
                self.about = line.removeprefix("id name ").strip()[:100]
            elif line.startswith("option name "):
                options.add(line.removeprefix("option name ").partition(" type ")[0].strip().lower())
        for name, value in terms.options:
            if name.lower() not in options:
                raise Fault("nonsense", f"has no option {shorten(name)}; it has {', '.join(sorted(options)) or 'none'}")
            self._send(f"setoption name {name} value {value}")
        self.begin()

    def begin(self) -> None:
        self._moves = []
        self._send("ucinewgame")
        self._send("isready")
        self._until("readyok")

    def tell(self, player: int, move: str) -> None:
        del player
        self._moves.append(move)

    def choose(self, player: int) -> str:
        del player
        terms = self._terms
        self._send("position startpos" + (f" moves {' '.join(self._moves)}" if self._moves else ""))
        limits = [] if terms.nodes is None else [f"nodes {terms.nodes}"]
        if terms.seconds is not None or terms.nodes is None:
            limits.append(f"movetime {max(1, round(1000 * (terms.seconds or _SECOND)))}")
        self._send(f"go {' '.join(limits)}")
        *_, last = self._until("bestmove", terms.move_limit)
        move = [*last.split(), ""][1]
        if not _MOVE.fullmatch(move):
            raise Fault("nonsense", f"answered go with {shorten(last)}")
        self._moves.append(move.lower())
        return move.lower()

    def opinion(self) -> str | None:
        return None  # UCI has no command for it

    def close(self) -> None:
        self._process.close("quit")

    def _send(self, line: str) -> None:
        self._process.send(line, self._terms.patience)

    def _until(self, word: str, seconds: float | None = None) -> list[str]:
        """Its lines up to the one that begins with `word`; UCI asks to skip unknown ones."""
        seconds = self._terms.patience if seconds is None else seconds
        end = time.monotonic() + seconds
        last, kept = "", []
        while True:
            said = f", but {shorten(last)}" if last else ""
            line = self._process.line(end, f"did not say {word} within {seconds:g} s{said}").strip()
            last = line or last
            if line.startswith(("id ", "option ", word)) and len(kept) < _MOST_LINES:
                kept.append(line)
            if line.split(" ")[0] == word:
                return [*kept[:-1], line]
