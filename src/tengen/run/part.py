"""A part of the pipeline: does one piece of work at a time, or reports what it waits for and how far along that is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tengen.config.sections import Config

Stop = Callable[[], bool]
"""Whether the user has asked to stop."""


@dataclass(frozen=True)
class Progress:
    """What a part has just done, or what it waits for."""

    words: str  # "trained 4,096 of 20,000 samples", "12,410 of 20,000 rows until the first shuffle"
    worked: bool = True  # False: there was nothing to do, so try again later
    done: float | None = None  # how much of the work is done, where it can be counted
    of: float | None = None
    event: bool = False  # always printed, even if something else was printed a moment ago
    ended: bool = False  # a limit is reached: there will be nothing more to do
    figures: Mapping[str, Any] = field(default_factory=dict)  # counts of this process, for `tengen status`

    @property
    def share(self) -> float | None:
        """The share of the work that is done, where it can be counted."""
        return None if self.done is None or not self.of else min(1.0, self.done / self.of)


def waiting(words: str, done: float | None = None, of: float | None = None, **figures: Any) -> Progress:
    """Nothing to do yet."""
    return Progress(words, worked=False, done=done, of=of, figures=figures)


Show = Callable[[Progress], object]


class Part:
    """One of the five. `kind` is selfplay, shuffle, train, export or gate; `name` tells two of a kind apart."""

    kind = name = ""
    show: Show = staticmethod(lambda progress: None)  # called during work that takes longer; set by the driver

    def run_once(self) -> Progress:
        """Do one piece of work, which takes seconds; longer work checks in between whether to stop."""
        raise NotImplementedError

    def change(self, config: Config) -> None:
        """Work with other settings from now on."""

    def flush(self) -> None:
        """Write whatever is not written yet."""

    def close(self) -> None:
        """End all threads and release everything."""
