"""Small runs with good rows in them, and every way in which files get spoiled."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tengen.config.sections import Config
from tengen.data.format.chunk import write_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.format.rows import RowFormat
from tengen.data.store.store import Store
from tengen.loop.parts.shuffle import ShufflePart
from tengen.loop.parts.train import TrainPart
from tengen.run import config_file
from tengen.run.part import Part, Progress
from tests.helpers import rows
from tests.helpers.game_recording import make
from tests.helpers.tiny_runs import never, tiny

RING = (
    "data.first_rows=40",
    "shuffle.rows_per_file=32",
    "shuffle.validation_share=0.2",
    "shuffle.workers=1",
    "ring.shuffle_rows=20",
    "ring.samples_per_epoch=64",
    "ring.poll_seconds=0.01",
    "train.samples_per_row=1",
    "train.checkpoints.interval=2",
)
GAME = make("tic_tac_toe")
FORM = RowFormat.of(GAME, tiny().net.heads)
IDENTITY = GameIdentity.of(GAME)


def ring_config(*overrides: str) -> Config:
    return tiny(*{text.partition("=")[0]: text for text in (*RING, *overrides)}.values())


def add_chunk(base: Path, count: int = 20, *, seed: int, network: str = "random") -> Path:
    """Rows of games that no other seed has."""
    path = Store(base / "selfplay").reserve(network)
    write_chunk(path, FORM, rows.rows(count, seed, FORM), IDENTITY, network=network)
    return path


def fill(base: Path, chunks: int = 10) -> None:
    """Chunks of both sides."""
    for seed in range(chunks):
        add_chunk(base, seed=seed)


def shuffler(base: Path, said: list[str], *overrides: str) -> ShufflePart:
    return ShufflePart(ring_config(*overrides), GAME, base, never, said.append)


def trainer(base: Path, said: list[str], *overrides: str, **more: Any) -> TrainPart:
    """The trainer `main`; as the command does, the first one leaves its configuration."""
    config = ring_config(*overrides)
    if not (base / "train" / "main" / "config.yaml").exists():
        config_file.write(config, base / "train" / "main", ())
    return TrainPart(config, base, never, said.append, **more)


def until_it_waits(part: Part, most: int = 60) -> Progress:
    """Call it until there is nothing to do."""
    for _ in range(most):
        if not (progress := part.run_once()).worked:
            return progress
    raise AssertionError("it never waits")


def _zip_with(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The same arrays with another meta."""
    with np.load(path) as opened:
        arrays = {name: opened[name] for name in opened.files}
    about = json.loads(arrays["meta"].tobytes())
    change(about)
    arrays["meta"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def halved(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(bytes(data))


def another_schema(path: Path) -> None:
    _zip_with(path, lambda about: about.update(schema=0))


def future(path: Path) -> None:
    _zip_with(path, lambda about: about.update(schema=99, wonders=True))


def another_game(path: Path) -> None:
    _zip_with(path, lambda about: about.update(game="connect_four"))


def another_version(path: Path) -> None:
    _zip_with(path, lambda about: about.update(version=99))


def pickled(path: Path) -> None:
    with np.load(path) as opened:
        arrays = {name: opened[name] for name in opened.files}
    arrays["weight"] = np.array([{"a": 1}] * len(arrays["ply"]), dtype=object)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def only_a_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"rows": [1, 2, 3]}))


CORRUPT = (truncated, halved, empty, zeros, flipped, another_schema, future, pickled, only_a_pickle)
FOREIGN = (another_game, another_version)
