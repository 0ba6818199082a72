"""Folders of runs for the page, made by hand: no run takes part, so nothing is compiled."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tengen.config.rendering import render
from tengen.data.records.records import Record, save_records
from tengen.match import results
from tengen.match.results import MatchResult
from tests.helpers.tiny_runs import tiny

NETWORKS = ("tic_tac_toe-main-s64-d100", "tic_tac_toe-main-s128-d200")
HOSTILE = "<img src=x onerror=\"document.title='broken'\"></script><script>document.title='broken'</script>"
_TIME = "2026-01-31T12:{:02}:{:02}.000+00:00"


def line(elapsed: float, kind: str = "progress", **values: Any) -> dict[str, Any]:
    """A line of metrics."""
    time = _TIME.format(int(elapsed) // 60 % 60, int(elapsed) % 60)
    return {"time": time, "elapsed": elapsed, "kind": kind, **values}


def tally(games: int, **values: Any) -> dict[str, Any]:
    """Of that many games, half of which the first player won, and of the rest half were drawn."""
    found = {"games": games, "first": games // 2, "draws": games // 4, "second": games - games // 2 - games // 4}
    bins = {"predicted": [games] * 10, "points": [games * (at + 0.5) / 10 for at in range(10)]}
    return {**found, "moves": 7 * games, **bins, **values}


def progress(number: int) -> dict[str, Any]:
    """What a fused run writes after so many times five seconds."""
    figures = {
        "policy_accuracy": 0.3 + number / 100,
        "policy_entropy": 1.5,
        "policy_target_entropy": 1.0,
        "value_mse": 0.5,
    }
    return line(
        5.0 * number,
        stage="learning",
        network=NETWORKS[0],
        games=10 * number,
        rows=20 * number,
        window=15 * number,
        steps=4 * number,
        samples=64 * number // 5,
        learning_rate=0.001,
        loss=3.0 / (1 + number),
        losses={"policy": 1.2, "value": 0.4},
        games_per_second=2.0,
        rows_per_second=4.0,
        evaluations_per_second=1000.0,
        steps_per_second=1.0,
        samples_per_second=16.0,
        figures=figures,
        played=tally(10 * number),
    )


def add_lines(base: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Append to the metrics of a run."""
    with (base / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(dict(one)) + "\n" for one in lines)


def make_run(base: Path, *overrides: str, lines: int = 20) -> Path:
    """A run with curves, ratings and two games; the second player of the games has a hostile name."""
    base.mkdir(parents=True)
    (base / "config.yaml").write_text(render(tiny(*overrides)))
    add_lines(base, [line(0.0, "session", mode="fused"), *map(progress, range(1, lines + 1))])
    add_lines(base, [line(25.0, "rating", network=NETWORKS[0], elo=100.0, error=50.0, steps=20)])
    results.append(
        base / "ratings" / "results.jsonl",
        MatchResult(NETWORKS[0], "random", 8, 1, 1),
        MatchResult(NETWORKS[1], NETWORKS[0], 6, 2, 2),
    )
    save_records(base / "games" / NETWORKS[1] / "00000001.txt", [record(), record(actions=(4, 0, 8, 2, 1))])
    return base


def record(actions: Sequence[int] = (0, 3, 1, 4, 2), **values: Any) -> Record:
    """A game of tic-tac-toe, which the first player won unless the actions say otherwise."""
    about: dict[str, Any] = {
        "values": tuple(0.1 if ply else None for ply in range(len(actions))),
        "players": ("first", HOSTILE),
        "result": 1.0,
        "notes": {"remark": HOSTILE},
        "id": f"game-{len(actions)}-{actions[0]}",
        "date": "2026-01-31",
    }
    return Record("tic_tac_toe", {}, tuple(actions), **about | values)
