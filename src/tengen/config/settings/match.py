"""What a match is told."""

from dataclasses import dataclass

from tengen.schema import setting


@dataclass(frozen=True)
class MatchSettings:
    """One match."""

    games: int = setting(100, "games of a match, colours swapped in every second", low=2, high=100_000, multiple_of=2)
    opening_moves: int = setting(
        2, "random moves before the players take over; more if so few cannot differ", low=0, high=1000
    )
