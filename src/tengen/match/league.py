"""Ratings of all networks of a run and of anchors: plays the matches that make the ratings certain soonest."""

import dataclasses
import fnmatch
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import config as configuration
from tengen.config.sections import Config
from tengen.config.settings.search import SearchSettings
from tengen.config.source import RUN_FILE
from tengen.errors import TengenError
from tengen.files import lock
from tengen.games.core import Game
from tengen.match import player_spec, ratings, results
from tengen.match.driver import MatchPlan, Show, play_match
from tengen.match.engine_match import Side
from tengen.match.engines.engine import Terms
from tengen.match.match_games import MatchGames
from tengen.match.pairing import PairChoice, choose
from tengen.match.player_spec import PlayerSpec
from tengen.match.players import PLAYING, strongest
from tengen.match.ratings import Ratings
from tengen.match.results import MatchResult
from tengen.run import networks

SIMULATIONS, OPENING_MOVES, ANCHORS = 64, 2, ("random",)
"""For a run without a configuration."""
FOLDER = results.OF_RUN.parent
_LOADED = 8  # networks that are kept on the device
Watching = Callable[[MatchGames], AbstractContextManager[Any]]


@dataclass(frozen=True)
class League:
    """The players who can be rated."""

    run: Path
    config: Config | None  # of the run, if it has one
    networks: tuple[PlayerSpec, ...]  # of the run, in the order of training
    anchors: tuple[PlayerSpec, ...]
    notes: tuple[str, ...]  # about networks that cannot play

    @property
    def players(self) -> tuple[PlayerSpec, ...]:
        return (*self.networks, *self.anchors)

    @property
    def simulations(self) -> int:
        """Simulations per move of a network in the ratings that the run makes itself."""
        return self.config.rating.simulations if self.config else SIMULATIONS

    @property
    def opening_moves(self) -> int:
        return self.config.rating.opening_moves if self.config else OPENING_MOVES

    def search(self, simulations: int) -> SearchSettings:
        return strongest(self.config.search if self.config else SearchSettings(**PLAYING), simulations)

    def game(self) -> Game:
        """The game that all of them play. TengenError if it cannot be made, or an anchor cannot play it."""
        if self.config:
            section = self.config.game
            game = section.make()
        else:
            found = next(one.found for one in (*self.networks[::-1], *self.anchors) if one.found)
            game = found.saved.make_game()
        for one in self.anchors:
            one.check(game)
        return game


def gather(
    run: Path, anchors: Sequence[PlayerSpec] | None = None, only: str | None = None, *, configured: bool = True
) -> League:
    """The league of a run; without `anchors`, with the references of its configuration. `only`: a pattern of names.

    TengenError if it is not a run, or has no network, or (unless `configured` is False) its configuration is unusable.
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
            raise TengenError(f"--only {only}: matches none of the {len(found)} networks")
    if anchors is None:
        anchors = [player_spec.parse(text) for text in (config.rating.references if config else ANCHORS)]
    if config:
        game, options = config.game.name, vars(config.game.options)
    else:
        game, options = found[-1].saved.game, found[-1].saved.options
    anchors = [one.told_rules(game, options) for one in anchors]
    return League(run, config, tuple(players), tuple(_besides(players, anchors)), tuple(notes))


def _configuration(run: Path, needed: bool) -> tuple[Config | None, list[str]]:
    """The configuration of a run, if it has one that this Tengen can read; and what is wrong with it."""
    path = run / RUN_FILE
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
    """The order of a run's networks: samples learned, then steps."""
    info = network.saved.info
    named = networks.parse(network.name)
    samples = info.get("samples", named[0] if named else None)
    return *(float(x) if isinstance(x, int | float) else -1.0 for x in (samples, info.get("step"))), network.name  # pyright: ignore[reportReturnType]


def _besides(networks: Sequence[PlayerSpec], anchors: Sequence[PlayerSpec]) -> list[PlayerSpec]:
    """The anchors that are not networks of the run, each once and under a name that no other player has."""
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


class LeagueResults:
    """All results that a league is rated by: those of the run itself, of earlier ratings, and of matches."""

    def __init__(self, run: Path, simulations: int, own: bool, more: Sequence[Path] = ()) -> None:
        """For networks that search `simulations` positions per move; `own`: as many as in the run's own ratings.

        `more` are files of results, or folders of matches. TengenError names a line that is not a result.
        """
        self.path = run / FOLDER / f"rate-s{simulations}.jsonl"  # the only file that is written
        self.mine = results.read(self.path)
        self._others = [run / results.OF_RUN] if own else []
        self._others += [path / results.FILE if path.is_dir() else path for path in more]
        self._known: list[MatchResult] = []
        self.refresh()

    @property
    def all(self) -> list[MatchResult]:
        return [*self._known, *self.mine]

    def refresh(self) -> None:
        """Reads what a run that goes on has added."""
        self._known = [result for path in self._others for result in results.read(path)]

    def put(self, number: int, result: MatchResult) -> None:
        """Writes the result so far of the match of that number, 0 for the first in the file."""
        if result.games:
            self.mine[number:] = [result]
            results.write(self.path, *self.mine)


def locked(run: Path) -> AbstractContextManager[None]:
    """Only one process adds results; the run itself may go on meanwhile."""
    return lock.locked(run / FOLDER, name=".rate-lock", what=f"the rating of {run}", other="run")


