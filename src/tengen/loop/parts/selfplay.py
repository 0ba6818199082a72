"""Self-play as a part: plays with the newest accepted network, and writes rows and games.

Any number of processes can do so in the same run, on any machines and independently of each other: the names of their
files differ, and so do the numbers of their games.
"""

import contextlib
import secrets
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax

from tengen import files, nets
from tengen.analysis.saving import save_tree
from tengen.config.sections import Config
from tengen.data.store.store import Store
from tengen.data.store.writer import Job, Writer
from tengen.errors import OptionError, TengenError
from tengen.interop.katago import base as katago
from tengen.loop.components import check_change, check_fits
from tengen.loop.parts.running import NO_SPACE, Say, is_full, pause
from tengen.nets import saving
from tengen.run import first_network, goals, networks, safe_exit
from tengen.run.metrics import finite
from tengen.run.part import Part, Progress, Stop, waiting
from tengen.selfplay.collector import Collector, on_host
from tengen.selfplay.driver import NoFiniteNumbers, PlayedRound, PlayRounds, SelfplayDriver

_RETRY = 2.0  # seconds until a full disk is tried again
_LOOK = 0.02  # seconds between two checks whether everything is written


class SelfplayPart(Part):
    """One worker."""

    kind = "selfplay"

    def __init__(
        self,
        config: Config,
        base: Path,
        stop: Stop,
        say: Say,
        *,
        max_games: int | None = None,
        max_rows: int | None = None,
        trees: Path | None = None,
        max_trees: int = 100,
    ) -> None:
        """Up to `max_trees` search trees, one per call to the games, are written to the folder `trees`."""
        config.check_stages_in_parts()
        self.name = secrets.token_hex(4)
        self.network = networks.RANDOM  # that plays
        self.games = self.rows = 0  # finished by this process, in files or not
        self._config, self._base, self._say = config, base, say
        self._max_games, self._max_rows = max_games, max_rows
        self._trees, self._max_trees, self._trees_written = trees, max_trees, 0
        if trees is not None:
            files.make_folder(trees)
        self._store = Store(base / "selfplay", self.name)
        self._writer = PatientWriter(stop)
        self._bad: set[str] = set()  # networks that cannot be used
        self._pending: list[PlayedRound] = []
        self.evaluations = 0.0
        self._progress = 0.0  # of the run towards its goal
        self._looked = -1e9
        self._next: tuple[str, Any] | None = None  # the network that takes over when the current games have ended
        first_network.local(config, base)  # it plays the first games
        self._build(None)

    def _build(self, spec: Any) -> None:
        self.playing = SelfplayDriver(self._config, spec)
        advice = "lower selfplay.games or search.simulations"
        check_fits("self-play", self.playing.lanes.bytes_needed(), advice)
        self._session = secrets.randbits(31)  # a new one each time, since games are counted from 0 again
        self._collector = Collector(
            *(self._base, self._store, self.playing.game, self.playing.form, self._writer, self._config.data),
            *(self.network, self._session, self.playing.opponents),
        )
        self._weights = self.playing.no_weights()
        key = jax.random.fold_in(jax.random.key(self._config.run.seed), self._session)
        self.rounds = PlayRounds(self.playing.lanes, self._session, key)

    def change(self, config: Config) -> None:
        """The games go on. If search or self-play change, they are compiled, and all searches begin again."""
        before, self._config = self._config, config
        self._collector.settings = config.data
        if (before.search, before.selfplay) == (config.search, config.selfplay):
            return
        try:
            playing = SelfplayDriver(config, self.playing.spec)
            check_change(playing, self.playing)
        except OptionError as error:
            self._config = config.with_selfplay_of(before)
            self._say(f"self-play stays as it is: {error}")
            return
        self._collect()
        self.playing = playing
        self.rounds.change(playing.lanes)

    def run_once(self) -> Progress:
        """Make a call of about a second to the games."""
        if self._writer.full:
            return waiting(f"{NO_SPACE}: {self._writer.full}", **self._figures())
        self._look()
        if reason := self._enough():
            self.flush()
            return Progress(f"{reason}: {self._done()}", ended=True, figures=self._figures())
        if not self.rounds.compiled:
            self.show(Progress(f"compiling the games, to play with {self.network}", figures=self._figures()))
        try:
            with safe_exit.possible(not self.rounds.compiled):
                self._pending = self.rounds.play(self._weights, self._collect, self._enter_stage())
        except NoFiniteNumbers as error:
            with contextlib.suppress(TengenError):  # the error below matters more
                self.flush()  # games that ended before
            path = self._base / networks.ACCEPTED / self.network
            advice = "remove it, and self-play goes on with the one before it"
            raise TengenError(f"{path}: {error}; {advice}") from error
        for played in self._pending:
            self.evaluations += played.evaluations
            rows, games = jax.device_get((played.finished.rows_count, played.finished.games_count))
            self.rows, self.games = self.rows + int(rows), self.games + int(games)
        self._dump_tree()
        self._switch_when_ready()
        return Progress(f"playing with {self.network}: {self._done()}", figures=self._figures())

    def _enter_stage(self) -> tuple[int, int]:
        """Enter the current stage of the run; returns the simulations of its full and cheap searches."""
        stage = self._config.stage(self._progress)
        self._collector.visits = budgets = stage.simulations, stage.cheap
        return budgets

    @property
    def played(self) -> dict[str, Any] | None:
        """Results of the games since self-play was last rebuilt; None before the first."""
        tally = self._collector.tally
        return tally.values() if tally.games else None

    def look_now(self) -> None:
        """Look for a newer network before the next call."""
        self._looked = -1e9

    def flush(self) -> None:
        """Write all games that have ended; TengenError if that is not possible."""
        self._collect()
        self._collector.flush()

    def close(self) -> None:
        self._writer.close()

    def _dump_tree(self) -> None:
        if self._trees is None or self._trees_written >= self._max_trees:
            return
        with safe_exit.possible(not self._trees_written):
            found = self.rounds.tree(self._weights, self._trees_written)
        if found is None or bool(found.tree.over[0, found.tree.root[0]]):  # over, and about to be replaced
            return
        name = f"{self.network}-{self._session:08x}-game{found.number}-ply{found.ply}"
        for ending in (".txt", ".json"):
            save_tree(self._trees / f"{name}{ending}", found.tree)
        self._trees_written += 1
        if self._trees_written == self._max_trees:
            self._say(f"{self._trees}: {self._max_trees:,} search trees are written, which is all that were wanted")

    def _collect(self) -> None:
        while self._pending:  # if one of them fails, it is not added twice
            played = self._pending.pop(0)
            self._collector.add(on_host(played.finished), played.evaluations, played.game)

    def _enough(self) -> str:
        if self._max_games is not None and self.games >= self._max_games:
            return f"{self._max_games:,} games are played"
        if self._max_rows is not None and self.rows >= self._max_rows:
            return f"{self._max_rows:,} rows are played"
        return ""

    def _done(self) -> str:
        speed = f", {self._speed:,.0f} evaluations/s" if self._speed else ""
        waits = self.rows - self._collector.written_rows - self._before_rows
        return f"{self.games:,} games, {self.rows:,} rows ({waits:,} not written yet){speed}"

    @property
    def _speed(self) -> float:
        return self.rounds.evaluations / self.rounds.seconds if self.rounds.seconds > 1 else 0.0

    _before_rows = 0  # written by earlier collectors

    def _figures(self) -> dict[str, Any]:
        return {
            "games": self.games,
            "rows": self.rows,
            "rows_written": self._before_rows + self._collector.written_rows,
            "network": self.network,
            "played": self.played,
            "evaluations_per_second": round(self._speed) if self._speed else None,
        }

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < self._config.ring.poll_seconds:
            return
        self._looked = now
        found = self._newest()
        if found is None or found[0] == (self._next[0] if self._next else self.network):
            return
        name, load = found
        try:
            net = load()
        except TengenError as error:
            self._bad.add(name)
            self._say(f"a network cannot be used: {error}")
            return
        if net.spec != self.playing.spec:
            self._say(f"{name} is another kind of network: the games that run are dropped")
            self._collect()
            self._collector.flush()
            self._before_rows += self._collector.written_rows
            self._build(net.spec)
            self._next = None
        if self._next is None:  # else the games that are waited for stay the same, however often networks come
            self._marks = self.rounds.marks()
        self._next = name, self.playing.weights(net)
        self._switch_when_ready()

    def _newest(self) -> tuple[str, Callable[[], nets.Network]] | None:
        """The newest network that was accepted, or that KataGo's trainer has made since, and how to load it."""
        models, game, dtype = self._base / networks.ACCEPTED, self.playing.game, self._config.net.dtype
        own = [entry for entry in networks.accepted(self._base) if entry.name not in self._bad]
        theirs = katago.newest_model(models)
        newer = theirs is not None and (not own or theirs.changed > own[-1].path.stat().st_mtime_ns)
        if theirs is not None and newer and theirs.name not in self._bad:
            return theirs.name, partial(katago.load_model, theirs.path, game, dtype)
        for path in networks.misnamed(self._base) if not own else ():
            if path.name not in self._bad:
                self._bad.add(path.name)
                self._say(f"{path} does not play: its name must end in -sSAMPLES-dROWS; call it {path.name}-main-s0-d0")
        return (own[-1].name, partial(saving.load, own[-1].path, game, dtype=dtype)) if own else None

    def _switch_when_ready(self) -> None:
        """Let the next network take over, at once or when the games that were under way have ended."""
        if self._next is None:
            return
        if not self._config.ring.switch_in_game:
            if self._marks and self.rounds.older(self._marks):
                return
            self.rounds.forget()  # games that the old network has begun since
        self._collect()
        name, self._weights = self._next
        self._collector.under(name)
        self.network, self._next = name, None
        self._progress = self._reached()
        self._say(f"playing with {name}")

    def _reached(self) -> float:
        path = networks.known(self._base, self.network)
        info = saving.read(path).info if path else {}
        rows, seconds, step = (max(finite(info.get(name)) or 0, 0) for name in ("rows", "seconds", "step"))
        return goals.progress(self._config.goal, goals.RunCounts(rows=int(rows), seconds=seconds), int(step))


class PatientWriter(Writer):
    """Writes files in the background, and waits while the disk is full."""

    def __init__(self, stop: Stop) -> None:
        super().__init__()
        self.full = ""  # what could not be written, while there is no space for it
        self._stop = stop

    def put(self, job: Job, what: Any = "") -> None:
        super().put(lambda: self._patiently(job), what)

    def flush(self) -> None:
        """Return when all jobs are done. TengenError while there is no space for them; they are tried again."""
        while self.waiting and not self._stop():
            if self.full:
                raise TengenError(self.full)
            time.sleep(_LOOK)
        super().flush()

    def _patiently(self, job: Job) -> None:
        while True:
            try:
                job()
            except (OSError, TengenError) as error:
                if not is_full(error) or self._stop():
                    raise
                self.full = str(error)
                pause(_RETRY, self._stop)
            else:
                self.full = ""
                return
