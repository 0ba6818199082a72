"""A self-play actor: plays thousands of games on its device, and hands finished ones over every few seconds.

Runs in a worker process of Ray, on any node; it needs no files of the run. Importing this module does not import JAX,
because the actor must first limit the memory that JAX takes.
"""

import os
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tengen.cluster.opponents import SentNetwork, placed
from tengen.config.sections import Config
from tengen.cores import LIMIT
from tengen.errors import OptionError
from tengen.files import lease
from tengen.jax_setup import use_gpus

if TYPE_CHECKING:
    from tengen.cluster.packing import GamesChunk

_SECONDS = 5.0  # of playing before finished games are handed over, unless there are enough for a file before
_NONE: Mapping[str, SentNetwork] = MappingProxyType({})


@dataclass(frozen=True)
class ActorPlace:
    """What an actor is given when it is started."""

    session: int  # first word of the numbers of its games, which no other actor of the run has
    cores: int
    gpus: float


@dataclass(frozen=True)
class PublishedNetwork:
    """What an actor plays with from now on."""

    leaves: list[Any]  # the parameters
    config: Config
    budgets: tuple[int, int] | None = None  # simulations of full and of cheap searches, if not the settings'


@dataclass(frozen=True)
class ActorStatus:
    """How an actor is doing; totals since it was started."""

    node: str  # Ray's name of it
    process: int
    words: str
    waiting: bool = False
    version: int = -1  # of its network
    games: int = 0
    rows: int = 0
    evaluations_per_second: float = 0.0
    since: float = 0.0  # by the clock of its machine, for `seconds`
    seconds: float = 0.0  # it has been doing this


@dataclass(frozen=True)
class PlayedChunks:
    """The result of one call to `play`."""

    chunks: tuple["GamesChunk", ...]
    evaluations: float


