"""The trainer: what it learns from, how much, what survives its end, and what it hands on."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flax import nnx

from tengen.config import load
from tengen.data.format import chunk
from tengen.data.shuffle.folders import newest
from tengen.errors import TengenError
from tengen.loop.fused import Fused
from tengen.loop.parts.export import PENDING, ExportPart
from tengen.nets import saving
from tengen.run import config_file, metrics, networks
from tengen.train import session
from tests.helpers.pipeline_data import put
from tests.helpers.pipelines import BATCH, Trainer, add_rows, ring_config, shuffled
from tests.helpers.tiny_runs import Listener


@pytest.fixture
def single(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step in each piece of work."""

    class One:
        units, calls = 1, 1

        def after(self, *_: object) -> "One":
            return self

    monkeypatch.setattr(session, "Pace", lambda *_, **__: One())


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A run of 192 rows in six files to train with, and 40 to validate with."""
    add_rows(tmp_path, 100, 1)
    add_rows(tmp_path, 92, 2)
    add_rows(tmp_path, 40, 3, "validation")
    shuffled(tmp_path)
    return tmp_path


def epochs(base: Path, name: str = "main") -> list[dict[str, Any]]:
    return [line for line in metrics.read(base / "train" / name / metrics.NAME).lines if line["kind"] == "epoch"]


def left(base: Path, name: str = "main") -> list[str]:
    folder = base / "train" / name / PENDING
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def all_rows(base: Path) -> list[list[int]]:
    """The games of all rows to train with in the newest shuffle."""
    return [game.tolist() for file in newest(base).train for game in chunk.read_chunk(file.path)[0]["game"]]


def used(base: Path, learned: list[tuple[int, int]]) -> list[int]:
    """For each of the newest shuffle's files, how many of its rows were learned from."""
    return [
        sum(learned.count((int(a), int(b))) for a, b in chunk.read_chunk(file.path)[0]["game"])
        for file in newest(base).train
    ]


def test_it_waits_for_a_shuffle_and_says_so(tmp_path: Path) -> None:
    progress = Trainer(tmp_path).run()
    assert (progress.words, progress.worked, progress.ended) == ("the first shuffle", False, False)
    assert progress.figures["samples"] == 0


def test_damaged_checkpoints_alone_are_no_reason_to_forget(base: Path) -> None:
    (base / "train" / "main" / "step_000000040.corrupt").mkdir(parents=True)
    with pytest.raises(TengenError, match=r"no good checkpoint is left \(step_000000040.corrupt\)"):
        Trainer(base)


def test_every_row_to_train_with_once_and_none_to_validate_with(base: Path) -> None:
    one = Trainer(base)
    progress = one.run()
    assert sorted(one.learned) == sorted([(1, n) for n in range(100)] + [(2, n) for n in range(92)])
    assert one.trainer.samples == 192
    assert progress.words.startswith("a newer shuffle than 00000000-")
    assert progress.words.endswith(", whose files have all been learned from")
    assert not progress.worked


