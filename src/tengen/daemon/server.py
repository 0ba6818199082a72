"""The clients of the daemon: standard input and output, and any number on a Unix socket.

`heard(client, message)` is called on the clients' threads. Invalid lines are answered here, and logged.
"""

import contextlib
import os
import socket
import stat
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tengen.errors import TengenError
from tengen.protocol import messages
from tengen.protocol.messages import LineSplitter, ProtocolError, TrainingStatus, decode, encode

STANDARD = "standard input"
_CLIENTS = 64  # at a time
_PAUSE = 0.2  # seconds before the next attempt, when no client can be accepted
_COMMANDS = (
    messages.StartTraining,
    messages.StartTrainingImmediately,
    messages.StopTraining,
    messages.ExportNow,
    messages.GetStatus,
    messages.Shutdown,
)
_READ = 1 << 16  # bytes at a time
_MESSAGES = 500  # that may wait for a slow client
_BYTES = 8 * 2**20  # in them

Source = Callable[[int], bytes]
Sink = Callable[[memoryview], int]
Heard = Callable[["DaemonClient", Any], None]
"""(client, message or ProtocolError)."""
Left = Callable[["DaemonClient"], None]
"""Called when the client has closed its side, or is gone."""
Log = Callable[[str, str], None]
"""(level, text), for standard error."""


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
            with contextlib.suppress(OSError):  # the client is gone
                while self._source is not None and (data := self._source(_READ)):
                    for found in lines.feed(data):
                        self._hear(found)
            if (problem := lines.end()) is not None:
                self._heard(self, problem)
        finally:
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
        with self._changed:
            self._writing = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._waiting or self._deaf)
            if self._deaf or self._closed:
                return None
            self._writing = True
            if self._dropped:
                told = messages.Log("warning", f"{self._dropped:,} messages were dropped: this client reads too slowly")
                self._dropped = 0
                return encode(told)
            line, _ = self._waiting.popleft()
            self._bytes -= len(line)
            return line


class Server(contextlib.AbstractContextManager):
    """All clients. Any thread may call any method."""

    def __init__(
        self,
        heard: Callable[[DaemonClient, Any], None],
        log: Log = lambda level, text: None,
        input_closed: Callable[[], None] = lambda: None,
    ) -> None:
        self._heard, self._log, self._input_closed = heard, log, input_closed
        self._lock = threading.Lock()
        self._clients: list[DaemonClient] = []
        self._sockets: dict[DaemonClient, socket.socket] = {}
        self._listening: socket.socket | None = None
        self._path: tuple[Path, int] | None = None  # of the socket, and its inode
        self._number = 0
        self._closed = threading.Event()

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def clients(self) -> int:
        with self._lock:
            return len(self._clients)

    def add_standard(self, source: int | None, sink: int | None) -> None:
        """Add a client on these file descriptors, which are usually standard input and output."""
        reads = None if source is None else partial(os.read, source)
        writes = None if sink is None else partial(os.write, sink)
        client = DaemonClient(STANDARD, reads, writes, self._hear, self._left)
        with self._lock:
            self._clients.append(client)
        client.start()

    def listen(self, path: Path) -> None:
        """Accept clients on a Unix socket that only this user may open. TengenError if that is not possible."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # It gets its name once clients can connect. The other one is as long, because there is a limit.
        beside = path.with_name(path.name[:-1] + ("_" if path.name.endswith("~") else "~"))
        try:
            _make_way(path)
            _make_way(beside)
            path.parent.mkdir(parents=True, exist_ok=True)
            before = os.umask(0o177)  # not open to others, even for a moment
            try:
                listening.bind(str(beside))
            finally:
                os.umask(before)
            listening.listen(8)
            beside.rename(path)
        except OSError as error:
            listening.close()
            raise TengenError(f"--listen {path}: {error.strerror or error}") from None
        except BaseException:
            listening.close()
            raise
        self._listening, self._path = listening, (path, path.stat().st_ino)
        threading.Thread(target=self._accept, args=(listening,), name="tengen-listen", daemon=True).start()

    def tell(self, message: Any) -> None:
        """Send a message to all clients. Returns at once."""
        with self._lock:
            clients = list(self._clients)
        if clients:
            line = encode(message)
            for client in clients:
                client.tell(message, line)

    def close(self) -> None:
        """Write all waiting messages, as far as clients read them, and disconnect the clients."""
        self._closed.set()
        if self._listening is not None:
            with contextlib.suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            self._listening.close()
        if self._path is not None:
            path, inode = self._path
            with contextlib.suppress(OSError):
                if path.stat().st_ino == inode:  # another daemon may have taken its place
                    path.unlink()
        with self._lock:
            clients, self._clients = self._clients, []
        for client in clients:
            client.close()
        for client in clients:
            self._let_go(client)

    def _accept(self, listening: socket.socket) -> None:
        troubled = False
        while True:
            try:
                connection, _ = listening.accept()
            except OSError as error:
                if self._closed.is_set() or listening.fileno() < 0:
                    return
                # For example too many open files. New clients wait until there are free ones again.
                if not troubled:
                    self._log("warning", f"no client can be accepted at the moment: {error.strerror or error}")
                troubled = True
                if self._closed.wait(_PAUSE):
                    return
                continue
            troubled = False
            with self._lock:
                crowded = len(self._clients) >= _CLIENTS
                self._number += 1
                name = f"client {self._number}"
                client = DaemonClient(name, connection.recv, connection.send, self._hear, self._left)
                if not crowded:
                    self._clients.append(client)
                    self._sockets[client] = connection
            if crowded:
                connection.close()
                self._log("warning", f"a client was refused: there are {_CLIENTS} already")
                continue
            try:
                client.start()
            except RuntimeError as error:  # no more threads
                self._log("warning", f"a client was refused: {error}")
                self._left(client)

    def _hear(self, client: DaemonClient, message: Any) -> None:
        if isinstance(message, _COMMANDS):
            self._heard(client, message)
            return
        if not isinstance(message, ProtocolError):
            message = ProtocolError(f"{type(message).__name__} is a message from the daemon, not to it")
        self._log("warning", f"{client.name}: {message}")
        client.tell(messages.Error(str(message), client.name, True))

    def _left(self, client: DaemonClient) -> None:
        if client.name == STANDARD:
            self._input_closed()
            return
        # It may have closed only its output, and still read.
        client.close()
        with self._lock:
            if client in self._clients:
                self._clients.remove(client)
        self._let_go(client)

    def _let_go(self, client: DaemonClient) -> None:
        with self._lock:
            connection = self._sockets.pop(client, None)
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # wakes its threads
            connection.close()


def _make_way(path: Path) -> None:
    """Remove the socket of a daemon that died. TengenError if the path is in use."""
    try:
        kind = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(kind):
        raise TengenError(f"--listen {path}: is not a socket; choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise TengenError(f"--listen {path}: another daemon listens there")
