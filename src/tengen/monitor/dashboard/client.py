"""What the dashboard listens to: a child process, a daemon on a Unix socket, or a daemon that it starts there.

`hear` is called with every event (model.py). All of it is asyncio; nothing blocks or raises, and errors are events.
"""

import abc
import asyncio
import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import IO, Any

from tengen import files
from tengen.monitor.dashboard.model import LogLine, ProcessEnded, ProcessStarted
from tengen.protocol.messages import (
    LONGEST,
    Error,
    GetStatus,
    Log,
    NetworkExported,
    ProtocolError,
    Shutdown,
    TrainingStatus,
    decode,
    encode,
)
from tengen.run.children import PARENT, signal_name

Hear = Callable[[Any], None]
_STAYING: list[Any] = []  # processes that outlive the dashboard; Python would warn about dropping them
_PIECE = 1 << 16  # bytes per read
_TAIL = 1 << 14  # bytes of an old log that are shown
_LOOK = 0.1  # seconds between two checks of a file or a socket
_REST = 1.0  # seconds to read what a process has left in its pipes


class StatusClient(abc.ABC):
    """`orders`: whether it takes messages; `stays`: whether it can go on without the dashboard."""

    orders, stays = True, False

    def __init__(self, name: str, beginning: str) -> None:
        """`beginning` is what is said when it starts."""
        self.name, self._beginning = name, beginning
        self.hear: Hear = lambda event: None
        self.alive = False
        self._writer: asyncio.WriteTransport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._task: asyncio.Task[None] | None = None
        self._asked, self._asking = False, threading.Lock()  # whether the process was asked to end

    async def start(self) -> None:
        if not self.alive:
            self.alive, self._asked = True, False
            self.hear(ProcessStarted(self._beginning))
            self._task = asyncio.create_task(self._live())

    def send(self, message: Any) -> bool:
        """Send a message; False if it is not connected."""
        if self._writer is None or self._writer.is_closing():
            return False
        self._writer.write(encode(message))
        return True

    def ask_to_end(self) -> bool:
        """Ask the process to write everything and end, once: a second time would end it at once. False: it cannot."""
        with self._asking:
            self._asked = self._asked or self._ask()
            return self._asked

    def _ask(self) -> bool:
        return self.send(Shutdown()) or self.signal(signal.SIGTERM)

    def leave(self) -> None:
        """Let a process that cannot go on without the dashboard end, and wait for that; in a thread of its own.

        What it says meanwhile is not heard, since the dashboard may not read any more, and a full pipe would stop it.
        """
        if (process := self._process) is None or self.stays:
            return
        with self._asking:
            if not self._asked:
                self._asked = self.signal(signal.SIGTERM)
        # Copies, since the dashboard may close its own meanwhile.
        pipes = [os.dup(pipe.fileno()) for pipe in (process.stdout, process.stderr) if pipe and not pipe.closed]
        while process.poll() is None:
            for pipe in select.select(pipes, [], [], _LOOK)[0]:
                with contextlib.suppress(BlockingIOError):  # the dashboard was quicker
                    if not os.read(pipe, _PIECE):
                        pipes.remove(pipe)

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to the process, if the dashboard started it and it runs."""
        if self._process is None or self._process.poll() is not None:
            return False
        self._process.send_signal(number)
        return True

    async def close(self) -> None:
        """Stop listening. Kills a process that cannot go on without the dashboard."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._process is None:
            return
        if self.stays:
            _STAYING.append(self._process)
        elif self.signal(signal.SIGKILL):
            await _end_of(self._process)

    @abc.abstractmethod
    async def _run(self) -> ProcessEnded:
        """Listen until the end."""

    async def _live(self) -> None:
        try:
            ended = await self._run()
        except OSError as error:
            ended = ProcessEnded(f"{self.name}: {error.strerror or error}")
        finally:
            self.alive = False
        self._writer = None
        self.hear(ended)

    async def _listen(self, reader: asyncio.StreamReader, event: Callable[[bytes], Any]) -> None:
        async for line in _lines(reader):
            self.hear(event(line))

    async def _followed(self, path: Path, start: int) -> None:
        rest = b""
        with contextlib.suppress(OSError), files.open_regular(path) as file:
            file.seek(start)
            while True:
                if not (piece := file.read(_PIECE)):
                    await asyncio.sleep(_LOOK)
                    continue
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    self.hear(said(line))
                await asyncio.sleep(0)

    def _how(self, code: int) -> ProcessEnded:
        if code < 0:
            return ProcessEnded(f"{self.name} was killed by {signal_name(-code)}", code)
        return ProcessEnded(f"{self.name} has ended" + (f" with code {code}" if code else ""), code)


