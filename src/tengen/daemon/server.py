"""The clients of the daemon: standard input and output, and any number on a Unix socket.

    with Server(heard) as server:
        server.add_standard(source, sink)
        server.listen(path)
        server.tell(Log("info", "hello"))        # to all of them

`heard(client, message)` is called on the clients' threads. Invalid lines are answered here, and logged.
"""

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

from tengen.daemon.clients import DaemonClient
from tengen.errors import TengenError
from tengen.protocol import messages
from tengen.protocol.encoding import ProtocolError, encode

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

Log = Callable[[str, str], None]
"""(level, text), for standard error."""


def _quiet(level: str, text: str) -> None:
    """Logs nothing."""


class Server:
    """All clients. Any thread may call any method."""

    def __init__(
        self,
        heard: Callable[[DaemonClient, Any], None],
        log: Log = _quiet,
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def clients(self) -> int:
        with self._lock:
            return len(self._clients)

    def add_standard(self, source: int | None, sink: int | None) -> None:
        """Add a client on these file descriptors, which are usually standard input and output."""
        client = DaemonClient(
            STANDARD,
            None if source is None else partial(os.read, source),
            None if sink is None else partial(os.write, sink),
            self._hear,
            self._left,
        )
        with self._lock:
            self._clients.append(client)
        client.start()

    def listen(self, path: Path) -> None:
        """Accept clients on a Unix socket that only this user may open. TengenError if that is not possible."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _make_way(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            before = os.umask(0o177)  # not open to others, even for a moment
            try:
                listening.bind(str(path))
            finally:
                os.umask(before)
            listening.listen(8)
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
        raise TengenError(f"--listen {path}: there is something else, expected a new path or an old socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise TengenError(f"--listen {path}: another daemon listens there")
