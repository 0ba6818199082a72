"""What is told about games: versions when they begin, results when they end, rows to learn from."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from tengen.context import GameContext, ReplyError
from tengen.data.records import moves
from tests.helpers import game_recording
from tests.helpers.contexts import OPENINGS, TIC_TAC_TOE, Speaker, idle, played, read, waiting
from tests.helpers.patience import LONG


def versioned(start: Any, total: int = 6) -> tuple[dict[int, set[int]], list[dict[str, Any]]]:
    """Which versions each colour's function saw in each game, as 2 * game + colour; and what was told at the ends."""
    seen: dict[int, set[int]] = defaultdict(set)
    ends: list[dict[str, Any]] = []

    def look(batch: Any) -> Any:
        for row in range(batch.count):
            seen[2 * int(batch["game"][row]) + int(batch["colour"][row])].add(int(batch["version"][row]))
        return idle(batch)

    context = GameContext(TIC_TAC_TOE, 2, 2, total_games=total, **OPENINGS)
    context.on("actor_black", look)
    context.on("actor_white", look)
    context.on("game_end", lambda end: ends.append(dict(end)))
    context.on("game_start", lambda batch: start(context, batch))
    context.set_version(black=3)
    assert context.version() == {"black": 3, "white": 0}
    with context:
        while context.run(LONG) is not None:
            pass
    return seen, ends


def returned(context: GameContext, batch: Any) -> Any:
    return {"black": 100 + batch["game"], "white": 7}


def written(context: GameContext, batch: Any) -> None:
    assert batch["black_version"].tolist() == [3] * len(batch["game"])
    batch["black_version"][:] = 100 + batch["game"]
    batch["white_version"][:] = 7


def test_each_game_has_the_versions_that_it_began_with() -> None:
    for start in (returned, written):
        seen, ends = versioned(start)
        assert len(ends) == 6
        for end in ends:
            assert (end["black_version"], end["white_version"]) == (100 + end["game"], 7)
            assert read(end).players == (f"black {100 + end['game']}", "white 7")
            for colour, version in ((0, 100 + end["game"]), (1, 7)):
                assert seen[2 * end["game"] + colour] <= {version}


def test_set_version_is_for_games_that_begin() -> None:
    def start(context: GameContext, batch: Any) -> None:
        if batch["game"][0] >= 2:
            context.set_version(white=9)
            assert context.version() == {"black": 3, "white": 9}

    _, ends = versioned(start)
    told = {end["game"]: (end["black_version"], end["white_version"]) for end in ends}
    assert told == {game: (3, 9 if game >= 2 else 0) for game in range(6)}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (3, "expected nothing or a dict with black or white, got a int"),
        ({"blck": 3}, "blck: unknown field in the reply, did you mean black"),
        ({"black": 1.5}, "black: expected whole numbers, got float64"),
        ({"white": [1, 2, 3]}, r"white: expected one number or \[2\] of them, got \[3\]"),
    ],
)
def test_versions_that_are_none(reply: Any, said: str) -> None:
    with pytest.raises(ReplyError, match=rf"game_start: {said}.*test_context_games.py, line \d+\)$"):
        versioned(lambda context, batch: reply)


def test_set_version_wants_whole_numbers() -> None:
    context = waiting()
    with pytest.raises(ValueError, match="set_version: white: expected a whole number of 64 bits, got 1.5"):
        context.set_version(white=1.5)  # pyright: ignore[reportArgumentType]
    for wrong in (True, 2**63, -(2**63) - 1):
        with pytest.raises(ValueError, match="set_version: black: expected a whole number of 64 bits"):
            context.set_version(black=wrong)
    context.set_version(black=np.int32(7), white=-1)  # pyright: ignore[reportArgumentType]
    assert context.version() == {"black": 7, "white": -1}


def test_a_game_begins_before_it_is_evaluated_and_ends_afterwards() -> None:
    told: list[tuple[str, int]] = []
    context = GameContext(TIC_TAC_TOE, 4, 2, total_games=10, **OPENINGS)

    def look(batch: Any) -> Any:
        told.extend(("asked", game) for game in batch["game"][: batch.count].tolist())
        return idle(batch)

    context.on("actor_black", look)
    context.on("actor_white", look)
    context.on("game_start", lambda batch: told.extend(("began", game) for game in batch["game"].tolist()))
    context.on("game_end", lambda end: told.append(("ended", end["game"])))
    with context:
        while context.run(LONG) is not None:
            pass
        stats = context.stats()
    assert stats.evaluations == stats.moves == sum(kind == "asked" for kind, _ in told)  # each once
    for game in range(10):
        kinds = [kind for kind, number in told if number == game]
        assert kinds == ["began", *["asked"] * (len(kinds) - 2), "ended"]


def learnt(game: Any, size: int, **options: Any) -> tuple[list[dict[str, np.ndarray]], list[dict[str, Any]]]:
    """What `train` got, and the games."""
    found: list[dict[str, np.ndarray]] = []
    ends: list[dict[str, Any]] = []
    speaker = Speaker(game, (2.0, 1.0))
    context = GameContext(game, 4, size, **options)
    context.on("actor_black", speaker)
    context.on("actor_white", speaker)
    context.on("game_end", lambda end: ends.append(dict(end)))
    context.on("train", lambda batch: found.append({name: values.copy() for name, values in batch.items()}))
    context.set_version(black=4, white=5)
    with context:
        while context.run(LONG) is not None:
            pass
        assert context.stats().train_batches == len(found)
    return found, ends


@pytest.mark.slow
def test_rows_are_those_of_the_games() -> None:
    game = game_recording.make("go", size=3, komi=2.5, max_moves=16)
    options: dict[str, Any] = {"temperature": 1.0, "total_games": 5, "targets": ("score", "opponent_policy")}
    found, ends = learnt(game, 2, **options)
    assert all(len(batch["ply"]) == 2 for batch in found)
    rows = {name: np.concatenate([batch[name] for batch in found]) for name in found[0]}
    searched = sum(end["length"] - end["opening"] for end in ends)
    assert len(rows["ply"]) == searched - searched % 2
    assert (rows["weight"] == 1).all()
    np.testing.assert_allclose(rows["policy"].sum(1), 1, atol=2e-3)
    assert (rows["version"] == 4 + rows["to_play"]).all()
    assert rows["opponent_policy"].shape == rows["policy"].shape
    positions = {end["game"]: list(moves.replay(read(end))) for end in ends}
    results = {end["game"]: end["result"] for end in ends}
    observe, score = (
        game_recording.jit(game.observe),
        game_recording.jit(lambda state: game.final_targets(state)["score"]),
    )
    for row in range(len(rows["ply"])):
        number, ply = int(rows["game"][row]), int(rows["ply"][row])
        state, last = positions[number][ply], positions[number][-1]
        sign = 1 - 2 * int(game.to_play(state))
        seen = observe(state)
        assert np.array_equal(rows["planes"][row], seen.planes)
        np.testing.assert_allclose(rows["scalars"][row], seen.scalars, atol=1e-6)
        assert rows["outcome"][row] @ [1, 0, -1] == sign * results[number]
        assert rows["moves_left"][row] == len(positions[number]) - 1 - ply
        assert rows["score"][row] == sign * float(score(last))


def test_without_a_listener_no_rows_are_kept() -> None:
    run = played(TIC_TAC_TOE, None, idle, idle, games=4, **OPENINGS)
    assert run.context.stats().train_batches == 0
