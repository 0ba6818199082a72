"""The sections of a configuration: every setting of a run, with its meaning and its limits.

To add a section, declare a frozen dataclass here and name it in `Config`. No setting has a default: a
configuration file shows all that goes into a run.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tengen import nets
from tengen.schema import REQUIRED, setting, variant


def _game_options(name: str) -> type:
    """The class that declares the options of a game."""
    from tengen import games  # brings in JAX, which `tengen --help` should not wait for

    return games.options_class(name)


@dataclass(frozen=True)
class RunSection:
    name: str = setting(
        REQUIRED,
        "what the run and its networks are called",
        pattern=r"[A-Za-z0-9_-]{1,60}",
        words="letters, digits, - and _, at most 60 of them",
    )
    about: str = setting(
        REQUIRED,
        "what the run is for",
        pattern=r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}",
        words="one line of text, at most 200 characters",
    )
    seed: int = setting(REQUIRED, "where all randomness starts", low=0, high=2**32 - 1)


@dataclass(frozen=True)
class GameSection:
    name: str = setting(REQUIRED, "which game", words="a name that `tengen games` lists")
    options: Any = variant("name", _game_options)


@dataclass(frozen=True)
class NetSection:
    name: str = setting(REQUIRED, "which network", words="a name as `tengen nets` explains them")
    heads: tuple[nets.Head, ...] = setting(REQUIRED, "what it predicts besides policy and value")
    dtype: nets.Dtype = setting(REQUIRED, "what it computes in; parameters are float32")

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for what makes no network."""
        try:
            nets.spec(self.name)
        except ValueError as error:
            yield "name", str(error)
        if len(set(self.heads)) < len(self.heads):
            yield "heads", f"expected each head once, got {', '.join(self.heads)}"


@dataclass(frozen=True)
class SelfplaySection:
    games: int = setting(REQUIRED, "how many games the device plays at once", low=1, high=1_000_000)


@dataclass(frozen=True)
class Config:
    """Everything that makes a run what it is."""

    run: RunSection = setting(REQUIRED, "what this run is")
    game: GameSection = setting(REQUIRED, "which rules are played")
    net: NetSection = setting(REQUIRED, "what looks at positions")
    selfplay: SelfplaySection = setting(REQUIRED, "how games are played to learn from")

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for a network that cannot play the game."""
        from tengen import games

        game = games.make(self.game.name, **asdict(self.game.options))
        for key, message in nets.problems(nets.spec(self.net.name, self.net.heads), game):
            yield f"net.{key}", message