def test_epochs_are_validated_and_written_down(base: Path) -> None:
    one = Trainer(base)
    one.run()
    lines = epochs(base)
    assert [(line["epoch"], line["steps"], line["samples"]) for line in lines] == [
        (1, 4, 64),
        (2, 8, 128),
        (3, 12, 192),
    ]
    for line in lines:
        assert line["rows"] == 232
        assert line["losses"]["loss"] > 0
        assert 0 < line["validation"]["loss"] != line["losses"]["loss"]
        assert line["shuffle"] == newest(base).name
    # The last validation can be made again by hand: 40 rows, in batches of 16.
    (file,) = newest(base).validation[:1]
    rows = [chunk.read_chunk(file.path)[0] for file in newest(base).validation]
    whole = {name: np.concatenate([each[name] for each in rows]) for name in rows[0]}
    batches = [{name: values[at : at + BATCH] for name, values in whole.items()} for at in (0, 16)]
    last = {name: np.concatenate([values[32:], np.zeros_like(values[:8])]) for name, values in whole.items()}
    expected = one.trainer.validate([*batches, last])
    assert lines[-1]["validation"]["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    assert file.rows + newest(base).validation[1].rows == 40


def test_no_more_is_validated_with_than_is_wanted(base: Path) -> None:
    one = Trainer(base, "ring.validation_rows=0")
    one.run()
    assert [line["validation"] for line in epochs(base)] == [{}, {}, {}]


def test_the_bucket_is_never_exceeded(tmp_path: Path, single: None) -> None:
    add_rows(tmp_path, 192, 1)
    shuffled(tmp_path)
    one = Trainer(tmp_path, "train.samples_per_row=0.25")
    progress = one.run()
    assert one.trainer.samples == 48, "192 rows allow 48 samples: three steps"
    assert progress.words == "64 more rows in a shuffle: 0 of the 16 samples of a step are allowed"
    assert (progress.done, progress.of, progress.share) == (0, 16, 0)
    add_rows(tmp_path, 32, 2)
    shuffled(tmp_path)
    progress = one.run()
    assert one.trainer.samples == 48
    assert progress.words == "32 more rows in a shuffle: 8 of the 16 samples of a step are allowed"
    assert progress.share == 0.5
    assert one.trainer.bucket.rows == 224
    add_rows(tmp_path, 40, 3)
    shuffled(tmp_path)
    one.run()
    assert one.trainer.samples == 64
    assert epochs(tmp_path)[-1]["epoch"] == 1, "the epoch went on over three shuffles"


def test_a_trainer_that_comes_late_has_a_limited_debt(base: Path) -> None:
    one = Trainer(base, "train.largest_debt=100")
    one.run()
    assert one.trainer.samples == 96


def test_ending_instead_of_waiting(base: Path) -> None:
    one = Trainer(base, end_when_limited=True)
    progress = one.run()
    assert progress.ended
    assert progress.words.startswith("nothing to learn now, which would take a newer shuffle than ")
    assert one.trainer.samples == 192


def test_so_many_epochs_of_this_process(base: Path) -> None:
    one = Trainer(base, max_epochs=2)
    assert one.run().words.startswith("2 epochs done")
    one.stop()
    again = Trainer(base, max_epochs=1)
    assert again.run().words.startswith("1 epoch done")
    assert again.trainer.samples == 192
    assert len(epochs(base)) == 3


@pytest.mark.slow
def test_it_ends_at_the_goal_of_steps_and_leaves_its_network(base: Path) -> None:
    one = Trainer(base, "goal.steps=6", end_at_goal=True)
    progress = one.run()
    assert (one.trainer.step, progress.ended) == (6, True)
    assert progress.words.startswith("the goal of 6 steps is reached: epoch 2, 32 of 64 samples")
    one.stop()
    assert left(base)[-1].endswith("-s96-d232")
    again = Trainer(base, "goal.steps=6", end_at_goal=True)
    assert again.run(1).ended
    again.stop()
    driven = Trainer(base, "goal.steps=6")
    progress = driven.run(1)
    assert (driven.trainer.step, progress.worked, progress.ended) == (6, False, False), "its driver ends it"
    driven.stop()


def test_several_passes_over_a_shuffle(base: Path, single: None) -> None:
    one = Trainer(base, "ring.passes_per_shuffle=2", "train.samples_per_row=8")
    one.run(calls=14)  # in the middle of the second pass
    one.stop()
    again = Trainer(base, "ring.passes_per_shuffle=2", "train.samples_per_row=8")
    assert again.run().words.startswith("a newer shuffle than ")
    assert again.trainer.samples == pytest.approx(2 * 192, abs=32), "a file that was begun before the stop counts"
    most = max(Counter(one.learned + again.learned).values())
    assert most <= 2 * max(Counter(map(tuple, all_rows(base))).values())


def test_it_takes_changed_settings_over(base: Path, single: None) -> None:
    one = Trainer(base)
    config_file.write(ring_config(), one.part.folder, ["tengen 1"])
    one.run(calls=1)
    rate = one.part.figures["learning_rate"]
    one.part.change(ring_config("train.lr_scale=0.25", "train.samples_per_row=3"))
    one.run(calls=1)
    assert one.part.figures["learning_rate"] == pytest.approx(0.25 * 2 * rate), "the second step of the warm-up"
    assert load(one.part.folder).train.lr_scale == 0.25, "an export of its checkpoint says how it was made"
    assert one.trainer.config.train.samples_per_row == 3
    one.stop()


def test_nothing_is_left_for_the_export_while_too_many_candidates_wait(base: Path) -> None:
    one = Trainer(base, "gate.most_waiting=1", "gate.kind=share", max_epochs=3)
    put(base, networks.CANDIDATES, 1, None)
    one.run()
    assert left(base) == ["tic_tac_toe-main-s64-d232"], "one waits to be exported; later ones would only pile up"
    assert [line["network"] for line in epochs(base)] == ["tic_tac_toe-main-s64-d232", None, None]
    assert one.said[-1].endswith("; not exported, because 1 candidates wait for the gate")


def test_stopped_and_started_it_learns_no_file_twice(base: Path, single: None) -> None:
    one = Trainer(base)
    one.run(calls=3)  # 48 rows: of two files
    one.stop()
    again = Trainer(base)
    assert again.said == ["going on from step 3"]
    again.run()
    assert not set(one.learned) & set(again.learned)
    assert used(base, one.learned) == [32, 16, 0, 0, 0, 0]
    assert used(base, again.learned) == [0, 0, 32, 32, 32, 32], "the rest of a file that was begun is let go"
    assert again.trainer.samples == 48 + 128


def test_killed_and_started_it_goes_on_from_the_checkpoint(base: Path, single: None) -> None:
    one = Trainer(base, "train.checkpoints.interval=2")
    one.run(calls=3)  # 48 rows, of which the last 16 are in no checkpoint
    one.kill()
    again = Trainer(base, "train.checkpoints.interval=2")
    assert again.said == ["going on from step 2"]
    assert again.trainer.samples == 32
    again.run()
    assert not set(one.learned[:32]) & set(again.learned)
    assert set(one.learned[32:]) <= set(again.learned), "it was forgotten, so it is learned again"
    assert again.trainer.samples == 192
    assert len(epochs(base)) == 3


def test_mean_losses_of_an_epoch_that_two_processes_learned(base: Path, single: None) -> None:
    one = Trainer(base)
    one.run(calls=2)
    one.stop()
    again = Trainer(base)
    again.run(calls=3)  # two steps, and the end of the epoch
    (line,) = epochs(base)
    assert line["steps"] == 4
    assert line["losses"]["loss"] == pytest.approx(again.part.figures["loss"], rel=0.3), "not half of that"


@pytest.mark.slow
@pytest.mark.parametrize("interval", [4, 2, 1000])
def test_an_epoch_ends_once_whenever_checkpoints_are_due(base: Path, single: None, interval: int) -> None:
    one = Trainer(base, f"train.checkpoints.interval={interval}")
    one.run(calls=5)  # four steps, and the end of the epoch
    one.kill()
    again = Trainer(base, f"train.checkpoints.interval={interval}")
    again.run()
    assert [line["epoch"] for line in epochs(base)] == [1, 2, 3]
    assert all(line["losses"] for line in epochs(base))


def test_files_are_known_by_content_wherever_they_lie(base: Path) -> None:
    one = Trainer(base)
    one.run()
    one.stop()
    old = newest(base)
    copy = old.folder.with_name("00000001-0123abcd")
    shutil.copytree(old.folder, copy)
    index = json.loads((copy / "index.json").read_text())
    (copy / "index.json").write_text(json.dumps({**index, "total_rows": 10_000}))
    assert newest(base).name == copy.name
    again = Trainer(base)
    progress = again.run()
    assert again.learned == []
    assert progress.words == f"a newer shuffle than {copy.name}, whose files have all been learned from"
    assert again.trainer.affordable > 0, "it is not for want of rows"


def test_the_newest_shuffle_is_taken_at_the_next_epoch(base: Path, single: None) -> None:
    one = Trainer(base)
    one.run(calls=2)
    add_rows(base, 64, 4)
    second = shuffled(base)
    one.run(calls=2)
    assert not any(seed == 4 for seed, _ in one.learned), "the epoch ends with the shuffle that it began with"
    one.run(calls=3)
    assert epochs(base)[0]["shuffle"] != second.name
    one.run()
    assert epochs(base)[1]["shuffle"] == second.name
    assert any(seed == 4 for seed, _ in one.learned)


def test_nobody_removes_what_is_being_read(base: Path, single: None) -> None:
    one = Trainer(base)
    one.run(calls=1)
    first = newest(base)
    for seed in (4, 5):
        add_rows(base, 64, seed)
        shuffled(base, "shuffle.keep_shuffles=1")
    assert first.folder.exists()
    one.run(calls=5)  # the epoch ends, and the next one begins with the newest
    add_rows(base, 64, 6)
    shuffled(base, "shuffle.keep_shuffles=1")
    assert not first.folder.exists()
    one.run()
    assert {seed for seed, _ in one.learned} == {1, 2, 4, 5, 6}


@pytest.mark.parametrize("which", [0, 2, 5])
def test_a_spoiled_file_is_named_and_passed_over(base: Path, single: None, which: int) -> None:
    shuffle = newest(base)
    path = shuffle.train[which].path
    path.write_bytes(path.read_bytes()[:-100])
    one = Trainer(base)
    progress = one.run()
    good = [0 if place == which else 32 for place in range(6)]
    path.write_bytes(b"")
    assert [said for said in one.said if said.startswith("skipped: ")]
    assert str(path) in next(said for said in one.said if said.startswith("skipped: "))
    assert len(one.learned) == len(set(one.learned)) == sum(good), "no row twice"
    assert "whose files have all been learned from" in progress.words
    one.stop()
    again = Trainer(base)
    again.run()
    assert again.learned == []


def test_after_a_spoiled_file_the_others_are_not_mixed_up(base: Path, single: None) -> None:
    path = newest(base).train[0].path
    good = path.read_bytes()
    path.write_bytes(b"spoiled")
    one = Trainer(base)
    one.run(calls=1)  # 16 rows, of the second file
    one.stop()
    path.write_bytes(good)
    assert used(base, one.learned) == [0, 16, 0, 0, 0, 0]
    again = Trainer(base)
    again.run()
    assert used(base, again.learned)[1] == 0


def test_all_files_are_spoiled(base: Path) -> None:
    for file in newest(base).train:
        file.path.write_bytes(b"")
    one = Trainer(base)
    assert not one.run().worked, "it waits instead of trying for ever"
    assert one.trainer.samples == 0


def test_too_few_rows_for_a_step(tmp_path: Path) -> None:
    add_rows(tmp_path, 60, 1, "validation")
    add_rows(tmp_path, 10, 2)
    found = shuffled(tmp_path)
    progress = Trainer(tmp_path).run()
    assert progress.words == f"a larger shuffle: {found.name} has 10 new rows, of 16 for a step"


def test_rows_that_cannot_teach_this_network(base: Path) -> None:
    with pytest.raises(TengenError, match="net.heads of the run's self-play and shuffle must name at least"):
        Trainer(base, "net.heads=[opponent_policy]").run()


def test_what_is_handed_on_is_the_averaged_network(base: Path) -> None:
    one = Trainer(base)
    one.run()
    names = [f"tic_tac_toe-main-s{samples}-d232" for samples in (64, 128, 192)]
    assert sorted(left(base)) == sorted(names)
    folder = base / "train" / "main" / PENDING / names[-1]
    info = saving.read(folder).info
    assert (info["role"], info["epoch"], info["samples"], info["rows"]) == ("main", 3, 192, 232)
    found = saving.load(folder, dtype="float32")
    expected = saving.named(nnx.state(one.trainer.network()))
    newest_weights = saving.named(nnx.state(one.trainer.network(average=False)))
    for key, values in saving.named(nnx.state(found)).items():
        np.testing.assert_array_equal(np.asarray(values), np.asarray(expected[key]))
    assert any((np.asarray(expected[key]) != np.asarray(newest_weights[key])).any() for key in expected)


def test_epochs_between_networks(base: Path) -> None:
    Trainer(base, "ring.epochs_per_export=2").run()
    assert left(base) == ["tic_tac_toe-main-s128-d232"]


@pytest.mark.parametrize(
    ("role", "folder"), [("main", networks.CANDIDATES), ("extra", networks.EXTRA), ("trainonly", None)]
)
def test_roles(base: Path, role: Any, folder: str | None) -> None:
    one = Trainer(base, name="other", role=role, max_epochs=1)
    one.run()
    assert left(base, "other") == ([] if folder is None else ["tic_tac_toe-other-s64-d232"])
    export = ExportPart(ring_config(), base, lambda: False, [].append)
    assert export.run_once().worked == (folder is not None)
    there = {name for name in (networks.CANDIDATES, networks.EXTRA, networks.ACCEPTED) if (base / name).exists()}
    assert there == ({folder} if folder else set())
    assert one.part.export_now() is False, "nothing was learned since"


def test_handing_on_in_the_middle_of_an_epoch(base: Path, single: None) -> None:
    one = Trainer(base)
    one.run(calls=2)
    assert one.part.export_now()
    assert left(base) == ["tic_tac_toe-main-s32-d232"]
    assert not one.part.export_now()
    one.stop()
    again = Trainer(base)
    assert not again.part.export_now()
    only = Trainer(base, name="b", role="trainonly")
    only.run(calls=2)
    assert not only.part.export_now()


@pytest.mark.slow
def test_trainers_of_different_sizes_in_one_run(base: Path) -> None:
    small, large = Trainer(base), Trainer(base, "net.name=b2c8", name="large", role="extra")
    small.run(calls=2)
    large.run()
    small.run()
    assert small.learned == large.learned, "both have all rows"
    assert len(left(base)) == len(left(base, "large")) == 3
    sizes = [sum(leaf.size for leaf in one.trainer.state.parameters.values()) for one in (small, large)]
    assert sizes[0] < sizes[1]
    large.stop()
    assert Trainer(base, "net.name=b2c8", name="large", role="extra").trainer.samples == 192
    with pytest.raises(TengenError, match="of another network"):
        Trainer(base, name="large")


def test_progress_says_how_far_the_epoch_is(base: Path, single: None) -> None:
    one = Trainer(base)
    shown: list[Any] = []
    one.part.show = shown.append
    progress = one.run(calls=2)
    assert (progress.done, progress.of, progress.share) == (32, 64, 0.5)
    assert "epoch 1, 32 of 64 samples, loss " in progress.words
    assert progress.figures["steps"] == 2
    assert progress.figures["bucket"] == 232 - 32
    one.run(calls=3)
    assert any(each.words.startswith("validating") for each in shown)
    assert one.said[-1].startswith("epoch 1: loss ")
    assert "; tic_tac_toe-main-s64-d232 waits to be exported" in one.said[-1]
    assert ", on rows that were not learned from " in one.said[-1]


def test_the_fused_loop_does_not_take_over(base: Path) -> None:
    one = Trainer(base, max_epochs=1)
    one.run()
    one.stop()
    with (
        pytest.raises(TengenError, match="was trained by a part of a pipeline; go on with --mode sync or async"),
        Fused(ring_config(), base, Listener()) as fused,
    ):
        fused.prepare()
