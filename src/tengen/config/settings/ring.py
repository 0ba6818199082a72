"""The section `ring`: how the parts of a run work together. The fused loop uses none of it. See docs/pipeline.md."""

from dataclasses import dataclass

from tengen.schema import setting


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
