"""How much longer moves take than planned, on a machine that others use too."""

_KEPT = 0.9  # of an estimate after each move
_KEPT_IF_PUNCTUAL = 0.5  # of our own after a move that took no longer than planned
_MOST = 10.0  # seconds
_MOST_OUTSIDE = 1.0  # a clock that ran longer without us was set by somebody


class Lag:
    """Measures how late moves are, so that the session plans for less time.

    Two clocks tell of it: ours, when a block of the search took longer than expected, and that of the chess program,
    which also runs while messages travel.
    """

    def __init__(self) -> None:
        self._late = 0.0  # by our clock
        self._outside = 0.0  # by the program's clock, beyond ours
        self._expected: dict[int, float] = {}  # by player: what the program's clock should show at the next move

    def margin(self, overhead: float) -> float:
        """Seconds that a move may take beyond its plan; `overhead` are those that the user expects outside."""
        return self._late + max(self._outside, overhead)

    def new_game(self) -> None:
        """Clocks start again; the machine is the same."""
        self._expected.clear()

    def clock_says(self, player: int, left: float | None) -> None:
        """The seconds that a player has left before a move, by the clock of the chess program."""
        expected = self._expected.pop(player, None)
        if left is not None and expected is not None and 0 < expected - left <= _MOST_OUTSIDE:
            self._outside = max(self._outside, expected - left)

    def moved(self, player: int, planned: float, took: float, left: float | None, increment: float) -> None:
        """A move was planned to take some seconds and took others; `left` were there before it."""
        late = took - planned
        self._late = min(max(late, (_KEPT if late > 0 else _KEPT_IF_PUNCTUAL) * self._late), _MOST)
        self._outside *= _KEPT
        if left is not None:
            self._expected[player] = left + increment - took
