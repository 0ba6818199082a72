"""What parts say while there is nothing to do, and that no clock but their own matters to them."""

import os
import random
from pathlib import Path

import pytest

from tengen.data.shuffle.folders import clean, newest
from tengen.data.store.store import Store
from tengen.loop.parts.export import ExportPart
from tengen.run import networks, part_status
from tengen.run.part import waiting
from tests.helpers import spoiled_files
from tests.helpers.patience import eventually
from tests.helpers.pipeline_data import Gate, put
from tests.helpers.spoiled_files import add_chunk, fill, shuffler, trainer, until_it_waits
from tests.helpers.tiny_runs import never


def test_each_part_says_what_it_waits_for_and_how_far_that_is(tmp_path: Path) -> None:
    shuffling = shuffler(tmp_path, [])
    first = shuffling.run_once()
    assert (first.worked, first.words, first.done, first.of) == (False, "0 of 40 rows until the first shuffle", 0, 40)
    learning = trainer(tmp_path, [])
    try:
        assert (told := learning.run_once()).words == "the first shuffle"
        assert not told.worked
        fill(tmp_path, 5)
        shuffling.run_once()
        add_chunk(tmp_path, 7, seed=50)
        second = shuffling.run_once()
        assert second.words == "7 of 20 new rows until the next shuffle"
        assert (second.done, second.of) == (7, 20)
        until_it_waits(learning)
        assert "newer shuffle" in (words := learning.run_once().words) or "more rows" in words
    finally:
        learning.close()
    export = ExportPart(spoiled_files.ring_config(), tmp_path / "empty", never, print)
    assert export.run_once().words == "a trainer to end an epoch that is exported"
    assert Gate(tmp_path / "empty").run().words.startswith("no candidate to test")


def test_since_when_is_kept_while_only_the_numbers_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(part_status, "_BEAT", 0.01)
    monkeypatch.setattr(part_status.time, "monotonic", lambda: now)
    with part_status.StatusWriter(tmp_path, "shuffle", "shuffle") as notice:
        notice.show(waiting("7 of 20 new rows until the next shuffle", 7, 20))
        now = 115.0
        notice.show(waiting("9 of 20 new rows until the next shuffle", 9, 20))
        assert notice.seconds == 15
        (seen,) = eventually(lambda: [seen for seen in part_status.look(tmp_path) if seen.done == 9])
        assert (seen.waiting, seen.of) == (True, 20)
        assert seen.seconds >= 15
        notice.show(waiting("something else"))
        assert notice.seconds == 0


@pytest.mark.parametrize("seed", range(3))
def test_times_of_files_mean_nothing(tmp_path: Path, saved: list[Path], seed: int) -> None:
    """Machines whose clocks are years apart write the same run."""
    fill(tmp_path)
    part = shuffler(tmp_path, [])
    for more in range(4):
        assert part.run_once().worked
        add_chunk(tmp_path, seed=100 + more)
    for number in (1, 2, 3):
        put(tmp_path, "models", 100 * number, saved[0], accepted=True, number=4 - number)
    put(tmp_path, "candidates", 900, saved[0])
    put(tmp_path, "candidates", 800, saved[0])

    def seen() -> tuple[object, ...]:
        made = newest(tmp_path)
        assert made is not None
        return (
            [chunk.path.name for chunk in Store(tmp_path / "selfplay").chunks()],
            (made.name, made.total_rows),
            [entry.name for entry in networks.accepted(tmp_path)],
            [entry.name for entry in networks.candidates(tmp_path)],
            shuffler(tmp_path, []).run_once().words.partition(":")[0],
            clean(tmp_path, spoiled_files.ring_config().shuffle),
        )

    until_it_waits(part)
    before = seen()
    chance = random.Random(seed)
    for path in sorted(tmp_path.rglob("*")):
        moment = chance.uniform(0, 4e9)
        os.utime(path, (moment, moment))
    assert seen() == before
