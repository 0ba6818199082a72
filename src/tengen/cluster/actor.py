"""A self-play actor: plays thousands of games on its device, and hands finished ones over every few seconds.

Runs in a worker process of Ray, on any node; it needs no files of the run. Importing this module does not start JAX,
because the actor must first limit the memory that JAX takes.
"""

import io
import os
import shutil
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from tengen import files
from tengen.config.sections import Config
from tengen.config.settings.selfplay import named
from tengen.cores import LIMIT
from tengen.errors import OptionError
from tengen.files import lease
from tengen.games.core import Game
from tengen.jax_setup import keep_compiled, use_gpus
from tengen.loop.components import check_change, check_fits
from tengen.match import player_spec
from tengen.nets.specs import FILE_NAME
from tengen.selfplay.collector import on_host
from tengen.selfplay.driver import PlayRounds, SelfplayDriver
from tengen.selfplay.history import Finished

_SECONDS = 5.0  # of playing before finished games are handed over, unless there are enough for a file before


_LEVEL = 1  # of zlib: higher ones take several times as long and save little
_COUNTS = ("rows_count", "others_count", "games_count")
_NESTED = ("rows", "extra")


@dataclass(frozen=True)
class SentNetwork:
    """A network among `selfplay.opponents`, on its way to nodes that do not have its file."""

    name: str
    data: bytes  # of its file


def read_opponents(config: Config, game: Game) -> dict[str, SentNetwork]:
    """The networks that texts in `selfplay.opponents` name; fixed players need no file."""
    found = {}
    for text in config.selfplay.opponents:
        role, name, _ = named(text)
        if (network := player_spec.parse_role(name, role, game).found) is not None:
            path = network.path if network.path.is_file() else network.path / FILE_NAME
            found[text] = SentNetwork(network.name, files.read_bytes(path))
    return found


def place_opponents(config: Config, networks: Mapping[str, SentNetwork], folder: Path) -> Config:
    """The configuration with copies in `folder`, which are made, in place of these networks."""
    texts = list(config.selfplay.opponents)
    for number, text in enumerate(texts):
        if (network := networks.get(text)) is not None:
            place = folder / str(number) / network.name
            files.make_folder(place)
            files.write_bytes(place / FILE_NAME, network.data)
            texts[number] = f"{named(text).role}={place}:{text.rpartition(':')[2]}"
    return replace(config, selfplay=replace(config.selfplay, opponents=tuple(texts)))


_NONE: Mapping[str, SentNetwork] = MappingProxyType({})


@dataclass(frozen=True)
class GamesChunk:
    """Whole games on one board."""

    board: int  # index among the boards of the run
    rows: int
    others: int  # rows that are written and not learned from; they follow the others
    games: int
    data: bytes  # see `pack`


def pack(board: int, parts: Sequence[Finished]) -> GamesChunk:
    """Games of several calls, whose arrays are on the host (`selfplay.on_host`), in that order."""
    tables: dict[str, np.ndarray] = {}
    for name in Finished._fields:
        if name == "rows":
            for key in parts[0].rows:
                cut = [np.split(np.asarray(part.rows[key]), [int(part.rows_count)]) for part in parts]
                tables[f"{name}.{key}"] = np.concatenate([piece[k] for k in (0, 1) for piece in cut])
        elif name == "extra":
            for key in parts[0].extra:
                tables[f"{name}.{key}"] = np.concatenate([np.asarray(part.extra[key]) for part in parts])
        elif name not in _COUNTS and getattr(parts[0], name) is not None:
            tables[name] = np.concatenate([np.asarray(getattr(part, name)) for part in parts])
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **tables)
    rows = sum(int(part.rows_count) for part in parts)
    return GamesChunk(
        board, rows, len(tables["rows.ply"]) - rows, len(tables["length"]), zlib.compress(file.getbuffer(), _LEVEL)
    )


def unpack(chunk: GamesChunk) -> Finished:
    """The games, as `selfplay.on_host` gives them."""
    fields: dict[str, Any] = {name: {} for name in _NESTED}
    with np.load(io.BytesIO(zlib.decompress(chunk.data)), allow_pickle=False) as tables:
        for name in tables.files:
            field, _, key = name.partition(".")
            if key:
                fields[field][key] = tables[name]
            else:
                fields[field] = tables[name]
    counts = zip(_COUNTS, (chunk.rows, chunk.others, chunk.games), strict=True)
    fields |= {name: np.int32(count) for name, count in counts}
    return Finished(**fields)


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
    chunks: tuple[GamesChunk, ...]
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
        try:
            check_change(self._driver(config), self._playing)
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
        # The next call plays meanwhile, so the device does not wait.
        return PlayedChunks(tuple(pack(board, parts) for board, parts in sorted(ended.items())), evaluations)

    def _play(self) -> tuple[dict[int, list[Any]], float]:
        if self._playing is None:
            self._build()
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
        if network.budgets is None:
            return None
        full, cheap = (min(budget, self._config.search.simulations) for budget in network.budgets)
        return full, cheap

    def _driver(self, config: Config) -> Any:
        if not self._opponents:
            return SelfplayDriver(config)
        with lease.temporary("selfplay") as folder:
            self._folder = Path(folder)
            return SelfplayDriver(place_opponents(config, self._opponents, self._folder))

    def _note(self, **values: Any) -> None:
        """Replace the status; `since` is when its words changed."""
        if values.get("words", self._status.words) != self._status.words:
            values["since"] = time.monotonic()
        self._status = replace(self._status, **values)


def _node() -> str:
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
