"""Runs with rows in them, and trainers that remember what they said and learned from."""

import itertools
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tengen import games
from tengen.config.sections import Config
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.loader.sources import split_of
from tengen.data.shuffle.folders import Shuffle, newest
from tengen.data.store.store import Store
from tengen.loop.parts.shuffle import ShufflePart
from tengen.loop.parts.train import TrainPart
from tengen.run.part import Part, Progress
from tengen.train.alpha_zero import AlphaZeroTrainer
from tests.helpers.game_recording import make
from tests.helpers.tiny_runs import never, tiny
from tests.helpers.train_samples import random_rows

RING = (
    "ring.samples_per_epoch=64",
    "ring.poll_seconds=0.01",
    "ring.shuffle_rows=1",
    "shuffle.rows_per_file=32",
    "shuffle.validation_share=0.5",
    "train.samples_per_row=1",
)
BATCH = 16
SHARE = 0.5


def ring_config(*overrides: str) -> Config:
    """Of a run of tic-tac-toe with epochs of four steps."""
    return tiny(*{text.partition("=")[0]: text for text in (*RING, *overrides)}.values())


def add_rows(base: Path, count: int, seed: int, side: str = "train", network: str = "random") -> Path:
    """A chunk of rows that tell nothing, each with a game of its own: [seed, number]. `side` is where they will go."""
    game = make("tic_tac_toe")
    paths = (Store(base / "selfplay", f"w{number}").reserve(network) for number in itertools.count())
    path = next(path for path in paths if split_of(path.name, SHARE) == side)
    rows = random_rows(game, count, seed=seed)
    rows["scalars"] = np.zeros_like(rows["scalars"])
    rows["ply"] = np.full(count, 1, np.int16)
    rows["moves_left"] = np.full(count, 3, np.int16)
    rows["game"] = np.stack([np.full(count, seed), np.arange(count)], -1).astype(np.uint32)
    write_chunk(path, RowFormat.of(game), rows, GameIdentity.of(game), network=network)
    return path


def shuffled(base: Path, *overrides: str) -> Shuffle:
    """The run's rows, shuffled anew."""
    said: list[str] = []
    progress = shuffler(base, said, *overrides, single=True).run_once()
    assert progress.ended, progress.words
    found = newest(base)
    assert found is not None
    return found


def shuffler(
    base: Path, said: list[str], *overrides: str, stop: Callable[[], bool] = never, **more: Any
) -> ShufflePart:
    config = ring_config(*overrides)
    game = games.make(config.game.name, **asdict(config.game.options))
    return ShufflePart(config, game, base, stop, said.append, **more)


class Trainer:
    """A trainer of a run; `learned` are the games of all rows, in order."""

    def __init__(self, base: Path, *overrides: str, **more: Any) -> None:
        self.said: list[str] = []
        self.learned: list[tuple[int, int]] = []
        self.part = TrainPart(ring_config(*overrides), base, never, self.said.append, **more)
        learn = self.part.trainer.learn

        def noted(blocks: Any) -> Any:
            def each() -> Any:
                for block in blocks:
                    self.learned += [(int(a), int(b)) for a, b in block["game"]]
                    yield block

            return learn(each())

        self.part.trainer.learn = noted

    @property
    def trainer(self) -> AlphaZeroTrainer:
        return self.part.trainer

    def run(self, calls: int = 10_000) -> Progress:
        """Until there is nothing to do, or so often."""
        return drive(self.part, calls)

    def stop(self) -> None:
        """As a person would."""
        self.part.flush()
        self.part.close()

    kill = property(lambda self: self.part.close)  # what was not written is lost


def drive(part: Part, calls: int = 10_000) -> Progress:
    """Let a part work until it has nothing to do, or so often."""
    progress = Progress("nothing")
    for _ in range(calls):
        progress = part.run_once()
        if progress.ended or not progress.worked:
            return progress
    assert calls < 10_000, f"it never ends: {progress.words}"
    return progress
