"""The daemon as a whole: the core, its clients, and a status once a second."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tengen.daemon.clients import DaemonClient
from tengen.daemon.core import Core
from tengen.daemon.server import Server
from tengen.daemon.status import DaemonReporter
from tengen.protocol import messages

_EVERY = 1.0  # seconds between two statuses
_LOOK = 0.1  # seconds between two checks for the end


class Service:
    """The daemon. Nothing is open before `open`; the end of a `with` closes everything."""

    def __init__(self, base: Path | None = None, overrides: Sequence[str] = ()) -> None:
        self._server = Server(self._heard, self._write, self._input_closed)
        self.core = Core(self.tell, self.log, base, overrides)
        self._reporter = DaemonReporter(self.core)
        self._listens = False
        self._telling = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.close()

    def open(self, source: int | None, sink: int | None, listen: Path | None, config: str | None) -> None:
        """Serve these file descriptors and that socket; start training if there is a configuration."""
        if listen is not None:
            self._server.listen(listen)
            self._listens = True
        if config is not None:
            self.core.post(messages.StartTraining(config))
        self.core.start()
        self._server.add_standard(source, sink)
        threading.Thread(target=self._tick, name="tengen-status", daemon=True).start()

    def wait(self, stop: Callable[[], bool]) -> None:
        """Wait until the core has ended; shut it down when `stop` says so."""
        stopping = False
        while not self.core.ended.wait(_LOOK):
            if not stopping and stop():
                stopping = True
                self.core.post(messages.Shutdown())
        self._tell_status()

    def log(self, level: Any, text: str) -> None:
        """Send a line for people to standard error and to all clients."""
        self._write(level, text)
        self._server.tell(messages.Log(level, text))

    def tell(self, message: Any) -> None:
        """Send a message to all clients, and in words to standard error."""
        if isinstance(message, messages.Error | messages.NetworkExported):
            self._write("error" if isinstance(message, messages.Error) else "info", messages.in_words(message))
        self._server.tell(message)

    def _heard(self, client: DaemonClient, message: Any) -> None:
        if isinstance(message, messages.GetStatus):
            client.tell(self._reporter.status())
        else:
            self.core.post(message)

    def _input_closed(self) -> None:
        self.core.input_closed(not self._listens)

    def _tick(self) -> None:
        due = time.monotonic()
        while not self.core.ended.is_set():
            self._tell_status()
            due = max(due + _EVERY, time.monotonic())
            self.core.ended.wait(due - time.monotonic())

    def _tell_status(self) -> None:
        with self._telling:
            try:
                self._server.tell(self._reporter.status())
            except Exception as error:  # a failing status must not stop the daemon
                self._write("error", f"no status: {type(error).__name__}: {error}")

    def _write(self, level: str, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # standard error may be closed
            mark = "" if level == "info" else f"{level}: "
            print(f"{time.strftime('%H:%M:%S')} {mark}{text}", file=sys.stderr, flush=True)
