"""Rows to learn from: how many are drawn, from which, and when a new version is due."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tengen.context import GameContext, ReplyError
from tengen.context.batches import ReplayedRows
from tengen.errors import TengenError
from tests.helpers.contexts import OPENINGS, TIC_TAC_TOE, idle, waiting
from tests.helpers.patience import LONG


def test_the_newest_rows_are_drawn_evenly() -> None:
    replay = ReplayedRows({"n": np.zeros((6, 1), np.int32)}, 10, 400, seed=1)
    for first in range(0, 24, 4):
        replay.add({"n": np.arange(first, first + 4)[:, None]})
    drawn = Counter(np.asarray(replay.sample()["n"])[:, 0].tolist())
    assert set(drawn) == set(range(14, 24))
    assert min(drawn.values()) > 15  # 40 each, on average
    assert drawn != Counter(np.asarray(replay.sample()["n"])[:, 0].tolist())


def test_a_game_with_more_rows_than_are_kept_leaves_its_last_ones() -> None:
    replay = ReplayedRows({"n": np.zeros((6, 1), np.int32)}, 3, 50, seed=1)
    replay.add({"n": np.arange(5)[:, None]})
    assert set(np.asarray(replay.sample()["n"])[:, 0].tolist()) == {2, 3, 4}


@pytest.mark.parametrize("arrays", ["numpy", "jax"])
def test_so_many_samples_for_each_row(arrays: str) -> None:
    """And those are rows of the games: each is compared with the one that came once, in order."""
    drawn: list[dict[str, np.ndarray]] = []
    rows_before: list[int] = []
    once: dict[tuple[int, int], dict[str, np.ndarray]] = {}
    for replayed in (False, True):
        options: dict[str, Any] = {"replay_rows": 1000, "samples_per_row": 2.5, "min_rows": 12} if replayed else {}
        context = GameContext(TIC_TAC_TOE, 2, 2, total_games=8, arrays=arrays, **options, **OPENINGS)
        context.on("actor_black", idle)
        context.on("actor_white", idle)

        def train(batch: Any, context: GameContext = context) -> None:
            drawn.append({name: values.copy() for name, values in batch.items()})
            rows_before.append(context.stats().rows)

        context.on("train", train, batch_size=4 if replayed else 1)
        context.set_version(black=-4, white=2**40)
        with context:
            assert ("train begins at 12 rows, so far 0" in context.stats().waiting) is replayed
            while context.run(LONG) is not None:
                pass
            stats = context.stats()
        if not replayed:
            once, drawn = {(int(row["game"][0]), int(row["ply"][0])): row for row in drawn}, []
            assert len(once) == stats.rows
            rows_before = []
    assert stats.train_batches == int(2.5 * stats.rows // 4)
    assert rows_before[0] >= 12
    assert len({int(game) for batch in drawn for game in batch["game"]}) > 4
    for batch in drawn:
        for row in range(4):
            same = once[int(batch["game"][row]), int(batch["ply"][row])]
            assert all(np.array_equal(values[row], same[name][0]) for name, values in batch.items())
            assert batch["version"][row] == (-4, 2**40)[batch["to_play"][row]]


def controlled(reply: Any, total: int = 12) -> tuple[list[dict[str, Any]], list[dict[str, Any]], GameContext]:
    """What `train_control` was told, and the games."""
    told: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    context = GameContext(TIC_TAC_TOE, 2, 2, total_games=total, steps_per_version=3, **OPENINGS)

    def act(batch: Any) -> Any:
        versions = set(batch["version"][: batch.count].tolist())
        assert batch.params == {version: f"parameters {version}" for version in versions}
        return idle(batch)

    def control(batch: Any) -> Any:
        told.append(dict(batch))
        return reply(len(told))

    context.on("actor", act)
    context.on("train", lambda batch: None)
    context.on("train_control", control)
    context.on("game_end", lambda end: ends.append(dict(end)))
    context.set_version(params="parameters 0")
    with context:
        while context.run(LONG) is not None:
            pass
    return told, ends, context


@pytest.mark.parametrize("named", [False, True])
def test_a_new_version_is_for_games_that_begin(named: bool) -> None:
    def reply(number: int) -> Any:
        return {"params": f"parameters {number}"} | ({"version": number} if named else {})

    told, ends, context = controlled(reply)
    assert [each["train_batches"] for each in told] == [3 * (n + 1) for n in range(len(told))]
    assert [each["black_version"] for each in told] == list(range(len(told)))
    assert all(each["games_finished"] > 0 and each["rows"] >= 2 * each["train_batches"] for each in told)
    versions = [end["black_version"] for end in sorted(ends, key=lambda end: end["game"])]
    assert versions == sorted(versions)
    assert versions[:2] == [0, 0]
    assert max(versions) >= 2
    assert context.version() == {"black": len(told), "white": len(told)}
    assert len(context._params) <= 3, "those that no game uses are forgotten"


def test_no_new_version() -> None:
    _, ends, context = controlled(lambda number: None, total=4)
    assert {end["black_version"] for end in ends} == {0}
    assert context.version() == {"black": 0, "white": 0}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ([1.0, 2.0], "expected nothing, a version, or a dict with black or white or version or params"),
        ({"weights": 3}, "weights: unknown field in the reply"),
        ({"version": 3, "black": 2}, "version is for both colours"),
    ],
)
def test_replies_that_are_no_version(reply: Any, said: str) -> None:
    with pytest.raises(ReplyError, match=f"train_control: {said}"):
        controlled(lambda number: reply, total=6)


def test_train_control_needs_train() -> None:
    context = waiting()
    context.on("train_control", idle)
    with pytest.raises(
        TengenError, match='train_control is called after batches for train: call on."train", ...., too'
    ):
        context.start()


def test_rows_that_are_not_kept_have_no_minimum() -> None:
    with pytest.raises(TengenError, match="min_rows: only for rows that are kept: set replay_rows, too"):
        GameContext(TIC_TAC_TOE, 4, 2, min_rows=10)
