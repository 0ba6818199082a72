"""A match in one line: games, score, time left."""

import time
from collections.abc import Callable, Iterator

from rich.text import Text

from tengen.match.device_match import MatchStanding
from tengen.match.match_games import MatchGames
from tengen.monitor.display import Display, View, open_display
from tengen.words import clock

_EVERY = 10.0  # seconds between two plain lines
_NAME = 24  # letters of a player's name


class MatchView(View):
    """The score of the match in a folder."""

    def __init__(self, folder: MatchGames, now: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._now = folder, now
        self._began, self._before = now(), len(folder.played)
        self._standing: MatchStanding | None = None
        self._due = -_EVERY

    def update(self, state: MatchStanding) -> None:
        self._standing = state

    def lines(self, *, last: bool = False) -> Iterator[str]:
        if self._standing is not None and self._now() >= self._due:
            self._due = self._now() + _EVERY
            yield self.line()

    def draw(self) -> Text:
        return Text(self.line(), overflow="ellipsis", no_wrap=True)

    def line(self) -> str:
        folder, standing = self._folder, self._standing
        passed = self._now() - self._began
        # Games of a round that is under way are not in the folder yet.
        ended = max(len(folder.played), standing.finished if standing else 0)
        words = [f"{ended} of {folder.games} games"]
        result = folder.result
        if result.games:
            name = folder.names[0] if len(folder.names[0]) <= _NAME else f"{folder.names[0][: _NAME - 3]}..."
            words.append(f"{name} {100 * result.share:.1f} % ({result.counts})")
        if standing is None:
            words.append("starting")
        elif standing.under_way:
            words.append(f"{standing.under_way} under way, {standing.moves} moves")
        if standing is not None and standing.compiling:
            words.append("compiling")
        words.append(clock(passed))
        # From whole rounds: games that end early say little about how long the others take.
        new, left = len(folder.played) - self._before, len(folder.missing)
        if new and left:
            words.append(f"{clock(passed / new * left)} left")
        return ", ".join(words)


def watching(folder: MatchGames) -> Display:
    return open_display(MatchView(folder), transient=True)
