"""The export: from what a trainer leaves to a network that says how it was made."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flax import nnx

from tengen import files, nets
from tengen.errors import TengenError
from tengen.loop.parts import export
from tengen.loop.parts.export import MADE, PENDING, ExportPart
from tengen.nets import saving
from tengen.run import config_file, networks
from tengen.train.checkpoints import Checkpoints
from tests.helpers.game_recording import make
from tests.helpers.pipelines import Trainer, add_rows, drive, ring_config, shuffled
from tests.helpers.tiny_runs import never

GAME = make("tic_tac_toe")


def name(samples: int, trainer: str = "main") -> str:
    return f"tic_tac_toe-{trainer}-s{samples}-d50"


def net(seed: int = 1, spec: str = "b1c8") -> nets.Network:
    return nets.build(nets.spec(spec), GAME, nnx.Rngs(seed), dtype="float32")


def leave(base: Path, samples: int, trainer: str = "main", role: str = "main", seed: int = 1) -> Path:
    facts = {"run": "tic_tac_toe", "trainer": trainer, "role": role, "samples": samples, "rows": 50, "steps": 3}
    folder = base / "train" / trainer
    export.submit(folder, name(samples, trainer), net(seed), GAME, facts | {"seconds": 1.5, "losses": {"loss": 2.5}})
    return folder / PENDING / name(samples, trainer)


def exporter(base: Path, *overrides: str, trainer: str | None = None) -> tuple[ExportPart, list[str]]:
    said: list[str] = []
    return ExportPart(ring_config(*overrides), base, never, said.append, name=trainer), said


def there(base: Path, folder: str) -> list[str]:
    return sorted(path.name for path in (base / folder).iterdir()) if (base / folder).exists() else []


def test_nothing_to_export(tmp_path: Path) -> None:
    progress = exporter(tmp_path)[0].run_once()
    assert (progress.words, progress.worked) == ("a trainer to end an epoch that is exported", False)
    assert exporter(tmp_path, trainer="big")[0].run_once().words.startswith("trainer big to end")


def test_a_network_with_all_that_it_needs(tmp_path: Path) -> None:
    left = leave(tmp_path, 64)
    (left.parent.parent / "config.yaml").write_text("the trainer's own\n")
    part, _ = exporter(tmp_path)
    progress = part.run_once()
    made = tmp_path / networks.CANDIDATES / name(64)
    assert (progress.words, progress.event) == (f"exported {made}", True)
    assert progress.figures == {"exported": 1, "network": name(64)}
    assert sorted(path.name for path in made.iterdir()) == [MADE, saving.FILE_NAME]
    saved = saving.read(made)
    assert saved.spec == nets.spec("b1c8")
    assert (saved.info["samples"], saved.info["rows"], saved.info["step"], saved.info["seconds"]) == (64, 50, 3, 1.5)
    about = json.loads((made / MADE).read_text())
    assert (about["config"], about["losses"], about["trainer"]) == ("the trainer's own\n", {"loss": 2.5}, "main")
    assert any("jax" in line for line in about["code"])
    for key, values in saving.named(nnx.state(saving.load(made, dtype="float32"))).items():
        np.testing.assert_array_equal(np.asarray(values), np.asarray(saving.named(nnx.state(net()))[key]))
    assert not left.exists()
    assert not part.run_once().worked


def test_the_least_trained_comes_first_and_those_of_one_trainer_alone(tmp_path: Path) -> None:
    for samples in (1000, 64):
        leave(tmp_path, samples)
    leave(tmp_path, 200, "big", "extra")
    part, _ = exporter(tmp_path, trainer="main")
    done = [part.run_once().figures["network"] for _ in range(2)]
    assert done == [name(64), name(1000)]
    assert not part.run_once().worked
    exporter(tmp_path)[0].run_once()
    assert there(tmp_path, networks.EXTRA) == [name(200, "big")]
    assert there(tmp_path, networks.CANDIDATES) == sorted([name(64), name(1000)])


def test_without_a_gate_it_is_accepted_at_once(tmp_path: Path) -> None:
    leave(tmp_path, 64)
    leave(tmp_path, 128)
    leave(tmp_path, 100, "big", "extra")
    part, _ = exporter(tmp_path, "gate.kind=none")
    while part.run_once().worked:
        pass
    assert [(entry.name, entry.number, entry.accepted) for entry in networks.accepted(tmp_path)] == [
        (name(64), 1, True),
        (name(128), 2, True),
    ]
    assert there(tmp_path, networks.EXTRA) == [name(100, "big")]


@pytest.mark.parametrize("folder", [networks.CANDIDATES, networks.ACCEPTED, networks.REJECTED])
def test_one_that_is_known_is_not_exported_again(tmp_path: Path, folder: str) -> None:
    leave(tmp_path, 64)
    exporter(tmp_path)[0].run_once()
    made = tmp_path / networks.CANDIDATES / name(64)
    if folder != networks.CANDIDATES:
        (tmp_path / folder).mkdir()
        made = Path(shutil.move(made, tmp_path / folder))
    before = (made / saving.FILE_NAME).read_bytes()
    left = leave(tmp_path, 64, seed=2)
    part, _ = exporter(tmp_path)
    assert part.run_once().words == f"exported {made}"
    assert (made / saving.FILE_NAME).read_bytes() == before
    assert not left.exists()
    assert [f for f in (networks.CANDIDATES, networks.ACCEPTED, networks.REJECTED) if there(tmp_path, f)] == [folder]


def test_what_is_no_network_is_set_aside(tmp_path: Path) -> None:
    left = leave(tmp_path, 64)
    (left / saving.FILE_NAME).write_bytes(b"spoiled")
    infinite = leave(tmp_path, 100)
    broken = net()
    broken.stem.conv.kernel[...] = broken.stem.conv.kernel[...] * np.float32(1e38)
    shutil.rmtree(infinite)
    export.submit(infinite.parent.parent, infinite.name, broken, GAME, {"role": "main"})
    leave(tmp_path, 200)
    part, said = exporter(tmp_path)
    assert part.run_once().figures["network"] == name(200)
    assert len(said) == 2
    assert all(text.startswith("set aside, since it cannot be exported: ") for text in said)
    assert "no numbers" in said[1]
    assert (left.parent / f"{left.name}.corrupt.txt").exists()
    assert there(tmp_path, networks.CANDIDATES) == [name(200)]
    assert not part.run_once().worked


def test_another_exporter_was_quicker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = leave(tmp_path, 64)
    part, said = exporter(tmp_path)
    load = saving.load

    def late(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(saving, "load", load)
        assert exporter(tmp_path)[0].run_once().worked
        return load(*args, **more)

    monkeypatch.setattr(saving, "load", late)
    part.run_once()
    assert said == []
    assert not left.exists()
    assert there(tmp_path, networks.CANDIDATES) == [name(64)]


def test_both_publish_at_the_same_moment(tmp_path: Path) -> None:
    target = tmp_path / "models" / "one"

    def write(folder: Path) -> None:
        (folder / "mine").write_text("")
        if not target.exists():
            (target / "theirs").mkdir(parents=True)

    exists, asked = Path.exists, []

    class Blind(type(target)):
        """Sees nothing at first."""

        def exists(self, **more: Any) -> bool:
            asked.append(self)
            return len(asked) > 1 and exists(self)

    files.write_folder(Blind(target), write)
    assert [path.name for path in target.iterdir()] == ["theirs"]
    assert [path.name for path in target.parent.iterdir()] == ["one"]


def test_a_disk_that_cannot_be_written_spoils_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = leave(tmp_path, 64)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_bytes", fail)
        with pytest.raises(TengenError, match="No space left"):
            exporter(tmp_path)[0].run_once()
    assert left.exists()
    assert there(tmp_path, networks.CANDIDATES) == []
    assert exporter(tmp_path)[0].run_once().worked


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run whose trainer `main` has a checkpoint in the middle of its first epoch."""
    add_rows(tmp_path, 60, 1)
    shuffled(tmp_path)
    one = Trainer(tmp_path)
    config_file.write(ring_config(), tmp_path / "train" / "main", [])
    one.run()
    assert one.trainer.samples == 48
    one.stop()
    return tmp_path


