"""How strong the networks of a run are: matches on the device, one scale for all of them."""

from pathlib import Path
from typing import Any

import jax

from tengen import arena
from tengen.arena import players
from tengen.arena.ratings import Ratings
from tengen.arena.settings import MatchSettings
from tengen.config import RatingSection
from tengen.games import Game
from tengen.search import Settings


class Rater:
    """Plays each new network against fixed references and against earlier networks of the run."""

    def __init__(self, folder: Path, game: Game, evaluate: Any, search: Settings, settings: RatingSection) -> None:
        self.path = folder / "results.jsonl"
        self.results = arena.read(self.path) if self.path.exists() else []
        self._game, self._evaluate, self._settings = game, evaluate, settings
        self._search = players.strongest(search, settings.simulations)
        self._references = [players.parse(text, game) for text in settings.references]
        self._earlier: list[players.Player] = []

    def player(self, name: str, params: Any) -> players.Player:
        """A network of the run."""
        return players.network(name, self._evaluate, self._game, self._search, params)

    def rate(self, name: str, params: Any, key: jax.Array) -> list[str]:
        """Play the matches of a network; a line about each."""
        newest = self.player(name, params)
        lines = []
        earlier = self._earlier[-self._settings.earlier :] if self._settings.earlier else []
        for number, opponent in enumerate([*self._references, *earlier]):
            settings = MatchSettings(games=self._settings.games, opening_moves=self._settings.opening_moves)
            match = arena.play(self._game, newest, opponent, jax.random.fold_in(key, number), settings)
            self.results.append(match.result)
            arena.append(self.path, match.result)
            lines.append(str(match))
        self._earlier.append(newest)
        return lines

    @property
    def ratings(self) -> Ratings | None:
        """Of all that have played, the weakest reference being 0; None before the first match."""
        if not self.results:
            return None
        names = {name for result in self.results for name in (result.a, result.b)}
        anchor = "random" if "random" in names else min(names & set(self._settings.references), default=min(names))
        return arena.fit(self.results, anchor)