class SelfplayActor:
    """One process with one device, or a share of it. Calls to `play` take turns; the other methods answer meanwhile."""

    def __init__(self, config: Config, place: ActorPlace, opponents: Mapping[str, SentNetwork] = _NONE) -> None:
        """Returns at once: everything that takes long happens in the first `play`.

        `opponents` are the networks in `selfplay.opponents`, because this node may not have their files.
        """
        os.environ[LIMIT] = str(place.cores)
        use_gpus(place.gpus)
        self._config, self._place, self._opponents = config, place, opponents
        self._next: tuple[int, PublishedNetwork] | None = None
        self._arrived, self._stopping, self._turn = threading.Event(), threading.Event(), threading.Lock()
        self._playing: Any = None
        self._folder: Path | None = None  # of opponents that are being read
        self._evaluations = 0.0  # not handed over yet
        self._status = ActorStatus(_node(), os.getpid(), "")
        self._note(words="the first network", waiting=True)

    def look(self) -> ActorStatus:
        """Answers at once, even while the games are compiled: if there is no answer, the process hangs."""
        return replace(self._status, seconds=time.monotonic() - self._status.since)

    def take(self, version: int, network: PublishedNetwork) -> None:
        """Play with this network and its settings from the next round on, unless a newer one has come."""
        if self._next is None or version > self._next[0]:
            self._next = version, network
            self._arrived.set()

    def refuses(self, config: Config) -> str:
        """Why this device cannot play with changed settings; empty if it can."""
        if self._playing is None:
            return ""
        from tengen.loop.components import check_change

        try:
            check_change(self._driver(config))
        except OptionError as error:
            return str(error)
        return ""

    def stop(self) -> None:
        """Let `play` return after the present round, now and from now on."""
        self._stopping.set()
        self._arrived.set()

    def close(self) -> None:
        """Remove its files: nothing else does when Ray kills the process."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def play(self) -> PlayedChunks:
        """Play until there are enough rows for a file, or for some seconds; all games that have ended meanwhile."""
        with self._turn:
            self._arrived.wait()
            ended, evaluations = ({}, 0.0) if self._stopping.is_set() else self._play()
            self._note(words="the learner, which has not taken the last chunk yet", waiting=True)
        if not ended:
            return PlayedChunks((), 0.0)
        from tengen.cluster.packing import pack

        # The next call plays meanwhile, so the device does not wait.
        return PlayedChunks(tuple(pack(board, parts) for board, parts in sorted(ended.items())), evaluations)

    def _play(self) -> tuple[dict[int, list[Any]], float]:
        """Games that have ended, by their board, and the evaluations for them."""
        if self._playing is None:
            self._build()
        from tengen.selfplay.finished import on_host

        ended: dict[int, list[Any]] = {}
        began, rows = time.monotonic(), 0
        while True:
            budgets = self._before_round()
            for played in self._rounds.play(self._weights, budgets=budgets):
                self._evaluations += played.evaluations
                found = on_host(played.finished)
                if games := len(found.length):
                    ended.setdefault(self._boards.index(played.game), []).append(found)
                    new = int(found.rows_count)
                    rows += new
                    self._note(games=self._status.games + games, rows=self._status.rows + new)
            if self._rounds.seconds:
                self._note(evaluations_per_second=self._rounds.evaluations / self._rounds.seconds)
            late = time.monotonic() - began >= _SECONDS
            if late or rows >= self._config.data.chunk_rows or self._stopping.is_set():
                break
        evaluations = self._evaluations if ended else 0.0
        self._evaluations -= evaluations
        return ended, evaluations

    def _build(self) -> None:
        self._note(words="building the network", waiting=False)
        import jax

        from tengen.jax_setup import keep_compiled
        from tengen.loop.components import check_fits
        from tengen.selfplay.driver import PlayRounds

        keep_compiled()
        if self._next is not None:
            self._config = self._next[1].config  # newer settings may have come with the network
        self._playing = playing = self._driver(self._config)
        check_fits("self-play", playing.lanes.bytes_needed(), "lower selfplay.games or search.simulations")
        self._boards = [board.game for board in playing.boards]
        self._structure = jax.tree.structure(playing.no_weights())
        key = jax.random.fold_in(jax.random.key(self._config.run.seed), self._place.session)
        self._rounds = PlayRounds(playing.lanes, self._place.session, key)

    def _before_round(self) -> tuple[int, int] | None:
        """Take over a newer network and new settings; the budgets of searches."""
        import jax

        assert self._next is not None
        version, network = self._next
        before, self._config = self._config, network.config
        if (before.search, before.selfplay) != (self._config.search, self._config.selfplay):
            self._playing = self._driver(self._config)
            self._boards = [board.game for board in self._playing.boards]
            self._rounds.change(self._playing.lanes)
        if version != self._status.version:
            self._weights = jax.device_put(jax.tree.unflatten(self._structure, network.leaves), jax.local_devices()[0])
            self._note(version=version)
        self._note(words="playing" if self._rounds.compiled else "compiling the games", waiting=False)
        return None if network.budgets is None else self._within_settings(network.budgets)

    def _within_settings(self, budgets: tuple[int, int]) -> tuple[int, int]:
        most = self._config.search.simulations
        return min(budgets[0], most), min(budgets[1], most)

    def _driver(self, config: Config) -> Any:
        """Self-play with these settings. It reads the networks of opponents at once."""
        from tengen.selfplay.driver import SelfplayDriver

        if not self._opponents:
            return SelfplayDriver(config)
        with lease.temporary("selfplay") as folder:
            self._folder = Path(folder)
            return SelfplayDriver(placed(config, self._opponents, self._folder))

    def _note(self, **values: Any) -> None:
        """Replace the status; `since` is when its words changed."""
        if values.get("words", self._status.words) != self._status.words:
            values["since"] = time.monotonic()
        self._status = replace(self._status, **values)


def _node() -> str:
    """The node of this process; empty outside of Ray."""
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
