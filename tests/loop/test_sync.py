"""The ring in one process: its rounds, its goals, and going on where it stopped."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tengen.data.shuffle.folders import newest
from tengen.data.store.store import Store
from tengen.loop.sync import Sync
from tengen.run import config_file, metrics, networks
from tengen.run.part import Progress, waiting
from tests.helpers.pipeline_data import GATE
from tests.helpers.tiny_runs import Listener, after, never, tiny

SETTINGS = (
    *GATE,
    "gate.share=0.01",
    "ring.samples_per_epoch=128",
    "ring.selfplay_rows=160",  # more than an epoch: training goes over them once
    "ring.poll_seconds=0.01",
    "shuffle.validation_share=0",
    "rating.minutes=1000",
    "rating.earlier=0",
)


class Ring(Sync):
    """That remembers the stages."""

    def __init__(self, base: Path, *overrides: str) -> None:
        chosen = {text.partition("=")[0]: text for text in (*SETTINGS, *overrides)}
        self.listener, self.stages = Listener(), []
        super().__init__(tiny(*chosen.values()), base, self.listener)

    def _note(self, stage: str, progress: Progress) -> None:
        if self.stages[-1:] != [stage]:
            self.stages.append(stage)
        super()._note(stage, progress)


@pytest.fixture
def ring() -> Iterator[Callable[..., Ring]]:
    made: list[Ring] = []

    def make(base: Path, *overrides: str) -> Ring:
        made.append(Ring(base, *overrides))
        made[-1].prepare()
        return made[-1]

    yield make
    for each in made:
        each.__exit__()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ring]:
    """A run that has reached 20 steps."""
    with Ring(tmp_path_factory.mktemp("done") / "run", "goal.steps=20") as made:
        made.prepare()
        made.run(never)
        yield made


def test_the_parts_in_turn(done: Ring) -> None:
    assert done.stages[:5] == ["selfplay", "shuffle", "train", "export", "gate"]
    assert done.reason == "20 steps are learned"
    base = done.base
    assert newest(base).total_rows >= 100
    assert done.trainer.step >= 20
    assert networks.candidates(base) == []
    accepted = networks.accepted(base)
    assert accepted, "what was trained was exported and judged"
    assert done.network_path == accepted[-1].path
    assert max(entry.samples for entry in (*accepted, *networks.rejected(base))) == done.trainer.samples, (
        "and so was the last state"
    )


def test_it_counts_what_is_on_the_disk(done: Ring) -> None:
    assert Store(done.base / "selfplay").listing().rows == done.counts.rows
    assert done.trainer.bucket.rows == newest(done.base).total_rows
    assert done.trainer.samples <= done.trainer.bucket.rows * done.config.train.samples_per_row
    kinds = [line["kind"] for line in metrics.read(done.base / metrics.NAME).lines]
    assert kinds[0] == "session"
    assert {"progress", "rating"} <= set(kinds)
    rated = [line["network"] for line in metrics.read(done.base / metrics.NAME).lines if line["kind"] == "rating"]
    assert (rated[0], rated[-1]) == ("untrained", networks.newest(done.base).name)
    assert done.rater.curve()[0].elapsed == 0.0
    assert (done.base / "chart.svg").read_text().count('class="network"') == len(done.rater.curve())


def test_it_goes_on_where_it_stopped(done: Ring, ring: Any, tmp_path: Path) -> None:
    base = Path(shutil.copytree(done.base, tmp_path / "run"))
    step, rows, games = done.trainer.step, done.counts.rows, done.counts.games
    again = ring(base, "goal.steps=20")
    assert (again.trainer.step, again.counts.rows, again.counts.games) == (step, rows, games)
    assert again.reason
    again.run(never)
    assert again.stages == [], "there is nothing to do"
    more = ring(base, f"goal.steps={step + 8}")
    newest_before = networks.newest(base).name
    more.run(never)
    assert more.trainer.step >= step + 8
    assert more.counts.rows > rows
    played = {chunk.network for chunk in Store(base / "selfplay").chunks()}
    assert newest_before in played, "it went on with the network that was accepted last"


@pytest.mark.slow
def test_so_many_games_in_a_round(tmp_path: Path, ring: Any) -> None:
    one = ring(tmp_path, "ring.selfplay_rows=1000000", "ring.selfplay_games=10", "goal.steps=1")
    one.run(never)
    assert "train" in one.stages
    assert one.counts.rows < 10_000


def test_stopped_everything_is_written(tmp_path: Path, ring: Any) -> None:
    one = ring(tmp_path)
    one.run(after(12))
    assert Store(tmp_path / "selfplay").listing().rows == one.counts.rows
    assert one.reason == ""
    again = ring(tmp_path)
    assert again.counts.rows == one.counts.rows
    assert again.trainer.step == one.trainer.step


@pytest.mark.slow
def test_a_goal_of_rows_is_learned_from_to_the_end(tmp_path: Path, ring: Any) -> None:
    one = ring(tmp_path, "goal.rows=60", "ring.selfplay_rows=1000000")
    one.run(never)
    assert one.trainer.step > 0
    assert one.stages[:5] == ["selfplay", "shuffle", "train", "export", "gate"]
    assert networks.newest(tmp_path) is not None


def test_a_full_disk_is_waited_for_without_haste(tmp_path: Path, ring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ring(tmp_path, "goal.games=1", "ring.poll_seconds=0.05")
    calls: list[str] = []
    play = one.selfplay.run_once

    def full() -> Progress:
        calls.append("")
        return waiting("space on the disk: /x is full") if len(calls) < 4 else play()

    pauses: list[float] = []
    monkeypatch.setattr("tengen.loop.sync.pause", lambda seconds, stop: pauses.append(seconds))
    one.selfplay.run_once = full
    one.run(never)
    assert pauses[:3] == [0.05] * 3


@pytest.mark.slow
def test_changed_settings_reach_every_part_within_a_round(tmp_path: Path, ring: Any) -> None:
    made: Ring = ring(tmp_path, "goal.steps=1000")
    config_file.write(made.config, tmp_path, ["tengen 1"])
    config_file.change(
        tmp_path, ["train.lr_scale=0.5", "ring.selfplay_rows=70", "goal.steps=10", "gate.newest_first=true"]
    )
    made.run(never)
    assert made.reason == "10 steps are learned"
    assert made.trainer.config.train.lr_scale == 0.5
    assert {part._config.ring.selfplay_rows for part in made._parts} == {70}
    assert "from now on goal.steps: 1000 -> 10" in made.listener.said