class ChildClient(StatusClient):
    """A child process with the protocol on its standard output, and on its standard input if it takes `orders`."""

    def __init__(self, command: Sequence[str], name: str = "the daemon", orders: bool = True) -> None:
        super().__init__(name, f"starting {name}")
        self.orders = orders
        self._command = list(command)

    def _ask(self) -> bool:
        return super()._ask() if self.orders else self.signal(signal.SIGINT)

    async def _run(self) -> ProcessEnded:
        self._process = process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE if self.orders else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a terminal's Ctrl-C is for the dashboard to handle
            env=os.environ | {PARENT: str(os.getpid())},
        )
        async with contextlib.AsyncExitStack() as closing:
            if process.stdin is not None:
                loop = asyncio.get_running_loop()
                self._writer, _ = await loop.connect_write_pipe(asyncio.Protocol, process.stdin)
                closing.callback(self._writer.close)
            output, errors = await _reading(process.stdout, closing), await _reading(process.stderr, closing)
            listening = (self._listen(output, understood), self._listen(errors, said))
            tasks = [asyncio.create_task(task) for task in listening]
            for task in tasks:
                closing.callback(task.cancel)
            code = await _end_of(process)
            await asyncio.wait(tasks, timeout=_REST)  # a grandchild may hold the pipes open
        return self._how(code)


class Attached(StatusClient):
    """A daemon that listens on a socket, and does not need the dashboard."""

    stays = True

    def __init__(self, path: Path, beginning: str = "joining the daemon at") -> None:
        super().__init__("the daemon", f"{beginning} {path}")
        self._path = path

    async def _run(self) -> ProcessEnded:
        log = log_of(self._path)
        following = asyncio.create_task(self._followed(log, max(_size(log) - _TAIL, 0)))
        try:
            return await self._talk()
        except OSError as error:
            return ProcessEnded(f"{self._path}: {error.strerror or error}: does {self.name} listen there?")
        finally:
            following.cancel()

    async def _talk(self) -> ProcessEnded:
        reader, writer = await asyncio.open_unix_connection(self._path)
        self._writer = writer.transport
        self.send(GetStatus())
        try:
            await self._listen(reader, understood)
        finally:
            writer.close()
        return ProcessEnded(f"{self.name} has closed the connection")


class Staying(Attached):
    """A daemon that is started here and then joined over its socket like any other.

    It goes on when the dashboard ends in any way: its output goes to a file, and its input stays open.
    """

    def __init__(self, command: Sequence[str], path: Path) -> None:
        super().__init__(path, "starting the daemon, which listens at")
        self._command = list(command)

    async def _run(self) -> ProcessEnded:
        log = log_of(self._path)
        start = _size(log)
        self._process = process = self._launched(log)
        following = asyncio.create_task(self._followed(log, start))
        talking = asyncio.create_task(self._keep_talking())
        try:
            code = await _end_of(process)
            await asyncio.sleep(2 * _LOOK)  # for its last lines
        finally:
            following.cancel()
            talking.cancel()
        return self._how(code)

    def _launched(self, log: Path) -> subprocess.Popen[bytes]:
        with contextlib.ExitStack() as closing:
            errors = closing.enter_context(files.open_to_append(log, mode=0o600))
            reading, writing = os.pipe()
            closing.callback(os.close, reading)
            closing.callback(os.close, writing)
            return subprocess.Popen(
                self._command,
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(writing,),  # it holds the other end of its own input, which therefore never ends
                start_new_session=True,
            )

    async def _keep_talking(self) -> None:
        """Connect as soon as there is a socket, and again if the connection breaks, until the process ends."""
        talked = False
        while True:
            with contextlib.suppress(OSError):
                await self._talk()
                talked = True
            if talked:
                self.hear(LogLine("note", f"the connection to {self.name} is broken; joining it again"))
                talked = False
            await asyncio.sleep(_LOOK)


def log_of(socket: Path) -> Path:
    """The log of a daemon that the dashboard started with a socket: its standard error."""
    return socket.with_name(socket.name + ".log")


def said(line: bytes) -> LogLine:
    return LogLine("stderr", line.decode("utf-8", "replace"))


def understood(line: bytes) -> Any:
    try:
        message = decode(line)
    except (ProtocolError, OverflowError) as error:
        return LogLine("garbage", f"not a message: {error}")
    if isinstance(message, TrainingStatus | NetworkExported | Error | Log):
        return message
    return LogLine("garbage", f"not a message: {type(message).__name__} is for the daemon, not from it")


async def _reading(pipe: IO[bytes] | None, closing: contextlib.AsyncExitStack) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    closing.callback(transport.close)
    return reader


async def _end_of(process: subprocess.Popen[bytes]) -> int:
    """The exit code. asyncio's own processes only end when all processes that share their pipes have ended."""
    while (code := process.poll()) is None:
        await asyncio.sleep(_LOOK / 2)
    return code


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines without their newlines; a line that is too long is cut just so that `decode` still refuses it."""
    rest = b""
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(_PIECE):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line
            rest = rest[: LONGEST + 1]
            await asyncio.sleep(0)
    if rest:
        yield rest


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
