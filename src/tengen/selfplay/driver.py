"""Self-play of a run on this machine, without learning: its games, and the architecture of its network."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from tengen import nets, search
from tengen.config.sections import Config
from tengen.data.format import katago_writing, lc0_writing
from tengen.data.format.rows import RowFormat
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.nets.evaluators import Evaluator
from tengen.search.tree import Tree
from tengen.selfplay.finished import Finished
from tengen.selfplay.lanes import Budgets, Lane, LaneBoard, Lanes, boards, lane_devices, roots
from tengen.selfplay.opponents import opponents
from tengen.selfplay.pacing import Pace
from tengen.selfplay.playing import MOST_PHASES, Actor, Selfplay

_SECONDS = 1.0  # the duration of one call to the device to aim for


class SelfplayDriver:
    """Built from a configuration alone, without files. `spec` replaces the network of the configuration."""

    def __init__(self, config: Config, spec: nets.Spec | None = None) -> None:
        self.config = config
        self.game = config.game.make()
        self.spec = spec or config.net.architecture()
        self.form = RowFormat.of(self.game, config.net.heads)  # of rows to learn from
        # A user's network may not work with zeros as parameters: its random start plays instead.
        net = self._folded() if self.spec.function else nnx.eval_shape(self._folded)
        graph, self._first = nnx.split(net)
        self.evaluate = Evaluator(graph)
        self.opponents = opponents(config.selfplay, self.game)
        self.boards = boards(self.game, config.selfplay)
        self.lanes = Lanes((lane for board in self.boards for lane in self._lanes(board)), self._played(self.game))
        self.selfplay = self.lanes.lanes[0].selfplay  # on the game's own board

    def _folded(self) -> nets.Network:
        net = nets.fold(nets.build(self.spec, self.game, nnx.Rngs(0), dtype=self.config.net.dtype))
        net.full_board = True  # every lane has boards of one size
        return net

    @property
    def weight_shapes(self) -> Any:
        """The shapes of what `weights` gives."""
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), self._first)

    def no_weights(self) -> Any:
        """Parameters with which one of Tengen's networks finds all moves equally good and all positions even."""
        first = self._first
        if not self.spec.function:
            first = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), first)
        return jax.device_put(first, jax.local_devices()[0])

    def weights(self, net: nets.Network) -> Any:
        """The folded parameters of a network of this spec."""
        return jax.device_put(nnx.state(nets.fold(net)), jax.local_devices()[0])

    def _played(self, game: Game) -> RowFormat:
        """The format of the rows that self-play makes, with at least the fields that learning needs."""
        heads, kind = self.config.net.heads, self.config.data.format
        if kind == "lc0":
            return lc0_writing.played_form(game, heads)
        if kind == "katago":
            return katago_writing.played_form(game, self.config.search.score_weight > 0)
        return RowFormat.of(game, heads)

    def _lanes(self, board: LaneBoard) -> list[Lane]:
        config, devices = self.config, lane_devices(board.games)
        form = self._played(board.game)
        more = [self.opponents] if self.opponents else []

        def of(games: int) -> Selfplay:
            settings = replace(config.selfplay, games=games, sizes=())
            return Selfplay(board.game, self.evaluate, config.search, settings, form, *more)

        each, left = divmod(board.games, len(devices))
        larger, usual = of(each + 1) if left else None, of(each)
        return [Lane(larger if larger and number < left else usual, device) for number, device in enumerate(devices)]


class NoFiniteNumbers(TengenError):
    """The network that plays gives numbers that are not finite."""


class PlayedRound(NamedTuple):
    """Finished games on the device that are not yet in a file."""

    finished: Finished
    evaluations: float
    game: Game


class SearchedPosition(NamedTuple):
    """A position of self-play, and the tree of the search about its next move."""

    tree: Tree  # of ONE game
    number: int  # of the game
    ply: int


@partial(jax.jit, static_argnums=0)
def _completed(evaluate: Any, weights: Any, trees: Tree, place: jax.Array) -> Tree:
    one = jax.tree.map(lambda leaf: leaf[place][None], trees)
    return search.finish(partial(evaluate, weights), one)


