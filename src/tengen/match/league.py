"""Who is rated: all networks of a run, and anchors; what they play, and how."""

import dataclasses
import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tengen import config as configuration
from tengen.config.settings.search import SearchSettings
from tengen.errors import TengenError
from tengen.match import player_spec
from tengen.match.engines import engine
from tengen.match.player_spec import PlayerSpec
from tengen.match.ratings import plain_anchor
from tengen.run import networks

if TYPE_CHECKING:
    from tengen.config.sections import Config
    from tengen.games.core import Game

SIMULATIONS, OPENING_MOVES, ANCHORS = 64, 2, ("random",)
"""What holds for a run without a configuration."""


@dataclass(frozen=True)
class League:
    """Those who can play."""

    run: Path
    config: "Config | None"  # of the run, if it has one
    networks: tuple[PlayerSpec, ...]  # of the run, in the order of training
    anchors: tuple[PlayerSpec, ...]
    notes: tuple[str, ...]  # about those who cannot

    @property
    def names(self) -> list[str]:
        """Of all of them, networks first."""
        return [one.name for one in (*self.networks, *self.anchors)]

    @property
    def simulations(self) -> int:
        """Per move of a network in the ratings that the run makes itself."""
        return self.config.rating.simulations if self.config else SIMULATIONS

    @property
    def opening_moves(self) -> int:
        return self.config.rating.opening_moves if self.config else OPENING_MOVES

    def search(self, simulations: int) -> SearchSettings:
        """How networks search: as in the run, without noise."""
        from tengen.match import players

        return players.strongest(self.config.search if self.config else SearchSettings(algorithm="puct"), simulations)

    def game(self) -> "Game":
        """What they play. TengenError if it cannot be made, or an anchor does not play it."""
        from tengen import games

        if self.config:
            section = self.config.game
            game = games.make(section.name, **dataclasses.asdict(section.options))
        else:
            found = next(one.found for one in (*self.networks[::-1], *self.anchors) if one.found)
            game = found.saved.make_game()
        for one in self.anchors:
            check(one, game)
        return game

    def zero(self, others: Iterable[str] = ()) -> str:
        """Whose rating is 0, unless somebody says otherwise: random play, the weakest plain search, the first network.

        `others` have played, and may be gone since.
        """
        names = [*self.names, *others]
        return plain_anchor(names) or next(iter(names))


def gather(
    run: Path, anchors: Sequence[PlayerSpec] | None = None, only: str | None = None, *, configured: bool = True
) -> League:
    """The league of a run; without `anchors`, those that its configuration has. `only`: a pattern for its networks.

    TengenError if it is no run, or has no network, or (unless `configured` is False) has a configuration of no use.
    """
    config, problems = _configuration(run, configured)
    found, notes = networks.survey(run, (networks.ACCEPTED, networks.REJECTED))
    notes = [*problems, *notes]
    if not found:
        if notes:
            raise TengenError("\n".join([*notes, f"{run}: none of its networks can be used"]))
        what = "a run without a network so far" if config else "not a run (a folder with config.yaml and models/)"
        raise TengenError(f"{run}: {what}")
    players = [PlayerSpec(str(one.path), one.name, one) for one in sorted(found, key=age)]
    if only is not None:
        players = [one for one in players if fnmatch.fnmatchcase(one.name, only)]
        if not players:
            raise TengenError(f"--only {only}: none of the {len(found)} networks has such a name")
    if anchors is None:
        anchors = [player_spec.read(text) for text in (config.rating.references if config else ANCHORS)]
    if config:
        game, options = config.game.name, vars(config.game.options)
    else:
        game, options = found[-1].saved.game, found[-1].saved.options
    anchors = [player_spec.informed(one, game, options) for one in anchors]
    return League(run, config, tuple(players), tuple(_besides(players, anchors)), tuple(notes))


def _configuration(run: Path, needed: bool) -> "tuple[Config | None, list[str]]":
    """Of the run, if it has one that this Tengen can read; and what is wrong with it."""
    path = run / "config.yaml"
    if not path.exists():
        return None, []
    try:
        return configuration.load(path), []
    except TengenError as error:
        if needed:
            advice = f"{path}: the configuration of this run cannot be used; put it right"
            raise TengenError(f"{error}\n{advice}, or say --anchors and --simulations to do without it") from None
        return None, [f"{path}: {error}"]


def age(network: networks.FoundNetwork) -> tuple[float, float, str]:
    """What networks of a run are sorted by: samples learned, then steps."""
    info = network.saved.info
    named = networks.parse(network.name)
    samples = info.get("samples", named[0] if named else None)
    return *(float(x) if isinstance(x, int | float) else -1.0 for x in (samples, info.get("step"))), network.name  # pyright: ignore[reportReturnType]


def check(one: PlayerSpec, game: "Game") -> None:
    """TengenError if it cannot play that game."""
    from tengen.match import players

    if one.kind == "engine":
        engine.check(one.text, game)
    elif one.found is None:
        players.parse(one.text, game)
    elif one.found.saved.game != game.name:
        raise TengenError(f"{one.text}: a network for {one.found.saved.game}, and the game is {game.name}")


def _besides(networks: Sequence[PlayerSpec], anchors: Sequence[PlayerSpec]) -> list[PlayerSpec]:
    """The anchors who are not networks of the run, none of them twice, under names of their own."""
    taken = {one.name: one for one in networks}
    kept: list[PlayerSpec] = []
    for one in anchors:
        same = taken.get(one.name)
        if same is not None and one.found and same.found:
            if same.found.path.resolve() == one.found.path.resolve():
                continue
            one = dataclasses.replace(one, name=str(one.found.path))
        if one.name not in taken:
            taken[one.name] = one
            kept.append(one)
    return kept