def test_a_checkpoint_now(trained: Path) -> None:
    export.submit_checkpoint(trained, "main")
    exporter(trained)[0].run_once()
    (made,) = there(trained, networks.CANDIDATES)
    assert made == "tic_tac_toe-main-s48-d60"
    export.submit_checkpoint(trained, "main")
    assert not exporter(trained)[0].run_once().worked, "it is known"


@pytest.mark.parametrize("role", ["extra", "trainonly"])
def test_a_checkpoint_of_a_trainer_that_feeds_nobody(tmp_path: Path, role: Any) -> None:
    add_rows(tmp_path, 60, 1)
    shuffled(tmp_path)
    one = Trainer(tmp_path, role=role)
    config_file.write(ring_config(), tmp_path / "train" / "main", [])
    one.run()
    one.stop()
    export.submit_checkpoint(tmp_path, "main")
    exporter(tmp_path)[0].run_once()
    assert there(tmp_path, networks.EXTRA) == ["tic_tac_toe-main-s48-d60"]
    assert there(tmp_path, networks.CANDIDATES) == []


def test_the_trainer_may_be_writing_meanwhile(trained: Path) -> None:
    """Nothing of its folder is removed or renamed, whatever looks half-written."""
    folder = trained / "train" / "main"
    half = folder / "step_000000099.orbax-checkpoint-tmp"
    half.mkdir()
    spoiled = folder / "step_000000098"
    shutil.copytree(folder / "step_000000003", spoiled)
    for path in spoiled.rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    export.submit_checkpoint(trained, "main")
    assert half.exists()
    assert spoiled.exists()
    assert not list(folder.glob("*.corrupt"))
    with Checkpoints(folder, ring_config().train.checkpoints) as own:
        found = own.restore(Trainer(trained, name="x").trainer.state)
        assert found is not None
        assert found[0].step == 3
    assert not half.exists(), "whereas the trainer cleans up what is its own"


