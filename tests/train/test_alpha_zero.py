"""The trainer of the main job: fed from a ring, held back by its bucket, and the same after a restart."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tengen import games, nets, train
from tengen.data.format.rows import RowFormat
from tengen.data.store import buffer
from tengen.errors import Diverged, OptionError, TengenError
from tengen.games.core import Game
from tengen.train.checkpoints import Checkpoint, Checkpoints
from tests.helpers.train_samples import BATCH, QUICK, random_rows, tiny_settings

GAME = games.make("tic_tac_toe")
SPEC = nets.spec("b1c4-nogp")


def trainer(seed: int = 0, **changes: Any) -> train.AlphaZeroTrainer:
    config = train.AlphaZeroConfig(GAME, SPEC, tiny_settings(**changes), seed=seed, dtype="float32")
    return train.AlphaZeroTrainer(config, compiler_options=QUICK)


@pytest.fixture(scope="module")
def data() -> tuple[buffer.RowBuffer, int]:
    rows = {name: jnp.asarray(values) for name, values in random_rows(GAME, 40).items()}
    return buffer.append(buffer.make(RowFormat.of(GAME), 64), rows, 40), 30


def test_it_learns_no_more_than_the_rows_allow(data: Any) -> None:
    one = trainer()
    assert one.train(5) == {"step": 0, "steps": 0}
    one.feed(data, 10)  # 2 samples per row, 8 in a batch
    assert one.affordable == 2
    figures = one.train(100)
    assert (figures["steps"], figures["samples"], figures["rows"], figures["bucket"]) == (2, 16, 10, 4)
    assert all(isinstance(value, int | float) and math.isfinite(value) for value in figures.values())
    assert figures["learning_rate"] == pytest.approx(1e-2 * (0.25 + 0.5) / 2)
    assert one.train(100)["steps"] == 0
    one.feed(data, 2)
    assert (one.train(1)["steps"], one.affordable, one.samples) == (1, 0, 3 * BATCH)


def test_a_restart_changes_nothing(data: Any, tmp_path: Path, same: Any) -> None:
    straight = trainer(schedule=train.ScheduleSettings(kind="plateau", warmup=2, patience=1, better=1.0))
    settings = straight.config.train
    with Checkpoints(tmp_path, settings.checkpoints) as checkpoints:
        straight.feed(data, 100)
        for _ in range(3):
            straight.train(2)
        checkpoints.save(straight.checkpoint({"chunk": 17}))
        figures = straight.train(4)
        # Another seed: everything that matters comes from the checkpoint.
        again = trainer(seed=5, schedule=settings.schedule)
        assert again.resume(checkpoints) == ({"chunk": 17}, ())
    assert (again.step, again.samples, again.plateau.scale) == (6, 48, pytest.approx(0.3 * 0.3))
    again.feed(data, 0)
    assert again.train(4) == figures
    same(again.state, straight.state)
    assert again.bucket == straight.bucket
    assert again.plateau == straight.plateau


def test_steps_in_pieces_are_the_same_steps_and_one_report(data: Any, same: Any) -> None:
    schedule = train.ScheduleSettings(kind="plateau", warmup=2, patience=1, better=1.0)
    whole, pieces = trainer(schedule=schedule), trainer(schedule=schedule)
    for one in (whole, pieces):
        one.feed(data, 30)  # 7 steps
    expected = whole.train(7)
    assert pieces.pieces(100, 3, lambda: False) == pytest.approx(expected)
    same(pieces.state, whole.state)
    assert (pieces.bucket, pieces.step) == (whole.bucket, 7)
    assert (pieces.plateau.waited, pieces.plateau.scale) == (whole.plateau.waited, whole.plateau.scale)
    assert pieces.pieces(5, 3, lambda: False) == {"step": 7, "steps": 0}, "there is nothing to learn"
    pieces.feed(data, 30)
    assert pieces.pieces(100, 2, lambda: True)["steps"] == 2, "one piece, although it should stop"


def test_a_plateau_is_over_with_its_schedule() -> None:
    one = trainer(schedule=train.ScheduleSettings(kind="plateau"))
    one.plateau = replace(one.plateau, scale=0.09)
    rates = []
    for kind in ("plateau", "constant"):
        one.change(replace(one.config.train, schedule=train.ScheduleSettings(kind=kind)))
        one._scale_rate()
        rates.append(float(one.state.rate_scale))
    assert rates == pytest.approx([0.09, 1.0])


def test_a_schedule_of_ones_own(data: Any) -> None:
    """Another factor of the learning rate, which checkpoints keep."""
    one, other = trainer(), trainer()
    one.schedule = train.Schedule.of("linear", 0.5, 0.0, 10)
    one.feed(data, 100)
    assert one.train(1)["learning_rate"] == pytest.approx(1e-2 * 0.25 * 0.5)
    other.restore(one.checkpoint())
    assert other.schedule == one.schedule
    one.schedule = lambda step: float("nan")
    with pytest.raises(OptionError, match="schedule: expected a finite number at step 1, got nan"):
        one.train(1)


def test_starting_where_there_is_nothing(tmp_path: Path) -> None:
    with Checkpoints(tmp_path, tiny_settings().checkpoints) as checkpoints:
        assert trainer().resume(checkpoints) is None


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    one = trainer()
    with pytest.raises(TengenError, match="the checkpoint of step 3 belongs to another kind of training"):
        one.restore(Checkpoint(3, one.state, {"bucket": 1}))
    about = one.checkpoint().about
    for name, key, value, words in (
        ("bucket", "level", -1, "bucket.level: expected a number of at least 0, got -1"),
        ("plateau", "scale", 2, "plateau.scale: expected a number from 0 to 1, got 2"),
    ):
        with pytest.raises(TengenError, match=words):
            one.restore(Checkpoint(3, one.state, {**about, name: {**about[name], key: value}}))
    with Checkpoints(tmp_path, tiny_settings().checkpoints) as checkpoints:
        checkpoints.save(one.checkpoint())
        other = trainer(optimizer=train.OptimizerSettings(kind="sgd"))
        with pytest.raises(TengenError, match="of another network or optimiser than this one"):
            other.resume(checkpoints)


def test_a_loss_that_is_no_number_stops_it(data: Any) -> None:
    one = trainer()
    rows, window = data
    bad = {**rows.rows, "outcome": rows.rows["outcome"] * jnp.nan}
    one.feed((rows._replace(rows=bad), window), 100)
    with pytest.raises(Diverged, match=r"training diverged at step 3: .* NaN or infinite in each of the last 3 steps"):
        one.train(3)


def test_one_bad_batch_is_no_divergence(data: Any) -> None:
    rows, window = data
    bad = rows._replace(rows={**rows.rows, "outcome": rows.rows["outcome"] * jnp.nan}), window
    one = trainer()
    one.feed(data, 200)
    for part, steps, failed in ((data, 2, 0), (bad, 2, 2), (data, 1, 0)):
        one.feed(part, 0)
        one.train(steps)
        assert one.failed == failed
    one.feed(bad, 0)
    assert set(one.train(2)) == {"skipped", "learning_rate", "samples", "rows", "bucket", "step", "steps"}
    with pytest.raises(Diverged, match="at step 8: .* NaN or infinite in each of the last 3 steps"):
        one.train(1)
    assert one.failed == 3


def test_losses_are_means_over_the_steps_that_were_not_skipped(monkeypatch: pytest.MonkeyPatch, data: Any) -> None:
    one = trainer()
    one.feed(data, 100)
    figures = {"loss": jnp.float32(0.5), "skipped": jnp.float32(0.75), "learning_rate": jnp.float32(0.1)}
    monkeypatch.setattr(one.learner, "many", lambda state, *more: (state, figures))  # one of four steps was good
    found = one.train(4)
    assert (found["loss"], found["skipped"]) == (2.0, 0.75)
    assert found["learning_rate"] == pytest.approx(0.1)


def test_validation_that_gives_no_number_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one = trainer()
    monkeypatch.setattr(one.learner, "judge", lambda state, batch: {"loss": float("nan"), "rows": 8.0})
    with pytest.raises(Diverged, match="training diverged at step 0: the loss of the averaged network"):
        one.validate([{"ply": np.zeros(BATCH)}])


def test_a_lower_learning_rate_takes_effect_after_a_restart(data: Any, tmp_path: Path) -> None:
    one = trainer()
    one.feed(data, 100)
    one.train(5)
    with Checkpoints(tmp_path, one.config.train.checkpoints) as checkpoints:
        checkpoints.save(one.checkpoint())
        lower = trainer(optimizer=train.OptimizerSettings(learning_rate=1e-4, clip=None, weight_decay=0.5))
        lower.resume(checkpoints)
    assert lower.step == 5
    assert float(lower.learner.learning_rate(lower.state)) == pytest.approx(1e-4)


def test_the_averaged_network_is_what_plays(data: Any, game: Game) -> None:
    del game
    one = trainer()
    one.feed(data, 100)
    one.train(5)
    averaged, newest = one.network(), one.network(average=False)
    one.train(1)
    kernels = [np.asarray(net.stem.conv.kernel[...]) for net in (averaged, newest)]
    assert not np.allclose(*kernels)
    planes, scalars = jnp.ones((2, *GAME.planes_shape), bool), jnp.zeros((2, GAME.num_scalars))
    assert np.isfinite(np.asarray(jax.jit(lambda p, s: averaged(p, s).policy)(planes, scalars))).all()
