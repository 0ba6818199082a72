"""The section `cluster`: how a run is spread over a Ray cluster. Only `--mode cluster` uses it. See docs/cluster.md."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen.schema import setting

Auto = Literal["auto"]


@dataclass(frozen=True)
class ClusterSettings:
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
