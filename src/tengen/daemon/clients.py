"""A client of the daemon, with a thread that reads from it and one that writes to it, so that none blocks others."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from tengen.protocol.encoding import LineSplitter, ProtocolError, decode, encode
from tengen.protocol.messages import Log, TrainingStatus

_READ = 1 << 16  # bytes at a time
_MESSAGES = 500  # that may wait for a slow client
_BYTES = 8 * 2**20  # in them

Source = Callable[[int], bytes]
Sink = Callable[[memoryview], int]
Heard = Callable[["DaemonClient", Any], None]
"""(client, message or ProtocolError)."""
Left = Callable[["DaemonClient"], None]
"""Called when the client has closed its side, or is gone."""


class DaemonClient:
    """Reads with `source(most)`, like os.read, and writes with `sink(bytes)`, like os.write; either may be None.

    Messages for a slow client wait. Beyond a limit, statuses are dropped first, then the oldest messages, and the
    client is told how many.
    """

    def __init__(self, name: str, source: Source | None, sink: Sink | None, heard: Heard, left: Left) -> None:
        self.name = name
        self._source, self._sink = source, sink
        self._heard, self._left = heard, left
        self._changed = threading.Condition()
        self._waiting: deque[tuple[bytes, bool]] = deque()  # line, whether it is a status
        self._bytes = self._dropped = 0
        self._writing = self._closed = False
        self._deaf = sink is None  # it does not read any more
        self._threads = [
            threading.Thread(target=work, name=f"tengen-{name}", daemon=True) for work in (self._read, self._write)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def tell(self, message: Any, line: bytes | None = None) -> None:
        """Send a message; `line` is its encoding, if that is known. Returns at once."""
        line = encode(message) if line is None else line
        with self._changed:
            if self._deaf or self._closed:
                return
            self._waiting.append((line, isinstance(message, TrainingStatus)))
            self._bytes += len(line)
            while len(self._waiting) > _MESSAGES or self._bytes > _BYTES:
                self._drop()
            self._changed.notify_all()

    def close(self, seconds: float = 2.0) -> None:
        """Write what waits, for at most this long, and end."""
        with self._changed:
            self._changed.wait_for(lambda: self._deaf or not (self._waiting or self._writing), seconds)
            self._closed = True
            self._changed.notify_all()

    def _drop(self) -> None:
        place = next((place for place, (_, status) in enumerate(self._waiting) if status), 0)
        self._bytes -= len(self._waiting[place][0])
        del self._waiting[place]
        self._dropped += 1

    def _read(self) -> None:
        lines = LineSplitter()
        try:
            while self._source is not None and (data := self._source(_READ)):
                for found in lines.feed(data):
                    self._hear(found)
        except OSError:
            pass  # the client is gone
        if (problem := lines.end()) is not None:
            self._heard(self, problem)
        self._left(self)

    def _hear(self, found: bytes | ProtocolError) -> None:
        if isinstance(found, bytes):
            if not found.strip():
                return
            try:
                found = decode(found)
            except ProtocolError as error:
                found = error
        self._heard(self, found)

    def _write(self) -> None:
        while (line := self._next()) is not None:
            try:
                assert self._sink is not None
                rest = memoryview(line)
                while rest:
                    rest = rest[self._sink(rest) :]
            except OSError:
                with self._changed:
                    self._deaf, self._writing = True, False
                    self._waiting.clear()
                    self._changed.notify_all()
                return

    def _next(self) -> bytes | None:
        """The next line to write; None at the end."""
        with self._changed:
            self._writing = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._waiting or self._deaf)
            if self._deaf or self._closed:
                return None
            self._writing = True
            if self._dropped:
                told = Log("warning", f"{self._dropped:,} messages were dropped: this client reads too slowly")
                self._dropped = 0
                return encode(told)
            line, _ = self._waiting.popleft()
            self._bytes -= len(line)
            return line
