"""The commands and options of UCI as data: https://backscattering.de/chess/uci/ , and how late moves are.

Nothing here needs JAX. By the specification, unknown words are skipped and the rest of the line is still read.
"""

from dataclasses import dataclass, replace

COMMANDS = (
    "uci", "isready", "ucinewgame", "position", "go", "stop", "ponderhit", "setoption", "debug", "register", "quit",
)  # fmt: skip
_LONGEST = 1e9  # milliseconds, moves, nodes: what is beyond was not meant
_NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "movetime", "nodes", "depth", "mate")
_FLAGS = ("infinite", "ponder")
_FEN_FIELDS = 6
_MOVES_TO_GO = 30  # that a player has still to make, if nobody says
_OPTIONS = {  # name: field of UciOptions, and limits of a number
    "MultiPV": ("multi_pv", (1, 64)),
    "UCI_ShowWDL": ("show_wdl", None),
    "UCI_Chess960": ("chess960", None),
    "Move Overhead": ("overhead", (0, 60_000)),
    "Ponder": ("", None),  # only says that `go ponder` may come
}
_KEPT = 0.9  # of an estimate after each move
_KEPT_IF_PUNCTUAL = 0.5  # of our own after a move that took no longer than planned
_MOST = 10.0  # seconds
_MOST_OUTSIDE = 1.0  # a clock that ran longer without us was set by somebody


@dataclass(frozen=True)
class UciCommand:
    name: str
    words: tuple[str, ...]  # after the name


@dataclass(frozen=True)
class UciGo:
    """How long to think. Times are in seconds."""

    clock: tuple[float | None, float | None] = (None, None)  # what White and Black have left
    increment: tuple[float, float] = (0.0, 0.0)
    moves_to_go: int | None = None
    seconds: float | None = None
    nodes: int | None = None
    infinite: bool = False
    ponder: bool = False
    moves: tuple[str, ...] = ()  # only these may be chosen

    def limit(self, player: int, overhead: float) -> float | None:
        """Seconds for a move of White (0) or Black (1); None if no time is said.

        `overhead` are those that a move may take beyond that; at most half of the time is kept back for them.
        """
        if self.seconds is not None:
            return self.seconds - min(overhead, self.seconds / 2)
        left = self.clock[player]
        if left is None:
            return None
        left -= min(overhead, left / 2)
        to_go = max(1, min(self.moves_to_go or _MOVES_TO_GO, 2 * _MOVES_TO_GO))
        most = 0.9 if to_go == 1 else 0.5  # of what is left: somebody else may have kept us waiting
        return max(min(left / to_go + 0.8 * self.increment[player], most * left), 0.01)


def parse(line: str) -> UciCommand | None:
    """The command in a line; None if there is none."""
    words = line.split()
    for number, word in enumerate(words):
        if word in COMMANDS:
            return UciCommand(word, tuple(words[number + 1 :]))
    return None


def parse_position(words: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """(FEN, or None for the usual start; moves) of `position`. ValueError says what is wrong."""
    before, moves = words, ()
    if "moves" in words:
        place = words.index("moves")
        before, moves = words[:place], words[place + 1 :]
    if before and before[0] == "startpos":
        return None, moves
    if before and before[0] == "fen":
        fields = before[1:]
        if not 4 <= len(fields) <= _FEN_FIELDS:
            raise ValueError("a FEN has six fields")
        return " ".join([*fields, *("0", "1")[len(fields) - 4 :]]), moves
    raise ValueError("expected position startpos or position fen FEN")


def parse_go(words: tuple[str, ...]) -> UciGo:
    """What `go` says. Numbers that are none are passed over, and so is what cannot be had: depth, mate."""
    numbers: dict[str, float] = {}
    flags: set[str] = set()
    moves: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in _FLAGS:
            flags.add(word)
        elif word in _NUMBERS and rest and (value := _number(rest[0])) is not None:
            numbers[word] = value
            rest.pop(0)
        elif word == "searchmoves":
            while rest and rest[0] not in (*_FLAGS, *_NUMBERS):
                moves.append(rest.pop(0).lower())
    times = {name: max(value, 0.0) / 1000 for name, value in numbers.items()}
    return UciGo(
        clock=(times.get("wtime"), times.get("btime")),
        increment=(times.get("winc", 0.0), times.get("binc", 0.0)),
        moves_to_go=int(numbers["movestogo"]) if numbers.get("movestogo", 0) >= 1 else None,
        seconds=times.get("movetime"),
        nodes=max(int(numbers["nodes"]), 1) if "nodes" in numbers else None,
        infinite="infinite" in flags,
        ponder="ponder" in flags,
        moves=tuple(moves),
    )


def parse_option(words: tuple[str, ...]) -> tuple[str, str]:
    """(name, value) of `setoption name NAME [value VALUE]`; both may be of several words. ValueError if it has none."""
    if not words or words[0] != "name":
        raise ValueError("expected setoption name NAME value VALUE")
    place = words.index("value") if "value" in words else len(words)
    name = " ".join(words[1:place])
    if not name:
        raise ValueError("expected setoption name NAME value VALUE")
    return name, " ".join(words[place + 1 :])


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) <= _LONGEST else None


@dataclass(frozen=True)
class UciOptions:
    """What `setoption` may change, with the default values."""

    multi_pv: int = 1
    show_wdl: bool = False
    overhead: int = 100  # milliseconds of each move that are lost between clock and engine
    chess960: bool = False  # castling is the king taking its rook

    def declared(self) -> list[str]:
        return [
            f"option name {name} type check default false"
            if limits is None
            else f"option name {name} type spin default {getattr(self, field)} min {limits[0]} max {limits[1]}"
            for name, (field, limits) in _OPTIONS.items()
        ]

    def changed(self, name: str, value: str) -> "UciOptions":
        """Change one option. ValueError says what is wrong."""
        found = next((about for known, about in _OPTIONS.items() if known.lower() == name.lower()), None)
        if found is None:
            raise ValueError(f"no such option: {name}")
        field, limits = found
        read = _truth(name, value) if limits is None else _whole(name, value, *limits)
        return replace(self, **{field: read}) if field else self


def _whole(name: str, value: str, low: int, high: int) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 10 and low <= int(value) <= high):
        raise ValueError(f"{name}: expected a whole number from {low} to {high}, got {value!r}")
    return int(value)


def _truth(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(f"{name}: expected true or false, got {value!r}")
    return value.lower() == "true"


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