def test_no_such_trainer(trained: Path) -> None:
    with pytest.raises(TengenError, match="train/nobody: no trainer of that name has been here"):
        export.submit_checkpoint(trained, "nobody")
    config_file.write(ring_config(), trained / "train" / "new", [])
    with pytest.raises(TengenError, match="train/new: there is no checkpoint yet"):
        export.submit_checkpoint(trained, "new")


def test_what_a_killed_trainer_left_half_written_is_removed(tmp_path: Path) -> None:
    half, whole = tmp_path / "export" / ".a-main-s1-d1.1234abcd.part", tmp_path / "export" / "a-main-s1-d1"
    for folder in (half, whole):
        folder.mkdir(parents=True)
    export.clean(tmp_path)
    assert (half.exists(), whole.exists()) == (False, True)


def test_it_waits_while_too_many_candidates_wait_for_the_gate(tmp_path: Path) -> None:
    leave(tmp_path, 64)
    leave(tmp_path, 128)
    leave(tmp_path, 64, "big", "extra")
    part, _ = exporter(tmp_path, "gate.most_waiting=1")
    assert drive(part).words == "the gate: 1 candidates wait for it, which is gate.most_waiting"
    assert there(tmp_path, networks.CANDIDATES) == [name(64)]
    assert there(tmp_path, networks.EXTRA) == [name(64, "big")], "these do not go to the gate"
    part.change(ring_config("gate.most_waiting=2"))
    assert drive(part).words.startswith("the gate: 2 candidates wait")
    assert there(tmp_path, networks.CANDIDATES) == [name(128), name(64)]
