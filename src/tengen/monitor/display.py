"""Shows the progress of long work: on a terminal a drawing that is kept up to date, elsewhere plain lines.

A view (of a run, a match, a sweep) knows what to show; a display knows where.
"""

import abc
import contextlib
import sys
import threading
from collections.abc import Iterable
from typing import Any, Self, TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text


class View(abc.ABC):
    """What to show. Only one thread at a time calls it."""

    @abc.abstractmethod
    def update(self, state: Any) -> None:
        """Replace what is shown."""

    @abc.abstractmethod
    def lines(self, *, last: bool = False) -> Iterable[str]:
        """The plain lines that are due now; with `last`, also those that have not been shown yet."""

    @abc.abstractmethod
    def draw(self) -> RenderableType:
        """The current drawing for a terminal."""


class Display(abc.ABC):
    """Shows a view from `start` to `close`, or as a context. A thread calls `tick`, so that the clock keeps running.

    Failing output (a closed terminal, a full disk) does not stop the work, but a pipe that nobody reads does.
    """

    wants_board = False
    """Whether it shows one of the games, which takes a moment of the device's time."""

    def __init__(self, view: View, beat: float) -> None:
        self._view, self._beat = view, beat
        # Reentrant, because a signal handler may call `say` while its own thread is in `say`.
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._keep_ticking, name="display", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def update(self, state: Any) -> None:
        """Replace what is shown. Cheap: call it as often as you like."""
        with self._lock:
            self._view.update(state)

    @abc.abstractmethod
    def say(self, text: str) -> None:
        """Print a message that stays."""

    @abc.abstractmethod
    def tick(self) -> None:
        """Show what is due. Called every `beat` seconds."""

    def close(self) -> None:
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _keep_ticking(self) -> None:
        while not self._closed.wait(self._beat):
            with contextlib.suppress(OSError, ValueError):  # a closed file gives ValueError
                self.tick()


class PlainDisplay(Display):
    def __init__(self, view: View, file: TextIO | None, beat: float = 1.0) -> None:
        super().__init__(view, beat)
        self._file = file

    def start(self) -> None:
        self.tick()
        super().start()

    def update(self, state: Any) -> None:
        with self._lock:
            super().update(state)
            self.tick()

    def say(self, text: str) -> None:
        encoding = getattr(self._file, "encoding", None) or "utf-8"
        with self._lock:
            try:
                print(text.encode(encoding, "backslashreplace").decode(encoding), file=self._file, flush=True)
            except BrokenPipeError:
                raise
            except (OSError, ValueError):
                pass

    def tick(self) -> None:
        with self._lock:
            for line in self._view.lines():
                self.say(line)

    def close(self) -> None:
        super().close()
        with self._lock:
            for line in self._view.lines(last=True):
                self.say(line)


class TerminalDisplay(Display):
    """A drawing at the bottom of a terminal, with messages above it; its last state stays unless it is `transient`."""

    def __init__(self, view: View, console: Console, beat: float = 0.25, transient: bool = False) -> None:
        super().__init__(view, beat)
        self._console = console
        self._live = Live(
            console=console,
            auto_refresh=False,
            vertical_overflow="crop",
            transient=transient,
            get_renderable=self.draw,
        )

    def start(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._live.start(refresh=True)
        super().start()

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._console.print(Text(text), soft_wrap=True)

    def tick(self) -> None:
        self._live.refresh()

    def close(self) -> None:
        super().close()
        with contextlib.suppress(OSError, ValueError):
            self._live.stop()

    def draw(self) -> RenderableType:
        with self._lock:
            return self._view.draw()


def open_display(view: View, stream: TextIO | None = None, beat: float = 0.25, transient: bool = False) -> Display:
    """A drawing (with `beat` and `transient`) if the stream is a terminal that can show one, else plain lines."""
    stream = sys.stdout if stream is None else stream
    if stream is not None and stream.isatty():
        console = Console(file=stream)
        if console.is_terminal and not console.is_dumb_terminal:
            return TerminalDisplay(view, console, beat, transient)
    return PlainDisplay(view, stream)
