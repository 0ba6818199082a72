"""Runs with networks in them, and a gate that is as small as can be."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flax import nnx

from tengen import nets
from tengen.config.sections import Config
from tengen.loop.parts.gate import GatePart
from tengen.nets import saving
from tengen.run import networks
from tengen.run.part import Progress
from tests.helpers.game_recording import make
from tests.helpers.tiny_runs import never, tiny

GATE = (
    "gate.kind=share",
    "gate.games=16",
    "gate.round_games=8",
    "gate.simulations=2",
    "gate.opening_moves=2",
    "gate.share=0.5",
)


def gate_config(*overrides: str) -> Config:
    """Of a run of tic-tac-toe with a tiny gate."""
    return tiny(*{text.partition("=")[0]: text for text in (*GATE, *overrides)}.values())


def network(folder: Path, seed: int, spec: str = "b1c8", game: str = "tic_tac_toe") -> Path:
    """The file of a network with random parameters."""
    made = make(game)
    return saving.save(nets.build(nets.spec(spec), made, nnx.Rngs(seed), dtype="float32"), folder, made)


def put(base: Path, folder: str, samples: int, file: Path | None, **verdict: Any) -> networks.NetworkEntry:
    """A network in RUN/<folder>; without a file it is but a folder."""
    path = base / folder / networks.name_of("tic_tac_toe", "main", samples, 2 * samples)
    path.mkdir(parents=True)
    if file is not None:
        shutil.copy(file, path / saving.FILE_NAME)
    entry = networks.NetworkEntry(path, "main", samples, 2 * samples)
    if verdict:
        networks.write_verdict(entry, verdict)
    return entry


class Gate:
    """A gate that remembers what it said and did."""

    def __init__(self, base: Path, *overrides: str, stop: Callable[[], bool] = never) -> None:
        self.said: list[str] = []
        self.done: list[Progress] = []
        self.part = GatePart(gate_config(*overrides), base, stop, self.said.append)

    def run(self) -> Progress:
        """Until there is nothing to do."""
        for _ in range(100):
            self.done.append(self.part.run_once())
            if not self.done[-1].worked:
                return self.done[-1]
        raise AssertionError("it never ends")


def names(base: Path, folder: str) -> list[str]:
    """What lies in RUN/<folder>."""
    return sorted(path.name for path in (base / folder).iterdir()) if (base / folder).exists() else []
