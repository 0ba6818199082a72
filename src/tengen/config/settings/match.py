"""How networks are played: matches on the device, the section `rating`, and engines for one game."""

from dataclasses import dataclass
from typing import Literal

from tengen.schema import REQUIRED, setting


@dataclass(frozen=True)
class MatchSettings:
    games: int = setting(100, "games, with colours swapped in every second", low=2, high=100_000, multiple_of=2)
    opening_moves: int = setting(
        2, "random moves before the players take over; more if these give too few openings", low=0, high=1000
    )


@dataclass(frozen=True)
class RatingSection:
    minutes: float = setting(
        REQUIRED,
        "minutes between two ratings, each of a new network; at most a fifth of goal.minutes",
        low=0.05,
        high=1e5,
    )
    games: int = setting(
        REQUIRED, "games of a match, in pairs with colours swapped", low=2, high=100_000, multiple_of=2
    )
    simulations: int = setting(REQUIRED, "simulations per move of the networks", low=1, high=30000)
    opening_moves: int = setting(REQUIRED, "random moves at the start of each pair of games", low=0, high=100)
    references: tuple[str, ...] = setting(
        REQUIRED,
        "fixed opponents of every network",
        pattern=r"random|mcts:[1-9][0-9]{0,3}",
        words="random, or mcts:N for plain tree search with N playouts a move, at most 9999",
    )
    earlier: int = setting(REQUIRED, "earlier networks that each new one plays", low=0, high=10)


Precision = Literal["auto", "bfloat16", "float32"]


@dataclass(frozen=True)
class EngineSettings:
    """How an engine searches."""

    visits: int = setting(800, "visits per move, if neither visits nor seconds are given", low=1, high=100_000_000)
    leaves: int | None = setting(None, "positions evaluated at once (null: chosen for the device)", low=1, high=256)
    slots: int | None = setting(
        None, "positions that the tree keeps (null: half a GiB of them, at most 131072)", low=16, high=2**24
    )
    precision: Precision = setting("auto", "of the network (auto: bfloat16 on accelerators, float32 on CPUs)")
    c_init: float = setting(0.8, "exploration constant", low=0, high=100)
    lower_bound: float = setting(
        0.2, "the best move has the largest value minus this over the square root of its visits", low=0, high=100
    )
    virtual_loss: float = setting(1.0, "virtual loss of a position under evaluation", low=0, high=100)


@dataclass(frozen=True)
class PlaySettings:
    """How an engine plays a game against an opponent."""

    visits: int | None = setting(None, "visits per move (null: until the time is over)", low=1, high=100_000_000)
    seconds: float | None = setting(None, "seconds per move (null: by the clock)", low=0.001, high=1e6)
    resign: float = setting(0.05, "resign when the winning chance is below this three times in a row", low=0, high=1)
    ponder: bool = setting(False, "think on the opponent's time")
    lag: float = setting(0.5, "seconds per move lost between clock and engine", low=0, high=60)
