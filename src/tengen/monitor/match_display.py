"""What a person sees while a match is being played: a line that is kept up to date, or plain lines."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tengen.match.device_match import MatchStanding
from tengen.match.match_games import MatchGames
from tengen.monitor.progress import clock

_EVERY = 10.0  # seconds between two plain lines
_REFRESHES = 4  # a second
_NAME = 24  # letters of a player's name


class MatchDisplay:
    """Shows how a match stands."""

    def __init__(self, book: MatchGames, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._book, self._console, self._now = book, console, now
        self._began, self._before = now(), len(book.played)
        self._standing: MatchStanding | None = None
        self._said = -_EVERY
        self.live: Live | None = None

    def say(self, text: str) -> None:
        """A line that stays."""
        if self.live is not None:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, flush=True)

    def show(self, standing: MatchStanding) -> None:
        """How it stands now. Cheap."""
        self._standing = standing
        if self.live is None and self._now() - self._said >= _EVERY:
            self._said = self._now()
            print(self.line(), flush=True)

    def line(self) -> str:
        """In one line."""
        book, standing = self._book, self._standing
        passed = self._now() - self._began
        words = [f"{len(book.played)} of {book.games} games"]
        result = book.result
        if result.games:
            name = book.names[0] if len(book.names[0]) <= _NAME else f"{book.names[0][: _NAME - 3]}..."
            words.append(f"{name} {100 * result.share:.1f} % ({result.counts})")
        if standing is None:
            words.append("starting")
        elif standing.under_way:
            words.append(f"{standing.under_way} under way, {standing.moves} moves")
        if standing is not None and standing.compiling:
            words.append("compiling")
        words.append(clock(passed))
        fresh, left = len(book.played) - self._before, len(book.missing)
        if fresh and left:
            words.append(f"{clock(passed / fresh * left)} left")
        return ", ".join(words)

    def __rich__(self) -> Text:
        return Text(self.line(), overflow="ellipsis", no_wrap=True)


@contextlib.contextmanager
def watching(book: MatchGames) -> Iterator[MatchDisplay]:
    """Show the match on the terminal, if there is one."""
    console = Console(file=sys.stdout)
    watch = MatchDisplay(book, console)
    if not console.is_terminal:
        yield watch
        return
    with Live(watch, console=console, refresh_per_second=_REFRESHES, transient=True) as watch.live:
        yield watch
    watch.live = None
