"""The networks that a run has saved: RUN/models/<name>/model.safetensors, each with what it is in its header."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from flax import nnx

from tengen import nets
from tengen.errors import TengenError
from tengen.games.core import Game
from tengen.nets import saving


@dataclass(frozen=True, order=True)
class SavedNetwork:
    """One network of the run, in the order of saving."""

    seconds: float  # of the run, when it was saved
    step: int  # of learning; may be less than before if a damaged checkpoint was set aside in between
    name: str


class RunNetworks:
    """The folder of a run's networks."""

    def __init__(self, folder: Path, game: Game, spec: nets.Spec, dtype: nets.Dtype) -> None:
        self.folder = folder
        self._game, self.spec = game, spec
        self._dtype: nets.Dtype = dtype
        self.saved: list[SavedNetwork] = []
        self.notes: tuple[str, ...] = ()  # what lies there and is no network of this run
        self.look()

    @property
    def newest(self) -> SavedNetwork | None:
        """The one that was saved last."""
        return self.saved[-1] if self.saved else None

    def path(self, name: str) -> Path:
        """Where the network of that name is."""
        return self.folder / name

    def save(self, net: nets.Network, name: str, step: int, info: Mapping[str, Any]) -> SavedNetwork:
        """Write a network; `info` has at least the `seconds` of the run. TengenError if that fails."""
        saving.save(net, self.path(name), self._game, {**info, "step": step})
        entry = SavedNetwork(info["seconds"], step, name)
        self.saved = sorted({other.name: other for other in (*self.saved, entry)}.values())
        return entry

    def parameters(self, name: str) -> Any:
        """Of the network of that name, folded, for an `Evaluator`. TengenError says what is wrong with its file."""
        net = saving.load(self.path(name), self._game, spec=self.spec, dtype=self._dtype)
        # Put there, so that it shares the compiled matches of networks that never left the device.
        return jax.device_put(nnx.state(nets.fold(net)), jax.local_devices()[0])

    def look(self) -> None:
        """See what is there now. The newest that is taken has finite numbers."""
        found, notes = [], []
        try:
            folders = sorted(path for path in self.folder.iterdir() if path.is_dir() and path.name[0] != ".")
        except FileNotFoundError:
            folders = []
        except OSError as error:
            raise TengenError(f"{self.folder}: cannot be read: {error.strerror or error}") from None
        for folder in folders:
            try:
                found.append(_read(folder))
            except TengenError as error:
                notes.append(f"passed over, no network of this run: {error}")
        found.sort()
        while found:  # of the others, those that are asked to play are looked at as well
            try:
                saving.check_numbers(self.path(found[-1].name))
                break
            except TengenError as error:
                notes.append(f"passed over, it cannot play: {error}")
                found.pop()
        self.saved, self.notes = found, tuple(notes)


def _read(folder: Path) -> SavedNetwork:
    info = saving.read(folder).info
    step, seconds = info.get("step"), info.get("seconds")
    if type(step) is not int or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise TengenError(f"{folder}: does not say when it was saved")
    return SavedNetwork(float(seconds), step, folder.name)
