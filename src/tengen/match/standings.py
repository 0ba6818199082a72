"""Ratings for people: a table with a chart in text, and JSON data."""

from collections.abc import Mapping
from typing import Any

from tengen.match.ratings import Rating, Ratings

_NAME = 48  # columns that a name may take
_CHART = 40
_FEWEST = 12  # columns of chart below which there is none


def ranked(ratings: Ratings) -> list[Rating]:
    """Those who have played, the strongest first."""
    return [rating for rating in ratings.players if rating.games]


def unplayed(ratings: Ratings) -> list[str]:
    """The names of the others."""
    return [rating.name for rating in ratings.players if not rating.games]


def table(ratings: Ratings, columns: int = 100) -> str:
    """Rank, name, Elo, error, games, score; and a picture of it where there is room."""
    players = ranked(ratings)
    if not players:
        return "no games so far"
    width = min(_NAME, max(len("player"), *(len(rating.name) for rating in players)))
    room = min(_CHART, columns - width - 40)
    low, high = _range(ratings.anchor, players)
    head = f"{'':>4} {'player':<{width}} {'Elo':>6} {'+-':>5} {'games':>6} {'score':>7}"
    lines = [f"{head}  {low:<+{room // 2}.0f}{high:>+{room - room // 2}.0f}" if room >= _FEWEST else head]
    for rank, rating in enumerate(players, 1):
        error = "" if rating.name == ratings.anchor else f"{rating.error:.0f}"
        share = f"{100 * rating.points / rating.games:.1f} %"
        chart = "  " + _bar(rating, low, high, room) if room >= _FEWEST else ""
        name = shortened(rating.name, width)
        line = f"{rank:>4} {name:<{width}} {rating.elo:>6.0f} {error:>5} {rating.games:>6} {share:>7}{chart}"
        lines.append(line.rstrip())
    if missing := unplayed(ratings):
        some = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        lines.append(f"without a game: {len(missing)} ({some})")
    return "\n".join(lines)


def to_dict(ratings: Ratings, about: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON data, with what else there is to say."""
    return {
        "schema": 1,
        **about,
        "zero": ratings.anchor,
        "games": sum(rating.games for rating in ratings.players) // 2,
        "players": [
            {
                "rank": rank,
                "name": rating.name,
                "elo": round(rating.elo, 3),
                "error": round(rating.error, 3),
                "games": rating.games,
                "points": rating.points,
            }
            for rank, rating in enumerate(ranked(ratings), 1)
        ],
        "unplayed": unplayed(ratings),
    }


def shortened(name: str, width: int) -> str:
    """Its end says most: the names of a run begin alike."""
    return name if len(name) <= width else "..." + name[3 - width :]


def _range(zero: str, players: list[Rating]) -> tuple[float, float]:
    """What the chart shows: all ratings, and error bars that are not out of all proportion."""
    elos = [rating.elo for rating in players]
    slack = max(50.0, 0.15 * (max(elos) - min(elos)))
    sure = [rating for rating in players if rating.name == zero or rating.error <= 4 * slack]
    low = min([*elos, *(rating.elo - rating.error for rating in sure)])
    high = max([*elos, *(rating.elo + rating.error for rating in sure)])
    return (low, high) if high > low else (low - slack, high + slack)


def _bar(rating: Rating, low: float, high: float, room: int) -> str:
    """`--o--`: the interval and the rating in it."""

    def column(elo: float) -> int:
        return round((min(max(elo, low), high) - low) / (high - low) * (room - 1))

    first, last = column(rating.elo - rating.error), column(rating.elo + rating.error)
    cells = ["-" if first <= place <= last else " " for place in range(room)]
    cells[column(rating.elo)] = "o"
    return "".join(cells)
