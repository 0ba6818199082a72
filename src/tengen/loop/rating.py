"""How strong the networks of a run are: matches on the device, one scale for all of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from tengen import arena
from tengen.arena import players
from tengen.arena.match import Match
from tengen.arena.ratings import Rating, Ratings, anchor
from tengen.arena.settings import MatchSettings
from tengen.config import RatingSection
from tengen.errors import TengenError
from tengen.games import Game
from tengen.loop import leaving
from tengen.loop.networks import Networks
from tengen.loop.summary import Point
from tengen.search import Settings


class Rater:
    """Plays each new network against fixed references and against earlier networks of the run.

    Results are kept in RATINGS/results.jsonl and networks in their folder, so nothing is forgotten between two starts.
    """

    def __init__(
        self, folder: Path, game: Game, evaluate: Any, search: Settings, settings: RatingSection, networks: Networks
    ) -> None:
        self.path = folder / "results.jsonl"
        self.results = arena.read(self.path)
        self.notes: list[str] = []  # about networks that could not play, since they were last taken away
        self._game, self._evaluate, self._settings, self._networks = game, evaluate, settings, networks
        self._search = players.strongest(search, settings.simulations)
        self._references = [players.parse(text, game) for text in settings.references]
        self._loaded: dict[str, players.Player] = {}

    def refresh(self) -> None:
        """Take in what others, such as the gate, have added to the results."""
        self.results = arena.read(self.path)

    def player(self, name: str, params: Any) -> players.Player:
        """A network of the run."""
        return players.network(name, self._evaluate, self._game, self._search, params)

    def opponents(self, name: str) -> list[str]:
        """Whom a network will play: the references, then earlier networks, the newest first."""
        earlier = [saved.name for saved in reversed(self._networks.saved) if saved.name != name]
        return [*self._settings.references, *earlier[: self._settings.earlier]]

    def rate(self, name: str, params: Any, key: jax.Array) -> Iterator[Match]:
        """Play the matches of a network, one after the other as they are asked for."""
        newest = self.player(name, params)
        settings = MatchSettings(games=self._settings.games, opening_moves=self._settings.opening_moves)
        for number, other in enumerate(self.opponents(name)):
            opponent = self._opponent(other)
            if opponent is None:
                continue
            with leaving.possible():  # the network is saved, and a match that is not over is not counted
                match = arena.play(self._game, newest, opponent, jax.random.fold_in(key, number), settings)
            arena.append(self.path, match.result)
            self.results.append(match.result)
            yield match
        self._loaded = {name: newest, **self._loaded}
        kept = {name, *self.opponents("")}
        self._loaded = {known: player for known, player in self._loaded.items() if known in kept}

    def rating(self, name: str) -> Rating | None:
        """Of one player on the run's scale; None if it has not played."""
        ratings = self.ratings
        return next((rating for rating in ratings.players if rating.name == name), None) if ratings else None

    @property
    def ratings(self) -> Ratings | None:
        """Of all that have played, the weakest reference being 0; None before the first match."""
        return arena.fit(self.results, anchor(self.results)) if self.results else None

    def curve(self) -> tuple[Point, ...]:
        """The networks of the run over time, all on the present scale."""
        ratings = self.ratings
        elo = {rating.name: rating.elo for rating in ratings.players} if ratings else {}
        return tuple(Point(saved.seconds, elo[saved.name]) for saved in self._networks.saved if saved.name in elo)

    def _opponent(self, name: str) -> players.Player | None:
        for reference in self._references:
            if reference.name == name:
                return reference
        if name not in self._loaded:
            try:
                self._loaded[name] = self.player(name, self._networks.parameters(name))
            except TengenError as error:
                self.notes.append(f"an earlier network cannot play: {error}")
                return None
        return self._loaded[name]