@dataclass(frozen=True)
class RatingBudget:
    """When to stop; None: never for that reason."""

    matches: int | None = None
    games: int | None = None
    seconds: float | None = None
    error: float | None = None  # Elo: when half of every 95 % interval is at most this

    def spent(self, matches: int, games: int, seconds: float, most: float) -> str | None:
        """Why to stop, in words; None if there is no reason."""
        if self.error is not None and most <= self.error:
            return f"every error is at most {self.error:g} Elo"
        if self.matches is not None and matches >= self.matches:
            return "one match is played" if matches == 1 else f"{matches} matches are played"
        if self.games is not None and games >= self.games:
            return f"{games} games are played"
        if self.seconds is not None and seconds >= self.seconds:
            return f"{self.seconds / 60:g} minutes are over"
        return None


@dataclass(frozen=True)
class RatingEvent:
    """A match that begins (no result yet) or has ended."""

    number: int  # in this process, from 1
    choice: PairChoice
    result: MatchResult | None
    ratings: Ratings  # before a match that begins, after one that has ended


class Venue:
    """Where matches are played: the game, and the players that are loaded."""

    def __init__(self, league: League, simulations: int, plan: MatchPlan, terms: Terms, dtype: Any) -> None:
        self.game, self.plan = league.game(), plan
        self._search, self._terms, self._dtype = league.search(simulations), terms, dtype
        self._loaded: dict[str, Side] = {}  # the most recently used is last
        self._said: set[str] = set()  # about engines, once for all matches

    def side(self, one: PlayerSpec) -> Side:
        """The player, loaded. TengenError says why it cannot play."""
        if (side := self._loaded.pop(one.name, None)) is None:
            side = one.side(self.game, self._search, self._dtype, self._terms)
        if one.kind != "engine":
            self._loaded = dict([*self._loaded.items()][-_LOADED + 1 :]) | {one.name: side}
        return side

    def play(
        self, sides: tuple[Side, Side], games: MatchGames, seed: int, stop: Callable[[], bool], show: Show, say: Any
    ) -> None:
        def once(text: str) -> None:
            if text not in self._said:
                self._said.add(text)
                say(text)

        plan = dataclasses.replace(self.plan, games=games.games, seed=seed)
        play_match(self.game, sides, plan, games, stop, show, once)


class LeagueRating:
    def __init__(self, league: League, results: LeagueResults, zero: str | None = None, *, plays: bool = True) -> None:
        """`zero`: whose Elo is 0. Unless it `plays` further games, only those who have played can be that."""
        self.league, self.results = league, results
        self.notes = list(league.notes)
        self.able = {one.name: one for one in league.players}
        known = list(dict.fromkeys([*self.able, *ratings.players_in(results.all)]))  # some may be gone
        played = set() if plays else {name for result in results.all if result.games for name in (result.a, result.b)}
        able = [name for name in known if name in played] or known
        self.zero = zero or ratings.anchor(able, default=able[0])
        if self.zero not in known:
            raise TengenError(f"--zero {self.zero}: there is no player of that name; there are {', '.join(known)}")

    @property
    def ratings(self) -> Ratings:
        return ratings.fit(self.results.all, self.zero, also=self.able)

    def choice(self, games: int) -> PairChoice | None:
        """The next match; networks come first in it, the older player last, so that programs are shared."""
        run = [one.name for one in self.league.networks]
        found = choose(self.ratings, list(self.able), games, run)
        if found is None:
            return None
        order = [*reversed(run), *(one.name for one in self.league.anchors)]
        a, b = sorted((found.a, found.b), key=order.index)
        return PairChoice(a, b, found.gain)

    def improve(
        self,
        venue: Venue,
        games: int,
        budget: RatingBudget,
        stop: Callable[[], bool],
        watching: Watching,
        seed: int = 0,
    ) -> Iterator[RatingEvent | str]:
        """Plays until the budget is spent or `stop` says so; gives matches as they begin and end, and why it is over.

        A network that cannot be loaded is noted and left out.
        """
        began, matches, played = time.monotonic(), 0, 0
        while not stop():
            self.results.refresh()
            now = self.ratings
            most = max((rating.error for rating in now.players if rating.name != self.zero), default=0.0)
            if words := budget.spent(matches, played, time.monotonic() - began, most):
                yield words
                return
            size = games if budget.games is None else max(2, min(games, (budget.games - played) // 2 * 2))
            choice = self.choice(size)
            if choice is None:
                yield "there are no two players who can play"
                return
            sides = self._sides(venue, choice)
            if sides is None:
                continue
            matches += 1
            yield RatingEvent(matches, choice, None, now)
            number = len(self.results.mine)
            match = MatchGames((choice.a, choice.b), size)
            with watching(match) as watch:
                written = 0

                def show(standing: Any, match: MatchGames = match, number: int = number, watch: Any = watch) -> None:
                    nonlocal written
                    watch.update(standing)
                    if len(match.played) > written:
                        self.results.put(number, match.result)
                        written = len(match.played)

                venue.play(sides, match, seed + number, stop, show, watch.say)
            self.results.put(number, match.result)
            played += match.result.games
            if match.played:
                yield RatingEvent(matches, choice, match.result, self.ratings)

    def _sides(self, venue: Venue, choice: PairChoice) -> tuple[Side, Side] | None:
        """Both players; None if one cannot play, which is then left out from now on."""
        sides: list[Side] = []
        for name in (choice.a, choice.b):
            try:
                sides.append(venue.side(self.able[name]))
            except TengenError as error:
                if self.able[name].kind != "network":
                    raise
                self.notes.append(str(error))
                del self.able[name]
                return None
        return sides[0], sides[1]
