"""The settings of a match on the device."""

from dataclasses import dataclass

from tengen.schema import setting


@dataclass(frozen=True)
class MatchSettings:
    games: int = setting(100, "games, with colours swapped in every second", low=2, high=100_000, multiple_of=2)
    opening_moves: int = setting(
        2, "random moves before the players take over; more if these give too few openings", low=0, high=1000
    )
