"""A program that is controlled by lines of text, with a limit on every wait, and what it can do wrong.

No thread is needed: waiting for a line also reads standard error, so that a program that fills either pipe cannot block
both sides. The program has a separate process group, so Ctrl-C at the terminal does not reach it, and its helpers end
with it. An engine that does something wrong loses its game, and the reason is recorded.
"""

import contextlib
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO, Literal

from tengen.data.records.records import Ending, shorten
from tengen.errors import TengenError
from tengen.run.children import signal_name

Kind = Literal["crash", "time", "illegal move", "refused move", "nonsense"]
KINDS: tuple[Kind, ...] = ("crash", "time", "illegal move", "refused move", "nonsense")
_MOST_UNREAD = 1 << 20  # bytes of unread output
_TAIL = 2000  # bytes of standard error that are kept
_LAST_LINES = 3  # of them are shown
_MOST_READS = 32  # of a program that writes without end
_POLITE = 0.5  # seconds that a program has to exit by itself
_ELSEWHERE = ("/usr/games", "/usr/local/games")  # Debian's place for such programs, which root's PATH leaves out


class Fault(Exception):
    """An engine's fault: its kind, and what happened in words."""

    def __init__(self, kind: Kind, words: str) -> None:
        super().__init__(words)
        self.kind: Kind = kind
        self.words = words

    @property
    def ending(self) -> Ending:
        return "time" if self.kind == "time" else "forfeit"

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"


class Refusal(Fault):
    """The engine answered a command with an error."""

    def __init__(self, command: str, answer: str) -> None:
        kind = "refused move" if command.startswith("play ") else "nonsense"
        super().__init__(kind, f"refused {shorten(command)}: {shorten(answer)}")
        self.answer = answer


def command(text: str) -> list[str]:
    """The words of a command line, with the full path of the program. TengenError if there is no such program."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TengenError(f"{text}: not a command line: {error}") from None
    if not words:
        raise TengenError("expected the command that starts an engine, as in 'gtp:gnugo --mode gtp'")
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_ELSEWHERE))
    found = shutil.which(os.path.expanduser(words[0]), path=path)
    if found is None:
        raise TengenError(f"{words[0]}: there is no such program; install it, or give its whole path")
    return [found, *words[1:]]


class Process:
    """A running program. Faults say what it did wrong; `close` ends it and its children."""

    def __init__(self, words: Sequence[str]) -> None:
        """TengenError if it cannot be started."""
        try:
            self._process = subprocess.Popen(
                list(words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise TengenError(f"{words[0]}: cannot be started: {error.strerror or error}") from None
        self._in, self._out, self._err = map(_there, (self._process.stdin, self._process.stdout, self._process.stderr))
        self._unread = bytearray()
        self._tail = bytearray()
        self._ended = False  # standard output is closed
        self._selector = selectors.DefaultSelector()
        for pipe in (self._out, self._err):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ)
        os.set_blocking(self._in.fileno(), False)

    @property
    def number(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None and not self._ended

    def send(self, line: str, seconds: float) -> None:
        data, end = line.encode() + b"\n", time.monotonic() + seconds
        self._selector.register(self._in, selectors.EVENT_WRITE)
        try:
            while data:
                if self._ended:
                    raise self._died()
                if self._in in self._wait(end, f"did not read {line[:60]!r} within {seconds:g} s"):
                    try:
                        data = data[os.write(self._in.fileno(), data) :]
                    except BlockingIOError:
                        continue
                    except OSError:  # the pipe is closed
                        raise self._died("closed its input") from None
        finally:
            self._selector.unregister(self._in)

    def line(self, end: float, waiting: str) -> str:
        """Its next line, without its end, until the time `end` of `time.monotonic`; `waiting` is for the Fault then."""
        while True:
            place = self._unread.find(b"\n")
            if place >= 0:
                found = bytes(self._unread[:place])
                del self._unread[: place + 1]
                return found.decode("utf-8", "replace").rstrip("\r")
            if self._ended:
                raise self._died()
            self._wait(end, waiting)

    def last_words(self) -> str:
        """The end of its standard error, on one line."""
        with contextlib.suppress(OSError, ValueError):
            for _ in range(_MOST_READS):
                if not self._take(self._err):
                    break
        lines = [" ".join(line.split()) for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return " / ".join("".join(c if c.isprintable() else "?" for c in line)[-200:] for line in lines[-_LAST_LINES:])

    def kill(self) -> None:
        """Ends it at once, from any thread; waiting threads get a Fault. `close` must still be called."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self, farewell: str = "") -> None:
        """Ends it: with a last line if it takes one, else by force. May be called twice."""
        if self._in.closed:
            return
        if farewell and self.running:
            with contextlib.suppress(Fault):
                self.send(farewell, _POLITE)
        self._in.close()  # at which most programs exit
        if farewell:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_POLITE)
        self.kill()
        self._process.wait()
        self._selector.close()
        self._out.close()
        self._err.close()

    def _wait(self, end: float, waiting: str) -> Sequence[object]:
        """Reads output until something can be done; gives the pipes that are ready. Fault at `end`."""
        left = end - time.monotonic()
        ready = [key.fileobj for key, _ in self._selector.select(max(left, 0))] if left > 0 else []
        if not ready and end - time.monotonic() <= 0:
            raise Fault("time", self._with_words(waiting))
        for pipe in (self._out, self._err):
            if pipe in ready and self._take(pipe) == b"":
                self._selector.unregister(pipe)
                self._ended |= pipe is self._out
        if len(self._unread) > _MOST_UNREAD:
            raise Fault("nonsense", self._with_words("said more than a megabyte that nobody asked for"))
        return ready

    def _take(self, pipe: object) -> bytes | None:
        """Reads and keeps what is there: None if nothing, empty at the end of the pipe."""
        out = pipe is self._out
        try:
            data = os.read((self._out if out else self._err).fileno(), 1 << 16)
        except BlockingIOError:
            return None
        if out:
            self._unread += data
        else:
            self._tail = (self._tail + data)[-_TAIL:]
        return data

    def _died(self, else_words: str = "closed its output") -> Fault:
        """How it ended, or `else_words` if it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_POLITE)
        code = self._process.returncode
        if code is None:
            return Fault("crash", self._with_words(else_words))
        if code < 0:
            return Fault("crash", self._with_words(f"was ended by {signal_name(-code)}"))
        return Fault("crash", self._with_words(f"ended with exit status {code}"))

    def _with_words(self, what: str) -> str:
        last = self.last_words()
        return f"{what}; it said: {last}" if last else what


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
