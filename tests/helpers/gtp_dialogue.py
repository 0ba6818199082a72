"""A controller for tests: sends lines, reads answers by the letter of the specification."""

import queue
import threading
from collections.abc import Iterator

from tengen.engine.gtp.commands import GtpCommands, GtpSession
from tests.helpers.patience import LONG


class Controller:
    """A session in a thread of its own, at the other end of two pipes."""

    def __init__(self, commands: GtpCommands) -> None:
        self._to: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._from: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._rest = ""
        self.thread = threading.Thread(target=GtpSession(commands, self._lines(), self._from.put).run, daemon=True)
        self.thread.start()

    def _lines(self) -> Iterator[bytes]:
        while (line := self._to.get()) is not None:
            yield line

    def send(self, line: str) -> None:
        self._to.put(line.encode() + b"\n")

    def end(self) -> None:
        self._to.put(None)
        self.thread.join(timeout=LONG)
        assert not self.thread.is_alive()

    def read_line(self) -> str:
        while "\n" not in self._rest:
            self._rest += self._from.get(timeout=LONG)
        line, _, self._rest = self._rest.partition("\n")
        return line

    def answer(self) -> str:
        """All of an answer, without the empty line that ends it."""
        lines = [self.read_line()]
        assert lines[0][:1] in ("=", "?"), lines
        while line := self.read_line():
            lines.append(line)
        return "\n".join(lines)

    def ask(self, line: str) -> str:
        """The text of an answer that must be a success."""
        answer = self.raw(line)
        assert answer.startswith("="), f"{line}: {answer}"
        return answer[1:].strip()

    def raw(self, line: str) -> str:
        self.send(line)
        return self.answer()

    def fails(self, line: str) -> str:
        """The text of an answer that must be a failure."""
        answer = self.raw(line)
        assert answer.startswith("?"), f"{line}: {answer}"
        return answer[1:].strip()
