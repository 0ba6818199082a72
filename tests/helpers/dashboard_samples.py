"""Statuses as a daemon in the middle of its work would send them."""

import math
from typing import Any

from tengen.protocol.messages import (
    LoaderStage,
    LoaderStatus,
    NetworkStatus,
    ScheduleStatus,
    SelfplayStatus,
    TrainingFigures,
    TrainingStatus,
)

BOARD = """\
  1 2 3 4 5 6 7
6 . . . . . . .
5 . . . . . . .
4 . . . o . . .
3 . . x x . . .
2 . o x o . . .
1 x o x o x o .
to play: o"""


def stage(name: str, split: str = "train", **more: Any) -> LoaderStage:
    figures: dict[str, Any] = {
        "last_second": 3.0,
        "rate": 3.1,
        "total": 12_410,
        "rows": 1_240_000,
        "load": 0.62,
        "doing": "working",
        "since": 0.1,
    }
    return LoaderStage(name, split=split, **(figures | more))


def loader() -> LoaderStatus:
    stages = [stage("watch", "", total=13_020, load=0.01, queue="files", filled=3, capacity=64)]
    for split in ("train", "validation"):
        stages += [
            stage("read", split, queue="chunks", filled=12, capacity=16),
            stage("unpack", split, queue="blocks", filled=4, capacity=4),
            stage("mix", split, rate=212.0, total=9_812_000, load=0.88, queue="choices", filled=1, capacity=2),
            stage("batch", split, rate=212.4, total=9_811_998, load=0.31, queue="batches", filled=6, capacity=8),
            stage("consumer", split, rate=212.4, total=9_811_992, load=0.97),
        ]
    stages[6] = stage(
        "read", "validation", rate=0.0, last_second=0.0, doing="waiting for input", since=34.0, waits_for="files"
    )
    return LoaderStatus(
        tuple(stages),
        chunks={"train": 12_410, "validation": 610, "test": 0},
        rows={"train": 1_240_000, "validation": 61_000, "test": 0},
        rejected={"corrupt": 3, "foreign": 1, "unreadable": 0},
        last_rejected=("chunk-00412.npz: the file ends too early",),
    )


def status(step: int = 3210, **more: Any) -> TrainingStatus:
    loss = 1.4 + 2 * math.exp(-(60_000 + step) / 12_000) + 0.04 * math.sin(step / 37) * math.sin(step / 1111)
    networks = tuple(
        NetworkStatus(
            f"go9-main-s{4096 * number}-d{1000 * number}", 500 * number, 60.0 * (13 - number) ** 2, 2.4 - number / 20
        )
        for number in range(12, 6, -1)
    )
    uploads = ("uploading", "failed: 503 Service Unavailable", "done", "done", "done", "done")
    fields: dict[str, Any] = {
        "run": "go9",
        "uptime": 3723.0 + step / 10,
        "schedule": ScheduleStatus(
            "TRAINING", f"network 13, step {step:,} of 5,000", 181.0, 12, 410, 1000, 620.0, 181.0, 840.0, 300.0
        ),
        "loader": loader(),
        "training": TrainingFigures(
            step,
            5000,
            60_000 + step,
            12.3,
            145.0,
            loss,
            {"policy": loss * 0.7, "value": loss * 0.2, "score": loss * 0.1},
            0.002,
            {"loss": 1.91, "policy": 1.4, "value": 0.51},
        ),
        "networks": tuple(
            NetworkStatus(n.name, n.step, n.seconds, n.validation_loss, None, upload)
            for n, upload in zip(networks, uploads, strict=True)
        ),
    }
    return TrainingStatus(**(fields | more))


def selfplay_status(step: int = 310, board: str = BOARD) -> TrainingStatus:
    """Of a run that plays itself."""
    training = TrainingFigures(step, 0, step, 2.4, 470.0, 2.31, {"policy": 1.72, "value": 0.59}, 0.002)
    return TrainingStatus(
        "connect_four",
        130.0,
        ScheduleStatus("TRAINING", "playing; 22 % of 10 minutes, 00:07:50 left", 2.0, 3, 0, 0, 41.0, 0.0, 60.0),
        training=training,
        networks=(NetworkStatus("connect_four-main-s79360-d21400", 300, 12.0, rating=412.0),),
        selfplay=SelfplayStatus(1204, 9.1, 21_400, 164.0, 1_204_000.0, 21_400, "412 +-38 against mcts:200", board),
    )
