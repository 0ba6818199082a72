"""An engine that thinks about one game, against the bare network at its best batch, measured in turn."""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp

from tengen import nets
from tengen.bench.figures import RATIO, Figure
from tengen.bench.networks import game_of
from tengen.bench.timing import spread
from tengen.config.settings.match import EngineSettings
from tengen.engine.engine import Engine
from tengen.nets import saving
from tengen.nets.building import build_for_device
from tengen.run.networks import find

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class EngineRound(NamedTuple):
    """One measurement, in positions per second."""

    before: float  # of the bare network
    engine: float
    after: float
    visits: int
    seconds: float

    @property
    def share(self) -> float:
        return self.engine / ((self.before + self.after) / 2)


def make(net: str, size: int, settings: EngineSettings) -> Engine:
    """An engine with an untrained network on a Go board, which has compiled its programs."""
    game = game_of("go", size)
    with tempfile.TemporaryDirectory() as folder:
        spec = nets.spec(net, ("ownership", "score"))
        saving.save(build_for_device(spec, game, jax.random.key(0)), Path(folder) / "net", game)
        engine = Engine(find(Path(folder) / "net"), settings=settings)
    engine.think(visits=200)
    return engine


def bare(engine: Engine, batch: int, seconds: float) -> float:
    """Positions per second of the network alone, one batch after the other."""
    observation = jax.jit(engine.game.observe)(engine.state)
    many = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), observation)
    evaluate = jax.jit(engine.evaluate)
    for _ in range(2):
        jax.block_until_ready(evaluate(engine.params, many))
    begin, count = time.perf_counter(), 0
    while (took := time.perf_counter() - begin) < seconds:
        jax.block_until_ready(evaluate(engine.params, many))
        count += batch
    return count / took


def rounds(engine: Engine, visits: int, batch: int, count: int, seconds: float = 2.0) -> Iterator[EngineRound]:
    """The engine from an empty tree, between two measurements of the network."""
    for _ in range(count):
        before = bare(engine, batch, seconds)
        engine.reset()
        report = engine.think(visits=visits)
        rate = report.evaluations / report.seconds
        yield EngineRound(before, rate, bare(engine, batch, seconds), report.visits, report.seconds)


def figures(visits: int, repeats: int) -> list[Figure]:
    """b6c96 on 9x9."""
    engine = make("b6c96", 9, EngineSettings(visits=visits))
    rates = {batch: bare(engine, batch, 0.5) for batch in BATCHES if batch <= 64}
    found = list(rounds(engine, visits, max(rates, key=rates.__getitem__), repeats))
    shares, speeds = [each.share for each in found], [each.engine for each in found]
    name = f"b6c96 on 9x9, {visits} visits"
    return [
        Figure(f"engine, {name}", statistics.median(speeds), "/s", spread(speeds)),
        Figure(f"engine / bare network, {name}", statistics.median(shares), RATIO, spread(shares)),
    ]
