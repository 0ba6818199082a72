"""Files that are cut short, empty, of another game, of the future, or pickles: no part stumbles over them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen import files
from tengen.data.shuffle.folders import newest
from tengen.loop.parts import export
from tengen.loop.parts.export import ExportPart
from tengen.loop.parts.selfplay import SelfplayPart
from tengen.nets import saving
from tengen.run import networks, part_status
from tengen.run.part import Progress
from tests.helpers import spoiled_files
from tests.helpers.pipeline_data import Gate, names, network, put
from tests.helpers.run_audit import audit
from tests.helpers.spoiled_files import CORRUPT, FOREIGN, add_chunk, fill, shuffler, trainer, until_it_waits
from tests.helpers.tiny_runs import never

Spoil = Callable[[Path], None]


def worker(base: Path, said: list[str], *overrides: str) -> SelfplayPart:
    return SelfplayPart(spoiled_files.ring_config(*overrides), base, never, said.append)


def games_of(paths: Any) -> set[tuple[int, int]]:
    """Which games the rows of some files are of."""
    found: set[tuple[int, int]] = set()
    for path in paths:
        with np.load(path) as opened:
            found |= {(int(a), int(b)) for a, b in opened["game"]}
    return found


@pytest.mark.parametrize("spoil", [*CORRUPT, *FOREIGN], ids=lambda spoil: spoil.__name__)
def test_the_shuffle_passes_over_spoiled_chunks(tmp_path: Path, spoil: Spoil) -> None:
    fill(tmp_path)
    bad = add_chunk(tmp_path, seed=99)
    spoil(bad)
    said: list[str] = []
    part = shuffler(tmp_path, said)
    done = part.run_once()
    assert done.words.startswith("shuffled"), done.words
    made = newest(tmp_path)
    assert made is not None
    reasons = " ".join(made.index["not_used"])
    assert bad.name in reasons
    used = games_of(file.path for file in (*made.train, *made.validation))
    assert {seed for seed, _ in used} == set(range(10)), "all good chunks are used, and no other"
    aside = bad.with_name(bad.name + ".corrupt")
    if spoil in CORRUPT:
        assert not bad.exists()
        assert aside.exists()
        assert (bad.parent / f"{aside.name}.txt").read_text().strip()
    else:
        assert bad.exists()
        assert not aside.exists()
    assert len([text for text in said if bad.name in text]) == 1, said
    assert until_it_waits(part, most=2).words.startswith("0 of 20 new rows")
    add_chunk(tmp_path, seed=100)
    assert part.run_once().worked
    if spoil in CORRUPT:
        assert audit(tmp_path).problems == []


def test_the_shuffle_passes_over_what_is_no_chunk(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "selfplay" / "stray.npz").write_bytes(b"no folder of a network")
    (tmp_path / "selfplay" / "random" / "notes.txt").write_text("of somebody")
    (tmp_path / "selfplay" / "random" / "0000000077-a.npz").mkdir()
    (tmp_path / "selfplay" / "random" / "0000000078-a.npz").symlink_to(tmp_path / "nowhere")
    (tmp_path / "selfplay" / "random" / ".0000000079-a.npz.12345678.part").write_bytes(b"half")
    said: list[str] = []
    assert shuffler(tmp_path, said).run_once().worked
    assert [text for text in said if "0000000077" in text]
    made = newest(tmp_path)
    assert made is not None
    assert made.total_rows == 200


GARBAGE: dict[str, Any] = {
    "empty": b"",
    "no JSON": b"\x00\xff{",
    "a list": b"[]",
    "a number": b"17",
    "deep": b"[" * 100_000,
    "future": {"schema": 99},
    "no files": {"train": None},
    "no paths": {"train": [{"path": 5, "rows": 1, "bytes": 1, "sha256": ""}]},
    "rows in words": {"train": [{"path": "train/00000.npz", "rows": "many", "bytes": 1, "sha256": ""}]},
    "negative rows": {"train": [{"path": "train/00000.npz", "rows": -5, "bytes": 1, "sha256": "a"}]},
    "total in words": {"total_rows": "many"},
    "total below zero": {"total_rows": -1},
    "no total": {"total_rows": None},
    "window in words": {"window": ["a", "b"]},
    "no format": {"format": {}},
    "another game": {"game": "connect_four"},
}


@pytest.mark.slow
@pytest.mark.parametrize("what", GARBAGE)
def test_a_spoiled_index_stops_neither_shuffle_nor_trainer(tmp_path: Path, what: str) -> None:
    fill(tmp_path)
    said: list[str] = []
    part = shuffler(tmp_path, said)
    part.run_once()
    good = newest(tmp_path)
    assert good is not None
    bad = tmp_path / "shuffled" / "00000009-01234567"
    shutil.copytree(good.folder, bad)
    spoiled = GARBAGE[what]
    data = spoiled if isinstance(spoiled, bytes) else json.dumps({**good.index, **spoiled}).encode()
    (bad / "index.json").write_bytes(data)
    learning = trainer(tmp_path, said)
    try:
        assert learning._open_newest() is None, "the shuffle before it is learned from"
        assert learning._files is not None
        assert learning._files.shuffle.name == good.name
        assert any(bad.name in text for text in said), said
        before = len(said)
        learning._release()
        learning._open_newest()
        assert len(said) == before, "it is said once"
        add_chunk(tmp_path, seed=100)
        assert part.run_once().worked, "and the next shuffle is made as ever"
        assert learning._open_newest() is None
        assert learning._files.shuffle.name == newest(tmp_path, spoiled_files.IDENTITY).name != good.name
    finally:
        learning.close()


def test_a_truncated_shuffled_file_is_passed_over_and_no_other_is_learned_from_twice(tmp_path: Path) -> None:
    fill(tmp_path)
    said: list[str] = []
    shuffler(tmp_path, said).run_once()
    made = newest(tmp_path)
    assert made is not None
    assert len(made.train) >= 4
    first, *_ = made.train
    spoiled_files.truncated(first.path)
    for file in made.validation:
        spoiled_files.halved(file.path)
    part = trainer(tmp_path, said)
    try:
        waited = until_it_waits(part)
        assert waited.words.startswith(f"a newer shuffle than {made.name}"), waited.words
        assert part._state.used == tuple(file.sha256 for file in made.train), "each once, in order"
        good = sum(file.rows for file in made.train[1:])
        assert part.trainer.samples == good // 16 * 16
        assert part._state.epoch, "an epoch has ended, and was validated"
        reasons = [text for text in said if text.startswith("skipped")]
        assert sorted(str(file.path) in "".join(reasons) for file in (first, *made.validation)) == [True] * len(reasons)
        part.flush()
    finally:
        part.close()


def test_files_that_are_all_spoiled_are_given_up_and_the_next_shuffle_is_learned_from(tmp_path: Path) -> None:
    fill(tmp_path)
    said: list[str] = []
    shuffling = shuffler(tmp_path, said)
    shuffling.run_once()
    made = newest(tmp_path)
    assert made is not None
    spoilers = (*CORRUPT, *FOREIGN, Path.unlink)
    for number, file in enumerate((*made.train, *made.validation)):
        spoilers[number % len(spoilers)](file.path)
    part = trainer(tmp_path, said)
    try:
        words = until_it_waits(part, most=3).words
        assert words.startswith(f"a newer shuffle than {made.name}"), words
        assert part.trainer.step == 0
        assert len(part._state.used) == len(made.train)
        for seed in range(100, 110):
            add_chunk(tmp_path, seed=seed)
        shuffling.run_once()
        until_it_waits(part)
        assert part.trainer.step > 0
    finally:
        part.close()


def test_a_damaged_checkpoint_is_set_aside_and_what_is_no_checkpoint_is_left_alone(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    said: list[str] = []
    shuffler(tmp_path, said).run_once()
    part = trainer(tmp_path, said, "train.checkpoints.interval=1")
    until_it_waits(part)
    part.flush()
    part.close()
    steps = sorted((tmp_path / "train" / "main").glob("step_*"))
    assert len(steps) == 2
    for file in (steps[-1] / "state").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    (tmp_path / "train" / "main" / "step_notes").mkdir()
    (tmp_path / "train" / "main" / "step_000009999").write_text("a file")
    log = tmp_path / "train" / "main" / "metrics.jsonl"
    log.write_bytes(log.read_bytes() + b"\xff\xfe garbage\n")
    said.clear()
    part = trainer(tmp_path, said)
    try:
        assert part.trainer.step == int(steps[0].name[5:])
        assert any("damaged checkpoint" in text and steps[-1].name in text for text in said)
        until_it_waits(part)
    finally:
        part.close()


def another_network_schema(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"schema\\": 1', b'"schema\\": 9'))


def not_finite(file: Path) -> None:
    data = file.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    file.write_bytes(data[:header] + b"\xff" * (len(data) - header))


def gone(file: Path) -> None:
    file.unlink()


NETWORKS = (
    *(
        spoiled_files.truncated,
        spoiled_files.halved,
        spoiled_files.empty,
        spoiled_files.zeros,
        spoiled_files.only_a_pickle,
    ),
    *(another_network_schema, not_finite, gone),
)


@pytest.mark.parametrize("spoil", NETWORKS, ids=lambda spoil: spoil.__name__)
def test_the_export_sets_spoiled_weights_aside_and_goes_on(tmp_path: Path, saved: list[Path], spoil: Spoil) -> None:
    left = tmp_path / "train" / "main" / export.PENDING
    for samples in (100, 200):
        shutil.copytree(saved[0].parent, left / networks.name_of("run", "main", samples, 300))
    spoil(left / "run-main-s100-d300" / saving.FILE_NAME)
    (left / "notes.txt").write_text("of somebody")
    (left / "empty").mkdir()
    said: list[str] = []
    part = ExportPart(spoiled_files.ring_config(), tmp_path, never, said.append)
    assert part.run_once().words.endswith("run-main-s200-d300")
    assert not part.run_once().worked
    assert names(tmp_path, "candidates") == ["run-main-s200-d300"]
    assert len(said) == 1
    assert said[0].startswith("set aside, since it cannot be exported:")
    aside = left / "run-main-s100-d300.corrupt"
    assert aside.is_dir()
    assert aside.with_name(f"{aside.name}.txt").read_text().strip()
    again = ExportPart(spoiled_files.ring_config(), tmp_path, never, said.append)
    assert not again.run_once().worked
    assert len(said) == 1


@pytest.mark.parametrize("spoil", NETWORKS, ids=lambda spoil: spoil.__name__)
def test_the_gate_rejects_a_spoiled_candidate_with_the_reason(tmp_path: Path, saved: list[Path], spoil: Spoil) -> None:
    bad = put(tmp_path, "candidates", 100, saved[0])
    put(tmp_path, "candidates", 200, saved[1])
    (tmp_path / "candidates" / "stray.txt").write_text("of somebody")
    spoil(bad.path / saving.FILE_NAME)
    gate = Gate(tmp_path)
    gate.run()
    assert names(tmp_path, "rejected") == [bad.name]
    assert "it cannot be used" in networks.verdict(tmp_path / "rejected" / bad.name)["why"]
    assert names(tmp_path, "models") == ["tic_tac_toe-main-s200-d400"]


def test_a_candidate_for_another_game_is_rejected(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    foreign = network(tmp_path_factory.mktemp("foreign"), 0, game="connect_four")
    put(tmp_path, "candidates", 100, foreign)
    gate = Gate(tmp_path)
    gate.run()
    assert names(tmp_path, "models") == []
    assert len(names(tmp_path, "rejected")) == 1


def test_two_who_make_the_same_folder_at_once(tmp_path: Path) -> None:
    def other(folder: Path) -> None:
        (folder / "mine").write_text("whole")
        (tmp_path / "models" / "x").mkdir()
        (tmp_path / "models" / "x" / "theirs").write_text("whole")

    (tmp_path / "models").mkdir()
    exists, asked = Path.exists, []

    def late(path: Path, **more: Any) -> bool:  # looked just before the other one was done
        asked.append(path)
        return exists(path, **more) if len(asked) > 1 else False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "exists", late)
        files.write_folder(tmp_path / "models" / "x", other)
    assert names(tmp_path, "models") == ["x"]
    assert names(tmp_path / "models", "x") == ["theirs"]


def test_a_broken_folder_in_the_way_costs_no_candidate(tmp_path: Path, saved: list[Path]) -> None:
    good = put(tmp_path, "candidates", 100, saved[0])
    put(tmp_path, "models", 100, None)  # a folder of that name without a network
    gate = Gate(tmp_path)
    gate.run()
    assert (tmp_path / "models" / good.name / saving.FILE_NAME).exists()
    assert names(tmp_path, "candidates") == []


@pytest.mark.parametrize("spoil", NETWORKS, ids=lambda spoil: spoil.__name__)
def test_self_play_passes_over_a_spoiled_network(tmp_path: Path, saved: list[Path], spoil: Spoil) -> None:
    good = put(tmp_path, "models", 100, saved[0], accepted=True, number=1)
    bad = put(tmp_path, "models", 200, saved[1], accepted=True, number=2)
    (tmp_path / "models" / "stray").mkdir()
    spoil(bad.path / saving.FILE_NAME)
    said: list[str] = []
    part = worker(tmp_path, said)
    try:
        for _ in range(3):
            part.look_now()
            part._look()
        assert part.network == good.name
        if spoil is not gone:
            assert len([text for text in said if bad.name in text]) == 1
    finally:
        part.close()


@pytest.mark.parametrize("verdict", [b"", b"[]", b"{", b'{"schema": 9}', b'{"schema": 1, "accepted": "yes"}'])
def test_a_spoiled_verdict_counts_as_none(tmp_path: Path, saved: list[Path], verdict: bytes) -> None:
    entry = put(tmp_path, "candidates", 100, saved[0])
    (entry.path / networks.VERDICT).write_bytes(verdict)
    Gate(tmp_path).run()
    assert names(tmp_path, "models") == [entry.name]
    (tmp_path / "models" / entry.name / networks.VERDICT).write_bytes(verdict)
    assert networks.newest(tmp_path).name == entry.name


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"17", b"\xff\x00", b'{"schema": 99}', b'{"schema": 1}', b'{"schema": 1, "figures": [3], "done": {}}'],
)
def test_spoiled_notices_hide_no_good_one(tmp_path: Path, data: bytes) -> None:
    with part_status.StatusWriter(tmp_path, "gate", "gate") as notice:
        notice.show(Progress("judging"))
        (tmp_path / "parts" / "train-main.json").write_bytes(data)
        (tmp_path / "parts" / "export-all.json").mkdir()
        (tmp_path / "parts" / "stray.txt").write_bytes(b"of somebody")
        (tmp_path / "parts" / "gate-x~zz~1~.lease").write_bytes(b"")
        notice._write()
        seen = part_status.look(tmp_path)
        assert [each.part for each in seen] == ["gate"]
        assert seen[0].alive
