"""The sections of runs in several parts: `ring`, `shuffle`, `gate` and `cluster`. The fused loop uses none of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

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
    """The section `ring`: how the parts work together. See docs/pipeline.md."""

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


@dataclass(frozen=True)
class ShuffleSettings:
    """The section `shuffle`. See docs/shuffle.md."""

    keep_target_rows: int = setting(
        600_000, "rows drawn from the window, or all of it if it has fewer", low=1, high=10**9 - 1
    )
    rows_per_file: int = setting(65_536, "rows in each file; only the last may have fewer", low=1, high=10**8)
    validation_share: float = setting(
        0.05, "share of the chunks used for validation, by a hash of their names", low=0, high=1
    )
    compress: bool = setting(False, "compress the files: fewer bytes, far more time")
    memory_bytes: int = setting(2**31, "memory for rows, for all workers together", low=2**20, high=2**50)
    workers: int | None = setting(None, "threads (null: one for each core)", low=1, high=1024)
    scratch: str | None = setting(None, "folder for intermediate files (null: next to the result)")
    keep_shuffles: int = setting(3, "newest shuffles that are never removed", low=1, high=10**6)
    lease_minutes: float = setting(
        20.0,
        "minutes without a sign of life before a reader on another machine counts as dead",
        low=2,
        high=10**6,
        change="start",
    )


@dataclass(frozen=True)
class GateSettings:
    """The section `gate`. See docs/gate.md."""

    kind: Literal["none", "share", "sprt"] = setting(
        "share", "accept every network, those that win a share of a match, or those that pass a sequential test"
    )
    games: int = setting(200, "most games of a match, in pairs with colours swapped", low=2, multiple_of=2, high=10**6)
    round_games: int = setting(64, "games played at once", low=2, multiple_of=2, high=10**5)
    simulations: int = setting(64, "simulations per move", low=1, high=30000)
    opening_moves: int = setting(4, "random moves at the start of each pair of games", low=0, high=100)
    share: float = setting(0.5, "share of the points that a new network needs; a draw is half a point", low=0, high=1)
    sprt_low: float = setting(0.0, "sprt: Elo gain at which a new network is rejected", low=-1000, high=1000)
    sprt_high: float = setting(20.0, "sprt: Elo gain at which a new network is accepted", low=-1000, high=1000)
    sprt_error: float = setting(0.05, "sprt: error rate of either verdict", low=0.0001, high=0.49)
    newest_first: bool = setting(False, "test the newest candidate first (false: the oldest)", before=False)
    most_waiting: int = setting(
        8, "candidates that may wait before the export waits too", low=1, high=10**6, before=10**6
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        if self.sprt_low >= self.sprt_high:
            yield "sprt_high", f"expected more than sprt_low, {self.sprt_low:g}, got {self.sprt_high:g}"


Auto = Literal["auto"]


@dataclass(frozen=True)
class ClusterSettings:
    """The section `cluster`. See docs/cluster.md."""

    actors: int | Auto = setting(
        "auto", "self-play actors (auto: as many as the nodes have room for)", low=1, high=10_000, before="auto"
    )
    cores: int = setting(
        2, "CPU cores of each actor; fewer if no node has as many", low=1, high=1024, before=2, change="start"
    )
    gpus: float | Auto = setting(
        "auto",
        "GPUs of each actor (auto: one if the cluster has any; nodes without then do not play)",
        low=0,
        high=64,
        before="auto",
        change="start",
    )
    learner_gpus: float | Auto = setting(
        "auto",
        "GPUs of the learner (auto: one if there are any; a single GPU is shared with self-play)",
        low=0,
        high=64,
        before="auto",
        change="start",
    )
    stale_steps: int = setting(
        50, "training steps after which self-play gets the new network", low=1, high=10**9, before=50
    )
    waiting_chunks: int = setting(
        32, "chunks of games that may wait for the learner before self-play waits", low=1, high=100_000, before=32
    )

    gate: bool = setting(
        False,
        "self-play gets only networks that the gate accepts (false: every new network)",
        before=False,
        change="start",
    )

    def check_together(self) -> Iterator[tuple[str, str]]:
        for name in ("gpus", "learner_gpus"):
            value = getattr(self, name)
            if value != "auto" and value > 1 and value != int(value):
                yield name, f"expected a whole number or a share below 1, got {value:g}"
