"""The section `ring`: how the parts of a run work together. The fused loop uses none of it. See docs/pipeline.md."""

from collections.abc import Iterator
from dataclasses import dataclass

from tengen.schema import setting


@dataclass(frozen=True)
class DeviceSettings:
    """Which of a machine's devices a part uses, counted from 0 as JAX does."""

    selfplay: tuple[int, ...] = setting((), "devices that play, as [0, 1, 2] ([]: all)", low=0, high=1023)
    train: tuple[int, ...] = setting((), "devices over which a batch is split, as [3] ([]: all)", low=0, high=1023)

    def check_together(self) -> Iterator[tuple[str, str]]:
        for name in ("selfplay", "train"):
            given = getattr(self, name)
            if twice := [number for number in given if given.count(number) > 1]:
                yield name, f"device {twice[0]} is given twice"


@dataclass(frozen=True)
class PipelineSettings:
    selfplay_rows: int = setting(20_000, "sync: rows that self-play adds in each round", low=1, high=10**9)
    selfplay_games: int | None = setting(
        None, "sync: games that self-play adds in each round, if reached before selfplay_rows (null: no limit)", low=1
    )
    switch_in_game: bool = setting(
        True, "games continue with a newer network (false: each ends with the network it began with, which is slower)"
    )
    shuffle_rows: int = setting(20_000, "async: new rows before the next shuffle", low=1, high=10**9)
    passes_per_shuffle: int = setting(
        1, "times that training goes over a shuffle before it waits for the next", low=1, high=1000, before=1
    )
    samples_per_epoch: int = setting(
        200_000, "training samples per epoch; losses are validated after each epoch", low=1, high=10**10
    )
    epochs_per_export: int = setting(1, "epochs between two exported networks", low=1, high=10**6)
    validation_rows: int = setting(8192, "most rows used for one validation (0: none)", low=0, high=10**8)
    poll_seconds: float = setting(2.0, "seconds between two checks for new files", low=0.01, high=3600)
    devices: DeviceSettings = setting(
        DeviceSettings(), "async: devices of this machine for each part", before=DeviceSettings(), change="start"
    )
