"""The sections of a configuration: every setting of a run, with its meaning and its limits.

To add a section, declare a frozen dataclass here and name it in `Config`. No setting has a default: a
configuration file shows all that goes into a run.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tengen import nets
from tengen.config.settings.daemon import DaemonSettings
from tengen.config.settings.data import WindowSettings
from tengen.config.settings.parts import GateSettings, PipelineSettings
from tengen.config.settings.search import SearchSettings as SearchSettings
from tengen.config.settings.selfplay import SelfplaySettings, resized, size
from tengen.config.settings.shuffle import ShuffleSettings
from tengen.config.settings.train import TrainSettings
from tengen.schema import REQUIRED, setting, variant


def _game_options(name: str) -> type:
    """The class that declares the options of a game."""
    from tengen import games

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
class DataSection:
    window: WindowSettings = setting(REQUIRED, "how many of the newest rows are learned from")
    ring_rows: int = setting(REQUIRED, "rows that the device keeps; the window is never larger", low=64, high=10**9)
    first_rows: int = setting(REQUIRED, "rows before learning begins", low=1, high=10**9)
    chunk_rows: int = setting(REQUIRED, "rows in a file, about: whole games only", low=1, high=10**7)
    max_chunk_rows: int = setting(
        REQUIRED, "files with more rows are not read, whoever wrote them", low=10_000, high=10**8, before=1_000_000
    )
    record_share: float = setting(REQUIRED, "share of the games that are written down for people", low=0, high=1)


@dataclass(frozen=True)
class RatingSection:
    minutes: float = setting(
        REQUIRED,
        "minutes of the run between two ratings, each of a new network; at most a fifth of goal.minutes",
        low=0.05,
        high=1e5,
    )
    games: int = setting(
        REQUIRED, "games of one match, in pairs with colours swapped", low=2, high=100_000, multiple_of=2
    )
    simulations: int = setting(REQUIRED, "simulations per move of the networks", low=1, high=30000)
    opening_moves: int = setting(REQUIRED, "random moves at the start of a pair", low=0, high=100)
    references: tuple[str, ...] = setting(
        REQUIRED,
        "who plays each network besides",
        pattern=r"random|mcts:[1-9][0-9]{0,3}",
        words="random, or mcts:N for plain tree search with N playouts a move, at most 9999",
    )
    earlier: int = setting(REQUIRED, "how many earlier networks play it too", low=0, high=10)


@dataclass(frozen=True)
class GoalSection:
    minutes: float | None = setting(REQUIRED, "minutes, over all restarts (null: no limit)", low=0.01, high=1e7)
    games: int | None = setting(REQUIRED, "finished games (null: no limit)", low=1, high=10**12)
    rows: int | None = setting(REQUIRED, "rows played (null: no limit)", low=1, high=10**12)
    steps: int | None = setting(REQUIRED, "steps learned (null: no limit)", low=1, high=10**12)


@dataclass(frozen=True)
class Config:
    """Everything that makes a run what it is."""

    run: RunSection = setting(REQUIRED, "what this run is")
    game: GameSection = setting(REQUIRED, "which rules are played")
    net: NetSection = setting(REQUIRED, "what looks at positions")
    search: SearchSettings = setting(REQUIRED, "how moves are searched for; a full search has all simulations")
    selfplay: SelfplaySettings = setting(REQUIRED, "how games are played to learn from")
    data: DataSection = setting(REQUIRED, "what becomes of the rows that games teach")
    train: TrainSettings = setting(REQUIRED, "how the network learns")
    shuffle: ShuffleSettings = setting(REQUIRED, "sync, async: how rows are drawn and put in random order")
    ring: PipelineSettings = setting(REQUIRED, "sync, async: how the parts work together")
    gate: GateSettings = setting(REQUIRED, "sync, async: which networks are accepted")
    daemon: DaemonSettings = setting(REQUIRED, "daemon: how it waits for data, trains, exports and hands on")
    rating: RatingSection = setting(REQUIRED, "how strength is measured on the way")
    goal: GoalSection = setting(REQUIRED, "when the run ends: at whichever comes first")

    def check_together(self) -> Iterator[tuple[str, str]]:
        """(key, message) for sections that do not go together."""
        from tengen import games

        game = games.make(self.game.name, **asdict(self.game.options))
        for key, message in nets.problems(nets.spec(self.net.name, self.net.heads), game):
            yield f"net.{key}", message
        if self.selfplay.opponents and self.game.name != "hironaka":
            yield "selfplay.opponents", f"expected none, because {self.game.name} has neither host nor agent"
        if self.selfplay.komi_spread and self.game.name != "go":
            yield "selfplay.komi_spread", f"expected 0, because {self.game.name} has no komi"
        yield from self._sizes()
        if self.selfplay.cheap_simulations > self.search.simulations:
            yield "selfplay.cheap_simulations", f"expected at most search.simulations, {self.search.simulations}"
        if self.data.first_rows > self.data.ring_rows:
            yield "data.first_rows", f"expected at most data.ring_rows, {self.data.ring_rows}"

    def _sizes(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the other boards."""
        from tengen import games

        if not self.selfplay.sizes:
            return
        if self.game.name != "go":
            yield "selfplay.sizes", "expected none, because only go is played on boards of several sizes"
            return
        for text in self.selfplay.sizes:
            other, own = size(text), self.game.options.size
            if other.size >= own:
                yield "selfplay.sizes", f"expected sizes below the game's own, {own}, got {other.size}"
                continue
            try:
                games.make("go", **resized(asdict(self.game.options), other))
            except ValueError as error:
                yield "selfplay.sizes", f"{text}: {error}"