@jax.jit
def _first_root(tree: Tree) -> Any:
    """The position of the first game. One program, which does not make those of all others on the way."""
    return jax.tree.map(lambda leaf: leaf[0], roots(tree))


class PlayRounds:
    """Plays games, in calls of about a second. `session` distinguishes their numbers from those of others."""

    def __init__(self, lanes: Lanes, session: int, key: jax.Array) -> None:
        self._lanes, self._session, self._key = lanes, session, key
        self._actors: tuple[Actor, ...] | None = None
        self._first: tuple[int, ...] = ()  # numbers of the first new games of each lane, if not 0
        self._pace = Pace(_SECONDS, most=MOST_PHASES)
        self.seconds = self.evaluations = 0.0  # of the calls that compiled nothing

    @property
    def compiled(self) -> bool:
        """Whether the first call, which compiles, is done."""
        return self._pace.calls > 0

    def begin(self) -> tuple[Actor, ...]:
        """The games to play on, new ones if there are none."""
        if self._actors is None:
            start, self._key = jax.random.split(self._key)
            self._actors = self._lanes.begin(start, self._first)
        return self._actors

    def play(
        self, weights: Any, meanwhile: Callable[[], object] = lambda: None, budgets: Budgets = None
    ) -> list[PlayedRound]:
        """Make one call, and return one entry per lane; `meanwhile` runs on the host while the device plays.

        `budgets` are the simulations of full and of cheap searches from now on, at most those of the settings; changing
        them compiles nothing. NoFiniteNumbers if the network's outputs are not finite; the games are dropped then.
        """
        actors = self.begin()
        phases, began = self._pace.units, time.monotonic()
        playing = self._lanes.play(weights, actors, phases, self._session, budgets)
        meanwhile()
        self._actors, finished = playing()
        if failed := sum(int(actor.failed) for actor in self._actors):
            self.forget()
            found = f"{failed:,} searches found no move or value"
            raise NoFiniteNumbers(f"the network gives numbers that are not finite: {found}")
        lanes = zip(self._lanes.lanes, self._actors, finished, strict=True)
        played = [PlayedRound(done, float(actor.evaluations), lane.selfplay.game) for lane, actor, done in lanes]
        seconds = time.monotonic() - began
        if self.compiled:
            self.seconds += seconds
            self.evaluations += sum(each.evaluations for each in played)
        self._pace = self._pace.after(phases, seconds)
        return played

    def change(self, lanes: Lanes) -> None:
        """Go on with the same games in other lanes, with other settings; the next call compiles."""
        actors, self._actors = list(self._actors or ()), None
        self._lanes = lanes
        if actors:
            self._actors = lanes.adopt(actors)
        self._pace = Pace(_SECONDS, most=MOST_PHASES)

    def board(self) -> str:
        """The current board of the first game; empty if there is none."""
        if self._actors is None:
            return ""
        game = self._lanes.lanes[0].selfplay.game
        return game.render(jax.device_get(_first_root(self._actors[0].tree)))

    def tree(self, weights: Any, place: int = 0) -> SearchedPosition | None:
        """The current search of a game of the first lane, completed without changing that game.

        `place` wraps around. None if there are no games.
        """
        if self._actors is None:
            return None
        actor, selfplay = self._actors[0], self._lanes.lanes[0].selfplay
        place %= len(actor.number)
        tree = _completed(selfplay.evaluate, weights, actor.tree, jnp.int32(place))
        return SearchedPosition(tree, int(actor.number[place]), int(actor.history.ply[place]))

    def marks(self) -> tuple[int, ...]:
        """For `older`: the games begun so far."""
        return tuple(int(actor.begun) for actor in self._actors or ())

    def older(self, marks: tuple[int, ...]) -> int:
        """How many of the current games began before `marks` was taken."""
        numbers = ((actor.number, mark) for actor, mark in zip(self._actors or (), marks, strict=True))
        return sum(int((number < mark).sum()) for number, mark in numbers)

    def forget(self) -> None:
        """Drop the current games; the next call begins new ones, with new numbers."""
        self._first = self.marks() or self._first
        self._actors = None
