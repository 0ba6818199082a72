"""Self-play and learning in one process: games, search and training on one device, in turn.

New parameters are the next argument of the same compiled function, rows go from the games to the learner through the
device's memory, and everything that must survive is written in the background.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from tengen import games, nets
from tengen.arena.evaluators import Evaluator
from tengen.config import Config
from tengen.data import ring
from tengen.data.identity import GameIdentity
from tengen.data.rows import RowFormat
from tengen.data.store import Store
from tengen.data.window import power_law
from tengen.data.writer import Writer
from tengen.errors import OptionError
from tengen.loop.collecting import Collector
from tengen.loop.metrics import Metrics
from tengen.loop.progress import Display, Goal, Progress, Rated
from tengen.loop.rating import Rater
from tengen.nets import saving
from tengen.selfplay import Selfplay, on_host
from tengen.selfplay.playing import MOST_PHASES
from tengen.train import AlphaZeroConfig, AlphaZeroTrainer, Checkpoints

TRAINER = "main"
_SECONDS = 1.0  # that one call to the device should take, so that a person sees what goes on and can stop it
_REPORT = 5.0  # seconds between two lines of metrics


@dataclass
class Counts:
    """What a run has done, over all its restarts."""

    games: int = 0
    rows: int = 0
    evaluations: float = 0.0
    seconds: float = 0.0
    sessions: int = 0


class Fused:
    """One run. `prepare` makes it ready, resuming what is there; `run` goes on until the goal is reached."""

    def __init__(self, config: Config, base: Path, display: Display) -> None:
        self.config, self.base, self.display = config, base, display
        self.game = games.make(config.game.name, **asdict(config.game.options))
        self.spec = nets.spec(config.net.name, config.net.heads)
        self.form = RowFormat.of(self.game, config.net.heads)
        self.counts = Counts()
        self.losses: dict[str, float] = {}
        self.progress = Progress(goal=Goal(**asdict(config.goal)))
        self.rated: list[tuple[float, float, float]] = []  # minutes, Elo, error of each rating
        self.network_path: Path | None = None
        self._pace: dict[str, float] = {}

    def prepare(self) -> None:
        """Build everything, and go on where an earlier run of this directory stopped."""
        config = self.config
        self._show("building the network")
        self.trainer = AlphaZeroTrainer(
            AlphaZeroConfig(self.game, self.spec, config.train, config.run.seed, config.net.dtype)
        )
        graph, _ = nnx.split(nets.fold(self.trainer.network()))
        learner_graph = self.trainer.learner.graph
        self._fold = jax.jit(lambda state: nnx.split(nets.fold(nnx.merge(learner_graph, state)))[1])
        self.selfplay = Selfplay(self.game, Evaluator(graph), config.search, config.selfplay, self.form)
        capacity = max(config.data.ring_rows, self.selfplay.rows_room)
        _check_memory(self.selfplay.bytes_needed() + ring.bytes_needed(self.form, capacity))
        self.ring = ring.make(self.form, capacity)
        self._append = jax.jit(ring.append, donate_argnums=0)
        self.checkpoints = Checkpoints(self.base / "train" / TRAINER, config.train.checkpoints)
        self.store = Store(self.base / "selfplay")
        self.metrics = Metrics(self.base)
        self._resume(capacity)
        self.writer = Writer()
        self.collector = Collector(self.base, self.store, self.game, self.form, self.writer, config.data)
        self.collector.network = self.name
        self.rater = Rater(self.base / "ratings", self.game, Evaluator(graph), config.search, config.rating)
        self.weights = self._fold(self.trainer.weights())
        self.key = jax.random.fold_in(jax.random.key(config.run.seed), self.counts.sessions)
        self._checkpointed, self._rated, self._rated_step = self.trainer.step, self.counts.seconds, 0

    @property
    def name(self) -> str:
        """What the network is called as it now is."""
        return f"{self.config.run.name}-{TRAINER}-s{self.trainer.samples}-d{self.counts.rows}"

    def _resume(self, capacity: int) -> None:
        extras, set_aside = self.trainer.resume(self.checkpoints)
        for name in set_aside:
            self.display.say(f"a damaged checkpoint was set aside: {name}")
        if extras is not None:
            self.counts = Counts(**extras["counts"])
            self.rated = [(a, b, c) for a, b, c in extras["rated"]]
            self.display.say(f"going on from step {self.trainer.step:,}")
        self.counts.sessions += 1
        self.store.clean()
        loaded = self.store.read_newest(capacity, self.form, GameIdentity.of(self.game))
        for path in loaded.corrupt:
            self.display.say(f"a damaged chunk was set aside: {path}")
        block = self.selfplay.rows_room
        for start in range(0, loaded.count, block):
            part = {name: values[start : start + block] for name, values in loaded.rows.items()}
            count = len(part["ply"])
            padded = {
                name: jnp.concatenate([values, jnp.zeros((block - count, *values.shape[1:]), values.dtype)])
                for name, values in part.items()
            }
            self.ring = self._append(self.ring, padded, count)
        if loaded.count:
            self.display.say(f"read {loaded.count:,} rows back")
        # Chunks may have been written after the last checkpoint: what they teach counts, once.
        self.counts.rows = max(self.counts.rows, self.store.listing().rows)
        self._feed(max(self.counts.rows - self.trainer.bucket.rows, 0))

    def run(self, stop: Callable[[], bool]) -> None:
        """Play and learn until the goal is reached or `stop` says so; then write everything."""
        self._show("compiling the games")
        start, self.key = jax.random.split(self.key)
        actor = self.selfplay.start(start)
        phases = 1.0
        began, before = time.monotonic(), self.counts.seconds
        reported, since = began, (began, Counts(**asdict(self.counts)), self.trainer.step)
        try:
            while not stop() and not self._reached():
                self._show("playing", self._waited_for())
                actor, seconds = self._play(actor, max(1, round(phases)))
                phases = _paced(phases, seconds)
                self.counts.seconds = before + time.monotonic() - began
                if self.counts.rows >= self.config.data.first_rows and self.trainer.affordable:
                    self._show("training")
                    self._train()
                self.counts.seconds = before + time.monotonic() - began
                self._save_when_due()
                if time.monotonic() - reported > _REPORT:
                    self._report(since)
                    reported = time.monotonic()
                    since = (reported, Counts(**asdict(self.counts)), self.trainer.step)
                self.counts.seconds = before + time.monotonic() - began
            self._show("writing")
            self._finish()
        finally:
            self.writer.close()
            self.checkpoints.close()

    def _play(self, actor: Any, phases: int) -> tuple[Any, float]:
        began = time.monotonic()
        before = float(actor.evaluations)
        session = jnp.uint32(self.counts.sessions)
        actor, finished = self.selfplay.play(self.weights, actor, jnp.int32(phases), session)
        fetched = on_host(finished)
        seconds = time.monotonic() - began
        rows = len(fetched.rows["ply"])
        self.ring = self._append(self.ring, finished.rows, finished.rows_count)
        self.collector.add(fetched)
        self.counts.rows += rows
        self.counts.games += len(fetched.length)
        self.counts.evaluations += float(actor.evaluations) - before
        self._feed(rows)
        return actor, seconds

    def _feed(self, rows: int) -> None:
        window = min(power_law(self.counts.rows, self.config.data.window), self.ring.capacity)
        self.window = min(window, self.counts.rows)
        self.trainer.feed((self.ring, jnp.int32(max(self.window, 1))), rows)

    def _train(self) -> None:
        pace = self._pace.get("train")
        most = 20 if pace is None else max(1, round(2 * _SECONDS / pace))
        steps = min(self.trainer.affordable, most)
        began = time.monotonic()
        self.losses = self.trainer.train(steps)
        seconds = (time.monotonic() - began) / steps
        # The first call compiles, which says nothing about the pace.
        self._pace["train"] = seconds if pace is not None else 0.05
        self.weights = self._fold(self.trainer.weights())

    def _waited_for(self) -> str:
        first = self.config.data.first_rows
        return f"{self.counts.rows:,} of {first:,} rows until learning begins" if self.counts.rows < first else ""

    def _reached(self) -> bool:
        goal, counts = self.config.goal, self.counts
        done = {"minutes": counts.seconds / 60, "games": counts.games, "rows": counts.rows, "steps": self.trainer.step}
        return any(limit is not None and done[name] >= limit for name, limit in asdict(goal).items())

    def _save_when_due(self) -> None:
        if self.trainer.step - self._checkpointed >= self.config.train.checkpoints.interval:
            self._show("writing a checkpoint")
            self._checkpoint()
        if self.trainer.step > self._rated_step and self.counts.seconds - self._rated >= 60 * self.config.rating.minutes:
            self._rate()
            self._rated = self.counts.seconds

    def _checkpoint(self) -> None:
        self.collector.flush()
        extras = {"counts": asdict(self.counts), "rated": self.rated}
        self.checkpoints.save(self.trainer.checkpoint(extras))
        self._checkpointed = self.trainer.step

    def _rate(self) -> None:
        """Save the network under a name, and let it play."""
        self._rated_step = self.trainer.step
        name = self._save_network()
        self._show("playing matches")
        play, self.key = jax.random.split(self.key)
        for line in self.rater.rate(name, self.weights, play):
            self.display.say(line)
        ratings = self.rater.ratings
        if ratings is not None:
            rating = ratings[name]
            self.rated.append((self.counts.seconds / 60, float(rating.elo), float(rating.error)))
            self.metrics.write("rating", {"network": name, "elo": rating.elo, "error": rating.error})

    def _save_network(self) -> str:
        self._show("saving the network")
        name = self.name
        info = {"run": self.config.run.name, "step": self.trainer.step, **asdict(self.counts)}
        self.network_path = saving.save(self.trainer.network(), self.base / "models" / name, self.game, info).parent
        self.collector.flush()  # its games go under another name
        self.collector.network = name
        return name

    def _finish(self) -> None:
        """Everything on disk, and a last rating if there is something new to rate."""
        if self.trainer.step > self._rated_step:
            if self._reached():
                self._rate()
            else:
                self._save_network()
        self._checkpoint()
        self.checkpoints.wait()
        self._report(None)

    def _show(self, stage: str, waiting: str = "") -> None:
        rating = Rated(self.rated[-1][1], self.rated[-1][2]) if self.rated else None
        self.progress = replace(
            self.progress,
            stage=stage,
            waiting=waiting,
            elapsed=self.counts.seconds,
            games=self.counts.games,
            rows=self.counts.rows,
            rating=rating,
        )
        self.display.update(self.progress)

    def _report(self, since: tuple[float, Counts, int] | None) -> None:
        """Speeds since then, and a line of metrics."""
        speeds: dict[str, float] = {}
        if since is not None:
            seconds = max(time.monotonic() - since[0], 1e-9)
            steps = (self.trainer.step - since[2]) / seconds
            speeds = {
                "games_per_second": (self.counts.games - since[1].games) / seconds,
                "rows_per_second": (self.counts.rows - since[1].rows) / seconds,
                "evaluations_per_second": (self.counts.evaluations - since[1].evaluations) / seconds,
                "steps_per_second": steps,
                "samples_per_second": steps * self.config.train.batch,
            }
        parts = {name: value for name, value in self.losses.items() if name not in ("samples", "rows", "bucket")}
        self.progress = replace(
            self.progress,
            **speeds,  # type: ignore[arg-type]
            elapsed=self.counts.seconds,
            network=self.name,
            window=self.window,
            steps=self.trainer.step,
            learning_rate=float(self.trainer.learner.learning_rate(self.trainer.state)),
            loss=parts.pop("loss", None),
            losses={name: value for name, value in parts.items() if name in nets.HEADS or name in ("policy", "value")},
        )
        self.display.update(self.progress)
        self.metrics.write("progress", self.progress.values() | {"figures": parts})


def _paced(phases: float, seconds: float) -> float:
    """How many phases take about a second, approached without haste."""
    wanted = phases * _SECONDS / max(seconds, 1e-3)
    return min(max(wanted, 1.0), 4 * phases, MOST_PHASES)


def _check_memory(needed: int) -> None:
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
    if limit is not None and needed > 0.9 * limit:
        raise OptionError(
            f"this run needs {needed / 2**30:.1f} GiB on the device for games and rows, which has "
            f"{limit / 2**30:.1f}: lower selfplay.games, search.simulations or data.ring_rows"
        )
