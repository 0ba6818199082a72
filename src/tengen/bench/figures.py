"""Figures of a benchmark, files of them, and what changed against stored ones. Needs no JAX.

The stored figures of a kind of device are a file of `tengen bench all --json` in `bench/stored`, named after the
device; `tengen bench all --json src/tengen/bench/stored/nvidia_h200.json` renews them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tengen import schema
from tengen.errors import TengenError

STORED = Path(__file__).parent / "stored"
RATIO = "x"  # a time or speed divided by another one of the same machine
_LOWER_IS_BETTER = ("us", "s")
_LEAST_NOISE = 0.03  # machines of the same kind differ by 2 %


@dataclass(frozen=True)
class Figure:
    """One measured number. `noise` is half the spread of its repetitions, as a share of it."""

    name: str
    value: float
    unit: str  # "us" and "s" are better if lower, "x", "/s", "TFLOP/s" and others if higher
    noise: float = 0.0


@dataclass(frozen=True)
class Machine:
    """What figures were measured on."""

    device: str
    backend: str  # cpu or gpu
    count: int  # of devices
    jax: str

    @property
    def file(self) -> str:
        """The name of the file of stored figures: nvidia_h200.json."""
        return re.sub(r"\W+", "_", self.device.lower()).strip("_") + ".json"

    def comparable(self, figure: Figure) -> bool:
        """Whether a stored figure means anything here: CPUs of other machines differ, but ratios should not."""
        return self.backend != "cpu" or figure.unit == RATIO


@dataclass(frozen=True)
class BenchReport:
    """The content of a file of figures."""

    machine: Machine
    figures: tuple[Figure, ...]
    missing: Mapping[str, str] = field(default_factory=dict)  # benchmark: why it, or some of it, was not measured
    tengen: str = ""
    date: str = ""  # as 2026-01-31
    seconds: float = 0.0


@dataclass(frozen=True)
class FigureChange:
    """A figure next to the stored one."""

    now: Figure
    before: Figure

    @property
    def gain(self) -> float:
        """How many times as good as before."""
        if self.now.unit in _LOWER_IS_BETTER:
            return self.before.value / self.now.value
        return self.now.value / self.before.value

    @property
    def noise(self) -> float:
        """The change that means nothing."""
        return max(self.now.noise + self.before.noise, _LEAST_NOISE)

    @property
    def verdict(self) -> str:
        """`worse` or `better` if it changed by more than the noise; empty otherwise."""
        return "worse" if self.gain < 1 - self.noise else "better" if self.gain > 1 + self.noise else ""


def stored(machine: Machine, folder: Path = STORED) -> BenchReport | None:
    """The stored figures of this kind of device; None if there are none."""
    path = folder / machine.file
    return read(path) if path.exists() else None


def read(path: Path) -> BenchReport:
    """A file of figures. Raises TengenError."""
    found = schema.read_json(BenchReport, path)
    if any(figure.value <= 0 for figure in found.figures):
        raise TengenError(f"{path}: every figure is a number above 0")
    return found


def changes(now: BenchReport, before: BenchReport | None) -> dict[str, FigureChange]:
    """By name, for the figures that both have and that can be compared."""
    if before is None:
        return {}
    known = {figure.name: figure for figure in before.figures}
    both = ((figure, known[figure.name]) for figure in now.figures if figure.name in known)
    return {
        new.name: FigureChange(new, old)
        for new, old in both
        if new.unit == old.unit and now.machine.comparable(old) and new.value > 0
    }
