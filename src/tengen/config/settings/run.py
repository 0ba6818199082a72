"""The sections `run`, `game` and `goal`: what is played, under which name, and for how long."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tengen.schema import REQUIRED, setting, variant

if TYPE_CHECKING:
    from tengen.games.core import Game

RULES_FIXED = (
    "the rows and networks of this run belong to these rules; "
    "begin a new run, with net.start_from to start from this run's network"
)


def _game_options(name: str) -> type:
    from tengen import games

    return games.options_class(name)


@dataclass(frozen=True)
class RunSection:
    name: str = setting(
        REQUIRED,
        "name of the run and of its networks",
        pattern=r"[A-Za-z0-9_-]{1,60}",
        words="letters, digits, - and _, at most 60 of them",
        fixed="networks and records carry this name; begin a new run for another",
    )
    about: str = setting(
        REQUIRED,
        "purpose of the run",
        pattern=r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}",
        words="one line of text, at most 200 characters",
        change="now",
    )
    seed: int = setting(
        REQUIRED,
        "seed of all random numbers",
        low=0,
        high=2**32 - 1,
        fixed="everything so far followed from this seed; begin a new run for another",
    )


@dataclass(frozen=True)
class GameSection:
    name: str = setting(REQUIRED, "the game", words="a name that `tengen games` lists, or package.module:Class")
    options: Any = variant("name", _game_options)

    def make(self) -> "Game":
        from tengen import games

        return games.make(self.name, **asdict(self.options))


@dataclass(frozen=True)
class GoalSection:
    minutes: float | None = setting(REQUIRED, "minutes, restarts included (null: no limit)", low=0.01, high=1e7)
    games: int | None = setting(REQUIRED, "finished games (null: no limit)", low=1, high=10**12)
    rows: int | None = setting(REQUIRED, "rows from self-play (null: no limit)", low=1, high=10**12)
    steps: int | None = setting(REQUIRED, "training steps (null: no limit)", low=1, high=10**12)
