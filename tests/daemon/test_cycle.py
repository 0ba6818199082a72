"""The life of a run: waiting, training, exporting, stopping, going wrong, and going on after a restart."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tengen import jax_setup, nets
from tengen.daemon import cycle as cycle_module
from tengen.daemon.cycle import DaemonCycle
from tengen.daemon.service import DaemonReporter
from tengen.daemon.session import DaemonSession
from tengen.errors import TengenError
from tengen.interop.lc0 import weights_file
from tengen.loop.parts import export
from tengen.protocol import messages
from tengen.protocol.messages import decode, encode
from tengen.run import config_file
from tengen.train.checkpoints import Checkpoints
from tests.data.format.test_tars import fill as lc0_tar
from tests.helpers.compilations import Compilations
from tests.helpers.daemon_data import Told, chunk, chunks, overrides, running
from tests.helpers.patience import LONG, eventually

START = messages.StartTraining("tic_tac_toe")


compilations = Compilations()


def stage(core: DaemonCycle) -> str:
    return core.now.stage


def test_a_device_that_is_not_there_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_setup, "device_problem", lambda: "there is no device")
    with running(tmp_path) as (core, told):
        core.post(START)
        eventually(lambda: told.errors == ["there is no device"], lambda: told.errors)
        eventually(lambda: stage(core) == "IDLE")
        assert core.now.words == "it could not be started"


def test_waits_trains_exports_and_begins_again_without_compiling(tmp_path: Path) -> None:
    with running(tmp_path, "daemon.steps_per_network=4", "daemon.chunks_per_network=8") as (core, told):
        core.post(START)
        eventually(lambda: stage(core) == "WAITING_FOR_DATA" and core.session)
        chunks(tmp_path, 0, 2)
        eventually(lambda: core.session.new_chunks == 2, told.lines)
        assert told.networks == []
        chunks(tmp_path, 2, 6)
        eventually(lambda: told.networks, told.lines)
        eventually(lambda: stage(core) == "WAITING_FOR_DATA")
        assert core.session.place.networks == 1
        assert core.session.trainer.step == 4
        before = core.session.trainer.learner._step._cache_size()
        compiled = compilations.count
        assert before == 1
        assert (core.session.place.anchor, core.session.new_chunks) == (8, 0)

        chunks(tmp_path, 8, 8)
        eventually(lambda: len(told.networks) == 2, told.lines)
        assert core.session.trainer.learner._step._cache_size() == 1
        assert compilations.count == compiled
        assert core.session.trainer.step == 8
    assert told.errors == []
    for name in told.networks:
        net = nets.saving.load(tmp_path / "models" / name)
        assert net.spec == nets.spec("b1c8")
    first, second = told.of(messages.NetworkExported)
    assert (first.step, first.samples, second.step, second.samples) == (4, 64, 8, 128)
    assert np.isfinite(first.validation_loss)


def test_a_start_that_does_not_wait_for_data(tmp_path: Path) -> None:
    chunks(tmp_path, 0, 2)
    with running(tmp_path, "daemon.validation=0.0") as (core, told):
        core.post(messages.StartTrainingImmediately())
        eventually(lambda: told.errors)
        assert "start_training first" in told.errors[0]
        core.post(START)
        core.post(messages.StartTrainingImmediately())
        eventually(lambda: told.networks, told.lines)
        eventually(lambda: stage(core) == "WAITING_FOR_DATA")  # this time only
        assert len(told.networks) == 1


def test_stopped_in_the_middle_and_exported_and_started_again(tmp_path: Path) -> None:
    chunks(tmp_path, 0, 6)
    with running(tmp_path, "daemon.steps_per_network=100000", "train.checkpoints.interval=100000") as (core, told):
        core.post(START)
        eventually(lambda: core.session and core.session.place.step > 3, told.lines)
        core.post(START)
        eventually(lambda: told.errors)
        assert "stop_training first" in told.errors[0]
        core.post(messages.StopTraining())
        eventually(lambda: stage(core) == "IDLE")
        step = core.session.trainer.step
        assert core.session._training.checkpoints.steps()[-1] == step
        core.post(messages.ExportNow())
        core.post(messages.ExportNow())
        eventually(lambda: any("exported already" in line for line in told.lines))
        eventually(lambda: told.networks)
        assert [each.step for each in told.of(messages.NetworkExported)] == [step]
        assert core.session.place.networks == 0
        eventually(lambda: stage(core) == "IDLE")
        session = core.session
        core.post(START)
        eventually(lambda: session.place.step > step)
        assert core.session is session
    steps = session.trainer.step
    # A restart goes on with the same network, and does not wait for the same chunks again.
    longer = (f"daemon.steps_per_network={steps + 2}", "train.checkpoints.interval=100000")
    with running(tmp_path, *longer) as (core, told):
        core.post(START)
        eventually(lambda: told.networks, told.lines)
        assert told.of(messages.NetworkExported)[0].step == steps + 2


def test_the_anchor_survives_a_restart(tmp_path: Path) -> None:
    chunks(tmp_path, 0, 7)
    with running(tmp_path, "daemon.chunks_per_network=7") as (core, told):
        core.post(START)
        eventually(lambda: told.networks and stage(core) == "WAITING_FOR_DATA", told.lines)
        chunks(tmp_path, 7, 1)
        eventually(lambda: core.session.new_chunks == 1)
    with running(tmp_path, "daemon.chunks_per_network=7") as (core, told):
        core.post(START)
        eventually(lambda: core.session and core.session.chunks == 8)
        assert core.session.place.anchor == 7
        chunks(tmp_path, 8, 5)
        eventually(lambda: core.session.new_chunks == 6, told.lines)
        assert told.networks == []
        assert core.session.place.networks == 1


def test_killed_after_the_checkpoint_the_network_is_exported_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks(tmp_path, 0, 6)
    monkeypatch.setattr(DaemonSession, "export", lambda self: (_ for _ in ()).throw(RuntimeError("killed")))
    with running(tmp_path, "daemon.chunks_per_network=6") as (core, told):
        core.post(START)
        eventually(lambda: stage(core) == "ERROR", told.lines)
        assert told.of(messages.Error)[-1] == messages.Error("RuntimeError: killed", "exporting", False)
    monkeypatch.undo()
    for _ in range(2):
        with running(tmp_path, "daemon.chunks_per_network=6") as (core, told):
            core.post(START)
            eventually(lambda: stage(core) == "WAITING_FOR_DATA" and core.session, told.lines)
            eventually(lambda: core.session.place.networks == 1 and core.session.place.pending == "")
            assert core.session.trainer.step == 5
    assert len(list((tmp_path / "models").iterdir())) == 1


def test_files_that_are_no_chunks_are_counted_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "selfplay"
    chunks(tmp_path, 0, 4)
    (folder / "empty.npz").write_bytes(b"")
    (folder / "text.npz").write_text("no chunk")
    good = chunk(folder, 90).read_bytes()
    (folder / "000090.npz").unlink()
    (folder / "half.npz").write_bytes(good[: len(good) // 2])
    with running(tmp_path) as (core, told):
        core.post(START)
        eventually(lambda: told.networks, told.lines)
        eventually(lambda: sum("skipped, not a chunk" in line for line in told.lines) == 3, told.lines)
        status = DaemonReporter(core).status()
    assert status.loader.rejected == {"corrupt": 3, "foreign": 0, "unreadable": 0}
    assert sorted(name for name in ("empty", "text", "half") for text in status.loader.last_rejected if name in text)
    assert sum(status.loader.chunks.values()) == 4
    assert told.errors == []


@pytest.mark.parametrize("path", ["no_such_config", "/nowhere/at/all.yaml", ""])
def test_a_bad_configuration_is_told_and_it_goes_on(tmp_path: Path, path: str) -> None:
    with running(tmp_path) as (core, told):
        core.post(messages.StartTraining(path))
        core.post(messages.StopTraining())
        core.post(messages.ExportNow())
        eventually(lambda: len(told.errors) == 2)
        assert [each.where for each in told.of(messages.Error)] == ["start_training", "export_now"]
        assert stage(core) == "IDLE"


def test_an_error_in_training_is_told_and_a_new_start_mends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks(tmp_path, 0, 6)
    monkeypatch.setattr(DaemonSession, "begin", lambda self: 1 / 0)
    with running(tmp_path) as (core, told):
        core.post(START)
        eventually(lambda: stage(core) == "ERROR")
        assert told.errors == ["ZeroDivisionError: division by zero"]
        monkeypatch.undo()
        core.post(messages.StartTrainingImmediately())
        eventually(lambda: told.networks, told.lines)


@pytest.mark.slow
def test_a_network_that_diverged_is_not_exported_nor_its_checkpoint_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise TengenError("the network gives no numbers")

    once = "daemon.chunks_per_network=6", "train.checkpoints.interval=100"
    chunks(tmp_path, 0, 6)
    monkeypatch.setattr(export, "check", refuse)
    with running(tmp_path, *once) as (core, told):
        core.post(START)
        eventually(lambda: stage(core) == "ERROR", told.lines)
        (error,) = told.errors
        assert error.startswith("training diverged at step ")
        assert "the network gives no numbers\nThere is no checkpoint from before that" in error
        assert "--set train.optimizer.learning_rate=0.0002, and start the training again" in error
        assert not list(tmp_path.glob("models/*"))
        assert not list(tmp_path.glob("train/main/step_*"))
        monkeypatch.undo()
        core.post(messages.StartTrainingImmediately())
        eventually(lambda: told.networks, told.lines)
        eventually(lambda: stage(core) == "WAITING_FOR_DATA")
    # A checkpoint that says what is to be exported, as a daemon that was killed leaves it, is not tried for ever.
    (saved,) = tmp_path.glob("train/main/step_*")
    for folder in tmp_path.glob("models/*"):
        shutil.rmtree(folder)
    monkeypatch.setattr(export, "check", refuse)
    with running(tmp_path, *once) as (core, told):
        core.post(START)
        eventually(lambda: stage(core) == "ERROR", told.lines)
        aside = f"{saved.name} is corrupt (training diverged at step 5: the network gives no numbers)"
        assert any(aside in str(line) for line in told.lines)
        core.post(START)
        eventually(lambda: len(told.errors) == 2)
        assert "no good checkpoint is left" in told.errors[1]


def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = [TengenError("x: No space left on device")] * 3
    waits, writes = Checkpoints.wait, export.write

    def wait(self: Checkpoints) -> None:
        if full and self.steps() != ():
            raise full.pop()
        waits(self)

    def write(*arguments: Any) -> None:
        if full:
            raise full.pop()
        writes(*arguments)

    monkeypatch.setattr(cycle_module, "_FULL", 0.01)
    monkeypatch.setattr(Checkpoints, "wait", wait)
    monkeypatch.setattr(export, "write", write)
    chunks(tmp_path, 0, 6)
    with running(tmp_path, "daemon.chunks_per_network=6") as (core, told):
        core.post(START)
        eventually(lambda: told.networks, told.lines)
        eventually(lambda: stage(core) == "WAITING_FOR_DATA")
    assert [(each.where, each.goes_on) for each in told.of(messages.Error)] == [("disk", True)] * 3
    assert len(told.networks) == len(list((tmp_path / "models").iterdir())) == 1


def test_old_networks_make_room(tmp_path: Path) -> None:
    with running(tmp_path, "daemon.keep_networks=2") as (core, told):
        core.post(START)
        for number in range(4):
            chunks(tmp_path, 3 * number, 3)
            eventually(lambda: len(told.networks) > number, told.lines)
        eventually(lambda: stage(core) == "WAITING_FOR_DATA" and core.session.new_chunks == 0)
        kept = {path.name for path in (tmp_path / "models").iterdir()}
    assert kept == set(told.networks[-2:])


def test_statuses_tell_all_of_it(tmp_path: Path) -> None:
    told = Told()
    core = DaemonCycle(
        told.messages.append, told.log, tmp_path, overrides("daemon.test=0.4", "daemon.chunks_per_network=12")
    )
    reporter = DaemonReporter(core)
    idle = reporter.status()
    assert (idle.schedule.stage, idle.loader, idle.training, idle.networks) == ("IDLE", None, None, ())
    chunks(tmp_path, 0, 12)
    core.start()
    core.post(START)
    eventually(lambda: told.networks and stage(core) == "WAITING_FOR_DATA", told.lines)
    status: Any = reporter.status()
    core.post(messages.Shutdown())
    assert core.ended.wait(LONG)
    assert decode(encode(status)) == status
    names = [(each.split, each.name) for each in status.loader.stages]
    per_split = ["read", "unpack", "mix", "batch", "consumer"]
    assert names == [
        ("", "watch"),
        *(("train", name) for name in per_split),
        *(("validation", name) for name in per_split),
        *(("test", name) for name in per_split),
    ]
    assert [each.queue for each in status.loader.stages[:6]] == [
        "files", "chunks", "blocks of rows", "blocks of rows", "batches", "",
    ]  # fmt: skip
    assert sum(status.loader.chunks.values()) == 12
    assert sum(status.loader.rows.values()) == 12 * 40
    assert all(0 <= each.load <= 1 and each.last_second >= 0 for each in status.loader.stages)
    assert status.schedule.networks_done >= 1
    assert status.schedule.chunks_to_wait_for == 12
    assert status.schedule.previous_cycle_seconds >= status.schedule.previous_training_seconds > 0
    assert status.training.steps == 5
    assert status.training.total_steps % 5 == 0
    assert {"policy", "value"} <= set(status.training.losses)
    assert status.training.loss > 0
    assert status.training.learning_rate > 0
    assert status.training.validation["loss"] == status.networks[0].validation_loss
    assert np.isfinite(status.training.test["loss"])
    assert status.networks[0].name == told.networks[-1]


def test_settings_that_change_while_it_trains(tmp_path: Path) -> None:
    with running(tmp_path, "daemon.steps_per_network=100000") as (core, told):
        core.post(START)
        chunks(tmp_path, 0, 4)
        eventually(lambda: core.session and core.session.place.step > 1, told.lines)
        config_file.change(tmp_path, ["train.lr_scale=0.5", "daemon.steps_per_network=3", "daemon.loader.readers=1"])
        eventually(lambda: told.networks, told.lines)
        assert core.session.trainer.config.train.lr_scale == 0.5
        assert core.session.trainer.learner._step._cache_size() == 1, "nothing is compiled again"
        assert "info: from now on train.lr_scale: 1.0 -> 0.5" in told.lines
    assert told.errors == []


@pytest.mark.slow
def test_chunks_of_lc0_become_networks_for_lc0(tmp_path: Path) -> None:
    lc0_tar(tmp_path / "selfplay", 8)
    (tmp_path / "selfplay" / "training.999.gz").write_bytes(b"no chunk")
    focus = "daemon.loader.diff_focus={slope: 1, least: 0.5, power: 1, q_weight: 6, policy_scale: 3.5}"
    small = ("net.name=b1c8-se-lc0", "net.heads=[moves_left]", "selfplay.stages=[]")
    with running(tmp_path, *small, focus) as (core, told):
        core.post(messages.StartTraining("chess"))
        eventually(lambda: told.networks, told.lines)
    assert told.errors == []
    name = told.networks[0]
    assert any("training.999.gz: records of version" in line for line in told.lines)
    assert weights_file.read(tmp_path / "models" / name / "lc0.pb.gz")["training_params"] == {"training_steps": 5}


@pytest.mark.parametrize(
    ("chosen", "usual", "ended"), [(False, True, False), (None, True, True), (None, False, False), (True, False, True)]
)
def test_a_closed_input_ends_it_as_the_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: bool | None, usual: bool, ended: bool
) -> None:
    """Also if the input is closed before the configuration has been read, which takes a while."""
    core = DaemonCycle(lambda message: None, lambda level, text: None, tmp_path, ())
    settings = SimpleNamespace(end_with_input=chosen)
    monkeypatch.setattr(core, "_start", lambda path: setattr(core, "session", SimpleNamespace(settings=settings)))
    monkeypatch.setattr(core, "_save", lambda: None)
    core.post(messages.StartTraining("mine.yaml"))
    core.input_closed(usual)
    for _ in range(2):
        core._handle(core._inbox.get_nowait())
    assert core._over == ended
