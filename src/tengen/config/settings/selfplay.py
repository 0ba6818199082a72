"""The section `selfplay`: how games are played for training. See docs/selfplay.md."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from tengen.errors import OptionError
from tengen.schema import Retired, setting

_SIZE = re.compile(r"([1-9][0-9]?):(0?\.[0-9]+)(?::(-?[0-9]+(?:\.[05])?))?")
_STAGE = re.compile(r"(0?\.[0-9]+):([1-9][0-9]{0,4})/([1-9][0-9]{0,4})(?::([0-9]{1,3}(?:\.[0-9]+)?))?")
_OPPONENT = re.compile(r"([a-z][a-z0-9_]*)=([^:]+):(0?\.[0-9]+|1(?:\.0+)?)")


def _parts(pattern: re.Pattern[str], text: str, expected: str) -> tuple[Any, ...]:
    if (found := pattern.fullmatch(text)) is None:
        raise OptionError(f"expected {expected}, got {text!r}")
    return found.groups()


class BoardSize(NamedTuple):
    """Another board size that some games are played on."""

    size: int
    share: float  # of the games
    komi: float | None  # None: the game's own


def size(text: str) -> BoardSize:
    """Parses an item of `SelfplaySettings.sizes`."""
    side, share, komi = _parts(_SIZE, text, "SIZE:SHARE or SIZE:SHARE:KOMI")
    return BoardSize(int(side), float(share), None if komi is None else float(komi))


class SearchStage(NamedTuple):
    """A stage of the run, and the searches in it."""

    until: float  # share of the run's goal at which it ends
    simulations: int  # of full searches
    cheap: int  # of the others
    rate: float  # factor of the learning rate


def stage(text: str) -> SearchStage:
    """Parses an item of `SelfplaySettings.stages`."""
    expected = "UNTIL:SIMULATIONS/CHEAP or UNTIL:SIMULATIONS/CHEAP:RATE"
    until, simulations, cheap, rate = _parts(_STAGE, text, expected)
    return SearchStage(float(until), int(simulations), int(cheap), 1.0 if rate is None else float(rate))


class NamedOpponent(NamedTuple):
    """A player who plays one side in some of the games."""

    role: str  # of `Game.roles`, as black
    name: str  # of a fixed player, or the path of a network
    share: float  # of the games


def named(text: str) -> NamedOpponent:
    """Parses an item of `SelfplaySettings.opponents`."""
    role, name, share = _parts(_OPPONENT, text, "ROLE=PLAYER:SHARE, as black=random:0.1")
    return NamedOpponent(role, name, float(share))


def resized(options: dict[str, Any], to: BoardSize) -> dict[str, Any]:
    """The options of Go on a board of another size. The move limit shrinks with the board."""
    points, limit = (to.size / options["size"]) ** 2, options["max_moves"]
    return options | {
        "size": to.size,
        "komi": options["komi"] if to.komi is None else to.komi,
        "max_moves": None if limit is None else max(1, round(limit * points)),
    }


@dataclass(frozen=True)
class SelfplaySettings:
    """The defaults suit one GPU."""

    retired: ClassVar = {"branch_share": Retired(0.0, "games that branched off others made no network stronger")}

    games: int = setting(
        4096, "games played at once; on a CPU fewer if the network is large", low=1, high=1_000_000, change="start"
    )
    sizes: tuple[str, ...] = setting(
        (),
        "Go: smaller boards for some of the games",
        pattern=_SIZE.pattern,
        words="SIZE:SHARE or SIZE:SHARE:KOMI, as 7:0.25:9.0",
        change="start",
    )
    full_share: float = setting(
        0.25, "share of the moves with a full search; only those are policy targets", low=0.01, high=1
    )
    cheap_simulations: int = setting(8, "simulations of the other (cheap) searches", low=1, high=30000)
    decided_value: float = setting(
        1.0, "a game is decided once several searches in a row give one player at least this value", low=0, high=1
    )
    decided_full_share: float = setting(
        1.0, "factor of full_share once a game is decided (1: no change)", low=0, high=1
    )
    cheap_weight: float = setting(
        0.0, "weight of rows from cheap searches, which train no policy (0: they are dropped)", low=0, high=1
    )
    surprise_share: float = setting(
        0.0,
        "share of a game's weight in training that is given to its positions by how much the search changed the policy",
        low=0,
        high=1,
        before=0.0,
    )
    value_horizon: float = setting(
        0.0,
        "plies over which the values of later searches are averaged into a row's search value (0: its own alone)",
        low=0,
        high=10000,
        before=0.0,
    )
    reuse: bool = setting(True, "keep the subtree of the move that was played")
    opening_moves: int = setting(4, "most random moves at the start of a game", low=0, high=100)
    temperature: float = setting(1.0, "temperature of the first move (0: the best move)", low=0, high=10)
    last_temperature: float = setting(0.1, "temperature late in the game", low=0, high=10)
    halving_plies: float = setting(
        8.0, "plies in which the temperature moves halfway to last_temperature", low=0.1, high=1000
    )
    komi_spread: float = setting(0.0, "Go: standard deviation of komi around the game's own", low=0, high=100)

    opponents: tuple[str, ...] = setting(
        (),
        "fixed players or networks that play one side in some of the games",
        pattern=_OPPONENT.pattern,
        words="ROLE=PLAYER:SHARE, as black=random:0.1, of a player of the game and a fixed player or a network's path",
        change="start",
    )
    stages: tuple[str, ...] = setting(
        (),
        "earlier stages of the run with fewer simulations, each until a share of the goal is reached",
        pattern=_STAGE.pattern,
        words="UNTIL:SIMULATIONS/CHEAP or UNTIL:SIMULATIONS/CHEAP:RATE, as 0.4:32/8:2.0",
        before=(),
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        sizes = [size(text) for text in self.sizes]
        if len({each.size for each in sizes}) < len(sizes):
            yield "sizes", f"expected each size once, got {', '.join(self.sizes)}"
        if sum(each.share for each in sizes) >= 1:
            yield "sizes", "expected shares that leave some games for the game's own size"
        for each in sizes:
            if round(each.share * self.games) < 1:
                yield "sizes", f"expected a share of at least one game in {self.games}, got {each.share:g}"
        stages = [stage(text) for text in self.stages]
        if [each.until for each in stages] != sorted({each.until for each in stages}):
            yield "stages", f"expected stages that end one after the other, got {', '.join(self.stages)}"
        for text, each in zip(self.stages, stages, strict=True):
            if each.cheap > each.simulations:
                yield "stages", f"{text}: expected at most as many cheap simulations as full ones"
        opponents = [named(text) for text in self.opponents]
        if sum(each.share for each in opponents) > 1 + 1e-9:
            yield "opponents", f"expected shares of at most 1 together, got {', '.join(self.opponents)}"
        for each in opponents:
            if round(each.share * self.games) < 1:
                yield "opponents", f"expected a share of at least one game in {self.games}, got {each.share:g}"
        if self.last_temperature > self.temperature:
            yield "last_temperature", f"expected at most temperature, {self.temperature}, got {self.last_temperature}"


def stride(simulations: int, settings: SelfplaySettings, leaves: int = 1) -> int:
    """Steps, of `leaves` simulations each, after which searches may end, so that neither kind waits for the other."""
    always_full = settings.full_share == 1 and settings.decided_full_share == 1
    counts = (each[1:2] if always_full else each[1:3] for each in all_stages(simulations, settings))
    return math.gcd(*(-(-count // leaves) for pair in counts for count in pair))


def all_stages(simulations: int, settings: SelfplaySettings) -> list[SearchStage]:
    """The stages of a run, the last with the `simulations` of the section `search`."""
    last = SearchStage(1.0, simulations, settings.cheap_simulations, 1.0)
    return [*map(stage, settings.stages), last]


def stage_at(progress: float, simulations: int, settings: SelfplaySettings) -> SearchStage:
    """The stage of a run that has reached that share of its goal."""
    stages = all_stages(simulations, settings)
    return next((each for each in stages if progress < each.until), stages[-1])
