"""The life of a training, with a trainer that only counts."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tengen.config.settings.train import CheckpointSettings
from tengen.errors import Diverged, TengenError
from tengen.train.base import BaseTrainer
from tengen.train.checkpoints import Checkpoint, Checkpoints
from tengen.train.session import BatchCutter, TrainingSession

SETTINGS = CheckpointSettings(interval=3, keep=10, long_term_interval=None)


class Counter(BaseTrainer[None]):
    """Every step adds one to its state. `failed` steps, up to now, were not finite."""

    def __init__(self) -> None:
        super().__init__(None)
        self.state, self.failed = jnp.float32(0), 0

    @property
    def step(self) -> int:
        return int(self.state)

    def _train(self, steps: int) -> dict[str, float]:
        self.state = self.state + steps
        return {"loss": 1.0 / self.step}

    def checkpoint(self, extras: dict[str, Any] | None = None) -> Checkpoint:
        return Checkpoint(self.step, {"parameters": self.state}, {"extras": extras or {}})

    def resume(self, checkpoints: Checkpoints) -> tuple[dict[str, Any], tuple[str, ...]] | None:
        found = checkpoints.restore({"parameters": self.state})
        if found is None:
            return None
        self.state = jnp.asarray(found[0].state["parameters"])
        return found[0].about["extras"], found[1]


def opened(folder: Path, said: list[str] | None = None) -> TrainingSession[Counter]:
    return TrainingSession(Counter(), folder, SETTINGS, [].append if said is None else said.append)


def test_a_new_training_has_no_extras_and_nothing_to_save(tmp_path: Path) -> None:
    session = opened(tmp_path)
    assert (session.extras, session.started, session.due) == (None, False, False)
    assert not session.checkpoint({})
    assert session.checkpoints.steps() == ()
    session.close()


def test_it_goes_on_from_the_last_checkpoint_and_learns_the_rest_again(tmp_path: Path) -> None:
    session = opened(tmp_path)
    assert session.learn(2) == 2
    assert session.figures == {"loss": 0.5, "step": 2, "steps": 2}
    assert not session.due
    session.learn(1)
    assert session.due
    assert session.checkpoint({"epoch": 1})
    assert not session.checkpoint({"epoch": 1}), "nothing was learned since"
    session.learn(2)
    session.close()  # without a checkpoint, as after a kill
    again = opened(tmp_path)
    assert (again.trainer.step, again.extras) == (3, {"epoch": 1})
    assert not again.checkpoint({}), "it is saved already"
    again.close()


def test_the_first_call_compiles_and_tells_nothing_about_speed(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.learn(1)
    assert (session.started, session.seconds, session.steps_per_second) == (True, 0.0, None)
    session.learn(4)
    assert session.seconds > 0
    assert session.steps_per_second == pytest.approx(4 / session.seconds)
    before = session.figures
    assert session.learn(5, lambda steps: {}) == 0, "there was nothing to learn from"
    assert session.figures == before
    session.close()


def test_damaged_checkpoints_are_named_and_alone_are_no_reason_to_forget(tmp_path: Path) -> None:
    session = opened(tmp_path)
    for _ in range(2):
        session.learn(1)
        session.checkpoint({})
    session.close()
    for file in (tmp_path / "step_000000002").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:10])
    said: list[str] = []
    again = opened(tmp_path, said)
    assert again.trainer.step == 1
    assert [text.startswith("a damaged checkpoint: step_000000002 is corrupt") for text in said] == [True]
    again.close()
    (tmp_path / "step_000000001").rename(tmp_path / "step_000000001.corrupt")
    with pytest.raises(TengenError, match=r"no good checkpoint is left \(step_000000001.corrupt, .*; repair one, or"):
        opened(tmp_path)


def test_dead_ends_are_set_aside_when_it_diverges(tmp_path: Path) -> None:
    said: list[str] = []
    session = opened(tmp_path, said)
    for _ in range(4):
        session.learn(1)
        session.checkpoint({})
    session.trainer.failed = 2  # since step 2 no step was finite
    with pytest.raises(Diverged), session.watching():
        raise Diverged.at(4, "it was so")
    assert [text.split()[0] for text in said] == ["step_000000002", "step_000000003", "step_000000004"]
    assert session.checkpoints.steps() == (1,)
    session.close()


def test_a_checkpoint_that_could_not_be_written_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(tmp_path)
    session.learn(1)
    session.checkpoint({})
    session.wait()
    session.learn(1)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(session.checkpoints._manager, "save", full)
        with pytest.raises(TengenError, match="could not be written: .*No space left"):
            session.checkpoint({})
    assert session.saved == 1
    assert session.checkpoint({})
    session.close()
    assert opened(tmp_path).trainer.step == 2


def rows(*numbers: int) -> dict[str, np.ndarray]:
    return {"ply": np.array(numbers), "twice": 2 * np.array(numbers)}


def test_blocks_are_whole_batches_and_nothing_is_lost_between_calls() -> None:
    pieces = iter([rows(0, 1, 2, 3, 4, 5), {}, rows(6, 7, 8), None])
    cutter = BatchCutter(2, lambda: next(pieces))
    assert [block["ply"].tolist() for block in cutter.blocks(2)] == [[0, 1, 2, 3]]
    last = [{name: values.tolist() for name, values in block.items()} for block in cutter.blocks(10)]
    assert last == [{"ply": [4, 5], "twice": [8, 10]}, {"ply": [6, 7], "twice": [12, 14]}]


def test_interrupted_it_waits_for_nothing() -> None:
    answers = iter([False, False, True])
    cutter = BatchCutter(2, lambda: {})
    assert list(cutter.blocks(5, lambda: next(answers))) == []
