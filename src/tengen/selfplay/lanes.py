"""The games of a run, divided into lanes that are played at the same time: one for each board size and device, or core
of a CPU.

On a CPU, XLA uses one core for most of what a network does, so each lane has a thread.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tengen import games
from tengen.ahead import shapes_on
from tengen.config.settings.selfplay import SelfplaySettings, resized, size
from tengen.cores import cores
from tengen.data.format.rows import RowFormat, widened
from tengen.games.core import Game
from tengen.search.tree import Tree
from tengen.selfplay.finished import Finished, fetching_programs
from tengen.selfplay.playing import Actor, Selfplay

Actors = tuple[Actor, ...]  # one for each lane
Budgets = tuple[int, int] | None  # simulations of full and of cheap searches; None: as before
_FEWEST_GAMES = 32  # of a lane on a CPU: networks are slow if they evaluate only a few positions at once
_MOST_LANES = 32  # of one size
_NUMBERS = 100_000_000  # games that a lane can count before they would have another lane's numbers


class Lane(NamedTuple):
    """Games that one thread plays on one device."""

    selfplay: Selfplay
    device: Any


class LaneBoard(NamedTuple):
    """A board size, and how many games are played on it."""

    game: Game
    games: int


def boards(game: Game, settings: SelfplaySettings) -> list[LaneBoard]:
    found = []
    for other in map(size, settings.sizes):
        smaller = games.make(game.name, **resized(asdict(game.options), other))
        found.append(LaneBoard(smaller, max(1, round(other.share * settings.games))))
    return [LaneBoard(game, settings.games - sum(board.games for board in found)), *found]


def lane_devices(count: int) -> list[Any]:
    """The device of each lane for `count` games of one size: all devices, or a CPU once for each core.

    A CPU's lanes are equally large, because they share one compiled program.
    """
    devices = jax.local_devices()
    if len(devices) > 1 or devices[0].platform != "cpu":
        return devices[:count]
    most = max(min(len(cores()), count // _FEWEST_GAMES, _MOST_LANES), 1)
    return devices * max(n for n in range(1, most + 1) if count % n == 0)


class Lanes:
    """Plays all lanes. Rows have the format `form`, that of the largest board."""

    def __init__(self, lanes: Iterable[Lane], form: RowFormat) -> None:
        self.lanes = list(lanes)
        self._threads = ThreadPoolExecutor(len(self.lanes), "lane") if len(self.lanes) > 1 else None
        self._widen = [_widening(lane.selfplay.form, form) for lane in self.lanes]

    def bytes_needed(self) -> int:
        """The memory needed on the first device."""
        first = self.lanes[0].device
        return sum(lane.selfplay.bytes_needed() for lane in self.lanes if lane.device == first)

    def begin(self, key: Array, first: Sequence[int] = ()) -> tuple[Actor, ...]:
        """New games for each lane; `first` are the numbers to count from, if there were games before.

        In the lanes' threads, so that the programs of several board sizes are compiled at the same time.
        """

        def one(number: int) -> Actor:
            selfplay, device = self.lanes[number]
            actor = selfplay.start(jax.random.fold_in(key, number))
            before = jnp.uint32(first[number] if first else number * _NUMBERS)
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

    def play(
        self, weights: Any, actors: Actors, phases: int, session: int, budgets: Budgets = None
    ) -> Callable[[], tuple[Actors, tuple[Finished, ...]]]:
        """Start playing some phases, see `Selfplay.play`; the returned function waits for the end.

        New searches have these `budgets` (simulations of full and of cheap ones), or the actors' own. The actors are
        donated. Their evaluations are counted from 0, since a large float would lose precision.
        """

        def one(number: int) -> tuple[Actor, Finished]:
            arguments = self._arguments(number, weights, actors, phases, session, budgets)
            actor, finished = self.lanes[number].selfplay.play(*arguments)
            return actor, finished._replace(rows=self._widen[number](finished.rows))

        if self._threads is None:
            actor, finished = one(0)
            return lambda: ((actor,), (finished,))

        def waited(number: int) -> tuple[Actor, Finished]:
            return jax.block_until_ready(one(number))

        jobs = [self._threads.submit(waited, number) for number in range(len(self.lanes))]

        def wait() -> tuple[Actors, tuple[Finished, ...]]:
            played, finished = zip(*[job.result() for job in jobs], strict=True)
            return played, finished

        return wait

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
