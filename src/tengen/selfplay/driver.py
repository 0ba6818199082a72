"""Self-play of a run on this machine, without learning, in calls of about a second.

The games are divided into lanes that are played at the same time: one for each board size and device, or core of a CPU,
where XLA uses one core for most of what a network does, so each lane has a thread.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from tengen import nets, search
from tengen.ahead import shapes_on
from tengen.config.sections import Config
from tengen.cores import cores
from tengen.data.format import katago_writing, lc0_writing
from tengen.data.format.rows import RowFormat, widened
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.nets.evaluators import Evaluator
from tengen.search.tree import Tree
from tengen.selfplay.boards import LaneBoard, at_once, boards, lane_devices
from tengen.selfplay.collector import fetching_programs
from tengen.selfplay.history import Finished
from tengen.selfplay.opponents import opponents
from tengen.selfplay.pacing import Pace
from tengen.selfplay.playing import MOST_PHASES, Actor, Selfplay

Actors = tuple[Actor, ...]  # one for each lane
Budgets = tuple[int, int] | None  # simulations of full and of cheap searches; None: as before
_NUMBERS = 100_000_000  # most games that a lane can count before they would have another lane's numbers


class Lane(NamedTuple):
    """Games that one thread plays on one device."""

    selfplay: Selfplay
    device: Any


class PlayCall(NamedTuple):
    """A call to all lanes that is under way."""

    wait: Callable[[], tuple[Actors, tuple[Finished, ...]]]
    done: Callable[[], bool]
    ended: list[float]  # when lanes with threads of their own have ended, by `time.monotonic`


class Lanes:
    """Plays all lanes. Rows have the format `form`, that of the largest board."""

    def __init__(self, lanes: Iterable[Lane], form: RowFormat) -> None:
        self.lanes = list(lanes)
        self._threads = ThreadPoolExecutor(len(self.lanes), "lane") if len(self.lanes) > 1 else None
        self._widen = [_widening(lane.selfplay.form, form) for lane in self.lanes]
        processors, devices = len(cores()), {lane.device for lane in self.lanes}
        several = len(devices) == 1 and min(len(self.lanes), processors) > 1
        self.shares_cores = several and jax.default_backend() == "cpu"
        """Whether several cores of a CPU play, so that `spared` leaves one of them to the caller."""
        # While something else is computed, the last lane is played alone after the others, if every core has a lane.
        self.waits = (0.5 if len(self.lanes) >= processors else 0.0) if self.shares_cores else 1.0
        """Seconds that games wait for a second of other computations."""
        self._slots = threading.Semaphore(processors if self.shares_cores else len(self.lanes))

    @contextlib.contextmanager
    def spared(self) -> Iterator[None]:
        """While this is open, one core fewer plays, so that the caller has one to compute with.

        XLA has as many threads as there are cores: if every lane had one, the caller's programs would not begin before
        a lane is done.
        """
        with self._slots:
            yield

    def bytes_needed(self) -> int:
        """The memory needed on the first device."""
        first = self.lanes[0].device
        return sum(lane.selfplay.bytes_needed() for lane in self.lanes if lane.device == first)

    def begin(self, key: Array, first: Sequence[int] = ()) -> tuple[Actor, ...]:
        """New games for each lane; `first` are the numbers to count from, if there were games before.

        In the lanes' threads, so that the programs of several board sizes are compiled at the same time.
        """

        each = min(_NUMBERS, 2**32 // len(self.lanes))

        def one(number: int) -> Actor:
            selfplay, device = self.lanes[number]
            actor = selfplay.start(jax.random.fold_in(key, number))
            before = jnp.uint32(first[number] if first else number * each)
            actor = replace(actor, number=actor.number + before, begun=actor.begun + before)
            return jax.device_put(actor, device)

        return tuple((self._threads.map if self._threads else map)(one, range(len(self.lanes))))

    def adopt(self, actors: list[Actor]) -> tuple[Actor, ...]:
        """Continue the games of lanes that had other settings. The list is emptied, tree by tree, to save memory."""
        found = []
        for selfplay, device in self.lanes:
            actor = actors.pop(0)
            states, actor = roots(actor.tree), replace(actor, tree=None)
            found.append(jax.device_put(selfplay.adopt(actor, states), device))
        return tuple(found)

    def play(self, weights: Any, actors: Actors, phases: int, session: int, budgets: Budgets = None) -> PlayCall:
        """Start playing some phases, see `Selfplay.play`; returns before they are played.

        New searches have these `budgets` (simulations of full and of cheap ones), or the actors' own. The actors are
        donated. Their evaluations are counted from 0, since a large float would lose precision.
        """

        def one(number: int) -> tuple[Actor, Finished]:
            arguments = self._arguments(number, weights, actors, phases, session, budgets)
            actor, finished = self.lanes[number].selfplay.play(*arguments)
            return actor, finished._replace(rows=self._widen[number](finished.rows))

        if self._threads is None:
            actor, finished = one(0)
            return PlayCall(lambda: ((actor,), (finished,)), lambda: True, [])
        ended: list[float] = []

        def waited(number: int) -> tuple[Actor, Finished]:
            with self._slots:
                found = jax.block_until_ready(one(number))
            ended.append(time.monotonic())
            return found

        jobs = [self._threads.submit(waited, number) for number in range(len(self.lanes))]

        def wait() -> tuple[Actors, tuple[Finished, ...]]:
            played, finished = zip(*[job.result() for job in jobs], strict=True)
            return played, finished

        return PlayCall(wait, lambda: all(job.done() for job in jobs), ended)

    def start_programs(self) -> Iterator[Any]:
        """The programs of `begin`, to be compiled ahead (`tengen.ahead`)."""
        return (_start(lane).lower() for lane in dict.fromkeys(self.lanes))

    def play_programs(self, weights: Any) -> Iterator[Any]:
        """The programs of `play` for weights of these shapes."""
        return (_play(lane, weights).lower() for lane in dict.fromkeys(self.lanes))

    def fetching_programs(self, weights: Any) -> Iterator[Any]:
        """The programs that bring what was played to the host."""
        for lane, widen in dict(zip(self.lanes, self._widen, strict=True)).items():
            finished = shapes_on(lane.device, _play(lane, weights).out_info[1])
            if hasattr(widen, "lower"):  # it is compiled
                yield widen.lower(finished.rows)
            rows = shapes_on(lane.device, jax.eval_shape(widen, finished.rows))
            yield from fetching_programs(finished._replace(rows=rows))

    def _arguments(self, number: int, weights: Any, actors: Actors, phases: int, session: int, budgets: Budgets) -> Any:
        """Of `Selfplay.play` in a lane."""
        device = self.lanes[number].device
        counted = replace(actors[number], evaluations=jax.device_put(np.float32(0), device))
        if budgets is not None:
            counted = replace(counted, budgets=jax.device_put(np.array(budgets, np.int32), device))
        return jax.device_put(weights, device), counted, np.int32(phases), np.uint32(session)


def _start(lane: Lane) -> Any:
    return lane.selfplay.start.trace(jax.eval_shape(lambda: jax.random.key(0)))


def _play(lane: Lane, weights: Any) -> Any:
    numbers = jax.eval_shape(lambda: (jnp.int32(0), jnp.uint32(0)))  # phases and session
    return lane.selfplay.play.trace(*shapes_on(lane.device, (weights, _start(lane).out_info)), *numbers)


@jax.jit
def roots(tree: Tree) -> Any:
    """The positions at the roots, [batch, ...]."""
    return tree.states(tree.root)


def _widening(small: RowFormat, large: RowFormat) -> Any:
    return (lambda rows: rows) if small == large else jax.jit(partial(widened, small=small, large=large))


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
        self.boards = boards(self.game, replace(config.selfplay, games=at_once(config, self.game, self.spec)))
        self.played_form = self._played(self.game)
        self.lanes = Lanes((lane for board in self.boards for lane in self._lanes(board)), self.played_form)
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
        self,
        weights: Any,
        meanwhile: Callable[[], object] = lambda: None,
        budgets: Budgets = None,
        beside: Callable[[Callable[[], bool]], object] | None = None,
    ) -> list[PlayedRound]:
        """Make one call, and return one entry per lane; `meanwhile` runs on the host while the device plays.

        If the lanes share the cores of a CPU, `beside` has one of them to compute with, until it returns; it is given
        a function that says whether all lanes are done, and must not raise. `budgets` are the simulations of full and
        of cheap searches from now on, at most those of the settings; changing them compiles nothing.

        NoFiniteNumbers if the network's outputs are not finite; the games are dropped then.
        """
        actors = self.begin()
        phases, began = self._pace.units, time.monotonic()
        with self._lanes.spared() if beside else contextlib.nullcontext():
            call = self._lanes.play(weights, actors, phases, self._session, budgets)
            meanwhile()
            if beside:
                beside(call.done)
        self._actors, finished = call.wait()
        if failed := sum(int(actor.failed) for actor in self._actors):
            self.forget()
            found = f"{failed:,} searches found no move or value"
            raise NoFiniteNumbers(f"the network gives numbers that are not finite: {found}")
        lanes = zip(self._lanes.lanes, self._actors, finished, strict=True)
        played = [PlayedRound(done, float(actor.evaluations), lane.selfplay.game) for lane, actor, done in lanes]
        seconds = max(call.ended, default=time.monotonic()) - began  # without waiting for `beside`
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
