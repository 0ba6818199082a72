"""Players by name: `random`, `mcts:200`, a network, a run, a foreign engine, or a fixed player of a role.

This is the one reader of such texts, for matches, ratings, references, opponents in self-play and roles.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tengen import games, schema
from tengen.config.settings.search import SearchSettings
from tengen.data.format.identity import GameIdentity
from tengen.errors import OptionError, TengenError
from tengen.games.core import Game
from tengen.games.players import Player
from tengen.match import players
from tengen.match.engines import engine, rules
from tengen.match.engines.pool import EnginePool
from tengen.nets.models import is_model
from tengen.run.networks import FoundNetwork, exists, find, find_network, make_game


@dataclass(frozen=True)
class PlayerSpec:
    """A player as the user wrote it."""

    text: str
    name: str  # for results
    found: FoundNetwork | None = None  # the network, if it is one
    role: str = ""  # which role it plays, if that matters
    added: str = ""  # options at the end of an engine's command that the user has not written

    @property
    def kind(self) -> Literal["network", "model", "engine", "plain"]:
        """A network, a model of another framework, a foreign engine, or a player that needs none of them."""
        if is_model(self.text):
            return "model"
        return "network" if self.found else "engine" if engine.is_foreign(self.text) else "plain"

    def about(self) -> dict[str, Any]:
        """As JSON data: what must not change during a match."""
        if self.found is None or self.kind == "model":
            return {"kind": self.kind}
        return {"kind": "network", "path": str(self.found.path.resolve()), "info": dict(self.found.saved.info)}

    def check(self, game: Game) -> None:
        """TengenError if it cannot play that game."""
        if self.kind == "engine":
            engine.check(self.text, game)
        elif self.found is None:
            self.player(game)
        elif self.found.saved.game != game.name:
            raise TengenError(f"{self.text}: a network for {self.found.saved.game}, and the game is {game.name}")
        elif self.kind == "model":
            self.player(game)

    def told_rules(self, game: str, options: Mapping[str, Any]) -> "PlayerSpec":
        """The same player, started with the options for the rules of that game if it is GNU Go and they are missing.

        The name has them, too: with other rules it is another player.
        """
        if game != "go" or self.kind != "engine":
            return self
        text = rules.complete(self.text, options)
        added = text.removeprefix(self.text).strip()
        return dataclasses.replace(self, text=text, name=text, added=added) if added else self

    @property
    def explanation(self) -> str:
        return f"GNU Go is started with {self.added} too: the rules of the match, by which Tengen counts"

    def player(self, game: Game, search: SearchSettings | None = None, dtype: Any = "float32") -> Player:
        """The player; a network without `search` plays its best move. TengenError if it does not fit the game."""
        if self.found is not None:
            return players.saved(self.name, self.found.path, game, search, dtype)
        if self.kind == "model":
            return players.saved(self.name, Path(self.text), game, search, dtype)
        if self.role:
            return Player(self.name, players.fixed_rules(game, self.role)[self.text])
        made = players.random(game) if self.text == "random" else players.mcts(int(self.text[5:]), game)
        return dataclasses.replace(made, name=self.name)

    def side(self, game: Game, search: SearchSettings, dtype: Any, terms: engine.Terms) -> Player | EnginePool:
        if self.kind != "engine":
            return self.player(game, search, dtype)
        return EnginePool(self.text, game, terms)


def parse(text: str, uci_options: tuple[tuple[str, str], ...] = ()) -> PlayerSpec:
    """The player that a text names. TengenError lists the possibilities."""
    text = text.strip()
    kind, colon, count = text.partition(":")
    if engine.is_foreign(text):
        protocol = engine.split(text)[0]
        options = "".join(f" {name}={value}" for name, value in uci_options) if protocol == "uci" else ""
        return PlayerSpec(text, text + options)
    if is_model(text):
        found = find_network(text) if "@" in text else None
        return PlayerSpec(text, text if found is None else found.name, found)
    if kind == "random" and colon:
        raise OptionError(f"{text}: random takes no number")
    if kind == "mcts":
        if not (count.isascii() and count.isdigit()):
            raise OptionError(f"{text}: expected the number of playouts per move, as in mcts:200")
        return PlayerSpec(f"mcts:{int(count)}", f"mcts:{int(count)}")
    if kind == "random":
        return PlayerSpec(text, text)
    if not exists(text):
        raise OptionError(
            f"{text or 'an empty name'}: there is no such file or folder; expected a network, a run, random, mcts:200, "
            "python:MODULE:FUNCTION, 'gtp:COMMAND' or 'uci:COMMAND'"
        )
    found = find(text)
    return PlayerSpec(text, found.name, found)


def parse_role(text: str, role: str, game: Game) -> PlayerSpec:
    """The fixed player of a role with that name, or the network at that path; of a run, the newest for the role."""
    names = players.fixed_rules(game, role)
    if text in names:
        return PlayerSpec(text, text, role=role)
    if not exists(text):
        expected = f"expected one of {', '.join(names)}, or the path of a network or a run"
        raise OptionError(f"{schema.quote(text)}: no {role} has that name, {expected}")
    # Hironaka's game has different actions for the roles; in others a network plays both.
    found = find(text, role if game.name == "hironaka" else None)
    return PlayerSpec(text, found.name, found, role)


def pair(a: PlayerSpec, b: PlayerSpec) -> tuple[PlayerSpec, PlayerSpec]:
    if a.name == b.name and a.found and b.found and a.found.path.resolve() != b.found.path.resolve():
        a, b = (dataclasses.replace(one, name=str(one.found.path)) for one in (a, b) if one.found)
    return (a, b) if a.name != b.name else (a, dataclasses.replace(b, name=f"{b.name}#2"))


def common_game(a: PlayerSpec, b: PlayerSpec, name: str | None, options: Mapping[str, Any]) -> Game:
    """The game or configuration of that name, or else the game of the networks, with these options changed.

    TengenError if there is none, or one of the players cannot play it.
    """
    networks = [one for one in (a, b) if one.found]
    if not name and not networks:
        raise TengenError("neither player is a network, so say what they play: --game go9, --game chess, ...")
    game = make_game(name, options) if name else _only_game(networks, options)
    a.check(game)
    b.check(game)
    return game


def _only_game(networks: list[PlayerSpec], options: Mapping[str, Any]) -> Game:
    """The game of the networks; if they differ in what they see of it, the one that shows it to all of them."""
    saved = [one.found.saved for one in networks if one.found]
    known = [GameIdentity(one.game, one.version, one.options) for one in saved]
    different = next(filter(None, map(known[0].difference, known)), "")
    try:
        made = [games.make(one.name, **one.options) for one in known]
        # Networks of one game need not be able to play it now: if its rules have changed, loading them says so.
        fitting = (one for one, game in zip(known, made, strict=True) if not different or _shows(game, known))
        if (chosen := next(fitting, None)) is not None:
            return games.make(chosen.name, **{**chosen.options, **options})
    except OptionError as error:
        raise TengenError(f"{networks[0].text}: its game cannot be made: {error}") from None
    raise TengenError(
        f"{networks[0].text} and {networks[1].text} were trained on different games ({different}); "
        "if both can play one of them, say which: --game ..."
    )


def _shows(game: Game, known: list[GameIdentity]) -> bool:
    return not any(GameIdentity.of(game.for_network(one.options)).difference(one) for one in known)
