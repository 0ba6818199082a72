"""Who plays a match: a network, a run, `random`, `mcts:200`, or an engine of others; and which game they play."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tengen.data.format.identity import GameIdentity
from tengen.errors import OptionError, TengenError
from tengen.match.engines import engine
from tengen.run.networks import FoundNetwork, find

if TYPE_CHECKING:
    from tengen.config.settings.search import SearchSettings
    from tengen.games.core import Game
    from tengen.match.engines.pool import EnginePool
    from tengen.match.players import Player


@dataclass(frozen=True)
class PlayerSpec:
    """One of the two, as the user wrote it."""

    text: str
    name: str  # for results
    found: FoundNetwork | None = None  # the network, if it is one
    added: str = ""  # options at the end of an engine's command that the user has not written

    @property
    def kind(self) -> Literal["network", "engine", "plain"]:
        """A network, an engine of others, or a player without a network."""
        return "network" if self.found else "engine" if engine.is_foreign(self.text) else "plain"

    def about(self) -> dict[str, Any]:
        """As JSON data: what must not change while a match is being played."""
        if self.found is None:
            return {"kind": self.kind}
        return {"kind": "network", "path": str(self.found.path.resolve()), "info": dict(self.found.saved.info)}


def read(text: str, uci_options: tuple[tuple[str, str], ...] = ()) -> PlayerSpec:
    """Who is meant. TengenError says what could have been."""
    text = text.strip()
    if engine.is_foreign(text):
        told = "".join(f" {name}={value}" for name, value in uci_options) if text.startswith("uci:") else ""
        return PlayerSpec(text, text + told)
    if text == "random" or text.partition(":")[0] == "mcts":
        return PlayerSpec(text, text)
    if not text or not Path(text).exists():
        raise TengenError(
            f"{text or 'an empty name'}: there is no such file or folder; expected a network, a run, random, mcts:200, "
            "'gtp:COMMAND' or 'uci:COMMAND'"
        )
    found = find(text)
    return PlayerSpec(text, found.name, found)


def informed(entrant: PlayerSpec, game: str, options: Mapping[str, Any]) -> PlayerSpec:
    """The same, started with the options that tell it the rules of that game, if it is GNU Go and they are missing.

    The name has them, too: with other rules it is another player.
    """
    if game != "go" or entrant.kind != "engine":
        return entrant
    from tengen.match.engines import rules

    text = rules.complete(entrant.text, options)
    added = text.removeprefix(entrant.text).strip()
    return dataclasses.replace(entrant, text=text, name=text, added=added) if added else entrant


def explained(entrant: PlayerSpec) -> str:
    """What was added to an engine's command, in words."""
    return f"GNU Go is started with {entrant.added} too: the rules of the match, by which Tengen counts"


def pair(a: PlayerSpec, b: PlayerSpec) -> tuple[PlayerSpec, PlayerSpec]:
    """Both, by different names."""
    if a.name != b.name:
        return a, b
    if a.found and b.found and a.found.path.resolve() != b.found.path.resolve():
        a, b = (dataclasses.replace(one, name=str(one.found.path)) for one in (a, b) if one.found)
    return (a, b) if a.name != b.name else (a, dataclasses.replace(b, name=f"{b.name}#2"))


def common_game(a: PlayerSpec, b: PlayerSpec, name: str | None, options: Mapping[str, Any]) -> "Game":
    """What they play: the game or configuration of that name, or else that of the networks, which must be one.

    Some of its `options` may be others. TengenError if there is none, or one of them cannot play it.
    """
    networks = [one for one in (a, b) if one.found]
    if not name and not networks:
        raise TengenError("neither player is a network, so say what they play: --game go9, --game pgx:chess, ...")
    chosen = make_game(name, options) if name else _only_game(networks, options)
    for one in (a, b):
        if one.kind == "engine":
            engine.check(one.text, chosen)
        elif one.kind == "plain":
            from tengen.match import players

            players.parse(one.text, chosen)
        elif one.found and one.found.saved.game != chosen.name:
            raise TengenError(f"{one.text}: a network for {one.found.saved.game}, and the game is {chosen.name}")
    return chosen


def side(
    entrant: PlayerSpec, game: "Game", settings: "SearchSettings", terms: engine.Terms, dtype: Any
) -> "Player | EnginePool":
    """Whoever makes its moves. TengenError if the network does not fit the game."""
    if entrant.kind == "engine":
        from tengen.match.engines.pool import EnginePool

        return EnginePool(entrant.text, game, terms)
    import jax

    from tengen.match import players
    from tengen.nets.evaluators import saved

    if entrant.found is None:
        return dataclasses.replace(players.parse(entrant.text, game), name=entrant.name)
    evaluate, params = saved(entrant.found.path, game, dtype)
    params = jax.device_put(params, jax.local_devices()[0])
    return players.network(entrant.name, evaluate, game, settings, params)


def make_game(name: str, options: Mapping[str, Any]) -> "Game":
    """A game by its own name or that of a configuration, with some options changed."""
    from tengen import config, games

    if name in games.names() or name.startswith("pgx:"):
        return games.make(name, **options)
    try:
        section = config.load(name).game
    except TengenError as error:
        known = ", ".join((*games.names(), "pgx:NAME"))
        raise TengenError(f"--game {name}: neither a game ({known}) nor a configuration: {error}") from None
    return games.make(section.name, **{**dataclasses.asdict(section.options), **options})


def _only_game(networks: list[PlayerSpec], options: Mapping[str, Any]) -> "Game":
    from tengen import games

    identities = []
    for one in networks:
        assert one.found is not None
        saved = one.found.saved
        identities.append(GameIdentity(saved.game, saved.version, saved.options))
        different = identities[0].difference(identities[-1])
        if different:
            raise TengenError(
                f"{networks[0].text} and {one.text} were trained on different games ({different}); "
                "if both can play one of them, say which: --game ..."
            )
    try:
        first = identities[0]
        return games.make(first.name, **{**first.options, **options})
    except OptionError as error:
        raise TengenError(f"{networks[0].text}: its game cannot be made: {error}") from None
