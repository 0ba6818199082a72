"""Learning beside games on the cores of a CPU."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import pytest

from tengen.errors import Diverged
from tengen.loop import fused
from tengen.loop.fused import Fused
from tengen.selfplay import boards, driver
from tengen.selfplay.driver import PlayRounds, SelfplayDriver
from tests.helpers.tiny_runs import never, prepared, tiny
from tests.loop.test_fused import check_books, games_on_disk

GAMES = "selfplay.games=12"


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lanes, several calls, and so little to save up that the runs are short."""
    monkeypatch.setattr(boards, "FEWEST_GAMES", 2)
    for module in (boards, driver):
        monkeypatch.setattr(module, "cores", lambda: (0, 1))
    monkeypatch.setattr(driver, "MOST_PHASES", 6)
    monkeypatch.setattr(fused, "_SAVED_UP", 0.1)


def busiest(playing: SelfplayDriver, seconds: float, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many lanes are played at the same time, from now on; each waits so long for another one."""
    selfplay, lock, now, most = playing.selfplay, threading.Lock(), 0, 0
    play, together = selfplay.play, threading.Barrier(2)

    def counted(*arguments: Any) -> Any:
        nonlocal now, most
        with lock:
            now, most = now + 1, max(most, now + 1)
        try:
            together.wait(seconds)
        except threading.BrokenBarrierError:
            together.reset()
        try:
            return jax.block_until_ready(play(*arguments))
        finally:
            with lock:
                now -= 1

    monkeypatch.setattr(selfplay, "play", counted)
    return lambda: most


def test_one_core_is_left_while_something_is_computed_beside_the_games(monkeypatch: pytest.MonkeyPatch) -> None:
    playing = SelfplayDriver(tiny(GAMES))
    assert len(playing.lanes.lanes) == 2
    assert playing.lanes.shares_cores
    rounds, weights = PlayRounds(playing.lanes, 7, jax.random.key(0)), playing.no_weights()
    rounds.play(weights)
    compiled = playing.selfplay.play
    most = busiest(playing, 0.2, monkeypatch)
    released = threading.Event()

    def beside(done: Callable[[], bool]) -> None:
        assert not done()
        while not done():
            released.wait(0.01)

    played = rounds.play(weights, beside=beside)
    assert most() == 1, "the lanes are played one after the other"
    assert len(played) == 2
    monkeypatch.setattr(playing.selfplay, "play", compiled)
    most = busiest(playing, 60, monkeypatch)
    rounds.play(weights)
    assert most() == 2


def test_a_run_learns_beside_its_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn, steps = Fused._learn_beside, []

    def watched(loop: Fused, stop: Any) -> None:
        before = loop.trainer.step
        learn(loop, stop)
        steps.append(loop.trainer.step - before)

    monkeypatch.setattr(Fused, "_learn_beside", watched)
    with prepared(tmp_path, GAMES, "goal.rows=600") as loop:
        loop.run(never)
        check_books(loop, tmp_path)
        assert loop.trainer.affordable == 0, "at the end nothing is saved up"
    assert sum(steps) > 0


def test_what_is_saved_up_is_less_than_may_be_owed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_SAVED_UP", 1000)
    owed = 4 * 16  # four batches
    with prepared(tmp_path, GAMES, f"train.largest_debt={owed}", "goal.rows=600") as loop:
        loop.run(never)
        assert loop.trainer.step > 20


@pytest.mark.parametrize("error", [Diverged.at(3, "it was so"), ValueError("in the network of a user")])
def test_if_learning_fails_beside_the_games_these_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:

    def failing(loop: Fused, stop: Any) -> None:
        raise error

    monkeypatch.setattr(Fused, "_learn_beside", failing)
    with prepared(tmp_path, GAMES, "goal.rows=100000") as loop:
        with pytest.raises(type(error)):
            loop.run(never)
        assert loop.counts.rows == games_on_disk(tmp_path)[0] > 0


def test_one_lane_or_a_run_without_games_saves_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with prepared(tmp_path, "goal.rows=60") as loop:
        assert not loop.components.lanes.shares_cores
        loop.run(never)
        assert loop._saved_up == 0
