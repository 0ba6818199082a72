"""The section `rating`: matches that measure the strength of networks during a run."""

from dataclasses import dataclass

from tengen.schema import REQUIRED, setting


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
