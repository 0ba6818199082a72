"""Sweeps with trials that are made up: what is run, when, how often; killed anywhere; with failures."""

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tengen import schema
from tengen.errors import OptionError
from tengen.sweep import plan
from tengen.sweep.driver import Driver
from tengen.sweep.folder import SweepFolder
from tengen.sweep.trial import Ended, TrialResult, TrialSpec


class Killed(BaseException):
    """As by kill -9."""


@dataclass
class Fake:
    """An executor whose trials end one at a time, the last begun first; `loss(spec)` is what they measure."""

    loss: Callable[[dict[str, str]], float | None]
    slots: int = 2
    die_after: int = 10**6  # events
    begun: list[TrialSpec] = field(default_factory=list)
    waiting: list[TrialSpec] = field(default_factory=list)
    most: int = 0
    stopping: bool = False

    @property
    def free(self) -> int:
        return self.slots - len(self.waiting)

    def submit(self, spec: TrialSpec) -> None:
        self._event()
        assert self.free > 0
        assert schema.from_data(TrialSpec, asdict(spec)) == spec
        self.begun.append(spec)
        self.waiting.append(spec)
        self.most = max(self.most, len(self.waiting))

    def collect(self, timeout: float) -> list[Ended]:
        self._event()
        if not self.waiting:
            return []
        spec = self.waiting.pop()
        if self.stopping:
            return [(spec, TrialResult("stopped"))]
        settings = dict(text.split("=") for text in spec.overrides)
        folder = Path(spec.folder)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "trail.txt").open("a") as trail:
            trail.write(f"{settings['goal.steps']} ")
        loss = self.loss(settings)
        if loss is None:
            return [(spec, TrialResult("failed", why="ended with code 1: boom", lines=("Traceback", "boom")))]
        return [(spec, TrialResult("done", {"progress.loss": loss, "progress.steps": int(settings["goal.steps"])}))]

    def stop(self) -> None:
        self.stopping = True

    def _event(self) -> None:
        if self.die_after == 0:
            raise Killed
        self.die_after -= 1


def by_batch(settings: dict[str, str]) -> float:
    return 100.0 - float(settings["train.batch"])


def planned(**options: Any) -> plan.PlannedTrial:
    budgets = {"steps": options.pop("steps", 90)}
    grids = options.pop("grids", ["train.batch=1,2,3,4,5,6,7,8,9"])
    return plan.make("tic_tac_toe", [], grids, [], metric="loss", budgets=budgets, **options)


def drive(
    base: Path, wanted: plan.PlannedTrial, fake: Fake, stop: Callable[[], bool] = lambda: False
) -> tuple[Driver, bool]:
    folder = SweepFolder(base)
    driver = Driver(folder, folder.begin(wanted), fake, lambda text: None)
    return driver, driver.run(stop)


@pytest.fixture(scope="module")
def halving() -> plan.PlannedTrial:
    return planned(strategy="halving")


@pytest.fixture(scope="module")
def population() -> plan.PlannedTrial:
    return planned(strategy="population", population=4, generations=3)


def test_a_grid(tmp_path: Path) -> None:
    fake = Fake(by_batch)
    driver, done = drive(tmp_path, planned(grids=["train.batch=4,8,16"]), fake)
    assert done
    assert fake.most == 2
    assert [spec.overrides for spec in fake.begun] == [(f"train.batch={n}", "goal.steps=90") for n in (4, 8, 16)]
    assert {trial: score.value for trial, score in driver.scores().items()} == {"000": 96, "001": 92, "002": 84}
    again = Fake(by_batch)
    assert drive(tmp_path, planned(grids=["train.batch=4,8,16"]), again)[1]
    assert again.begun == []


def test_halving_goes_on_in_the_same_folders(tmp_path: Path, halving: plan.PlannedTrial) -> None:
    fake = Fake(by_batch)
    driver, done = drive(tmp_path, halving, fake)
    assert done
    assert [len(each.jobs) for each in driver.rounds] == [9, 3, 1]
    assert (driver.folder.trial("008") / "trail.txt").read_text() == "10 30 90 "
    assert (driver.folder.trial("006") / "trail.txt").read_text() == "10 30 "
    assert (driver.folder.trial("000") / "trail.txt").read_text() == "10 "


def test_a_population_copies_before_anybody_goes_on(tmp_path: Path, population: plan.PlannedTrial) -> None:
    driver, done = drive(tmp_path, population, Fake(by_batch, slots=4))
    assert done
    for each in driver.rounds[1:]:
        (new,) = [job for job in each.jobs if job.source is not None]
        trail = (driver.folder.trial(new.trial) / "trail.txt").read_text()
        source = next(job for before in driver.rounds for job in before.jobs if job.trial == new.source)
        assert trail.startswith("30 ")
        whole = (driver.folder.trial(source.trial) / "trail.txt").read_text()
        own = [str(job.budget) for r in driver.rounds for job in r.jobs if job.trial == new.trial]
        assert trail.split() == [*whole.split()[: len(trail.split()) - len(own)], *own]


@pytest.mark.parametrize("kind", ["halving", "population"])
def test_killed_after_every_event(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    """However often it is killed, the same is decided, and a trial that has a result is not run again."""
    wanted = request.getfixturevalue(kind)
    whole, _ = drive(tmp_path / "whole", wanted, Fake(by_batch))
    base, done, begun, attempt = tmp_path / "killed", False, [], 0
    while not done:
        attempt += 1
        assert attempt < 200
        fake = Fake(by_batch, die_after=3 + attempt % 4)
        known = {path.stem for path in (base / "results").glob("*.json")}
        with contextlib.suppress(Killed):
            _, done = drive(base, wanted, fake)
        rounds = SweepFolder(base).rounds()
        begun += [f"{spec.trial}-{_round(spec, rounds)}" for spec in fake.begun]
        assert not known & {f"{spec.trial}-{_round(spec, rounds)}" for spec in fake.begun}
    assert attempt > 5
    assert SweepFolder(base).rounds() == whole.rounds
    assert set(begun) == {f"{job.trial}-{n}" for n, each in enumerate(whole.rounds) for job in each.jobs}


def _round(spec: TrialSpec, rounds: list[Any]) -> int:
    budget = next(text for text in spec.overrides if text.startswith("goal.steps="))
    return next(
        n
        for n, each in enumerate(rounds)
        for job in each.jobs
        if f"goal.steps={job.budget}" == budget and job.trial == spec.trial
    )


def test_a_trial_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    wanted = planned(grids=["train.batch=4,8,16"])
    fake = Fake(lambda settings: None if settings["train.batch"] == "8" else by_batch(settings))
    driver, done = drive(tmp_path, wanted, fake)
    assert done
    assert {trial: result.status for trial, result in driver.results().items()} == {
        "000": "done",
        "001": "failed",
        "002": "done",
    }
    kept = SweepFolder(tmp_path).result(driver.rounds[0].jobs[1], 0)
    assert kept is not None
    assert kept.lines == ("Traceback", "boom")
    mended = Fake(by_batch)
    driver = Driver(SweepFolder(tmp_path), SweepFolder(tmp_path).open(), mended, lambda text: None)
    assert driver.retry() == 1
    assert driver.run(lambda: False)
    assert [spec.trial for spec in mended.begun] == ["001"]
    assert set(driver.scores()) == {"000", "001", "002"}
    assert driver.retry() == 0


def test_all_failed(tmp_path: Path, halving: plan.PlannedTrial) -> None:
    driver, done = drive(tmp_path, halving, Fake(lambda settings: None))
    assert done
    assert len(driver.rounds) == 1


def test_stopping_asks_trials_to_end_and_goes_on_later(tmp_path: Path, halving: plan.PlannedTrial) -> None:
    calls = iter(range(10**6))
    fake = Fake(by_batch, slots=3)
    driver, done = drive(tmp_path, halving, fake, lambda: next(calls) > 12)
    assert not done
    assert fake.stopping
    assert not fake.waiting
    assert not driver.running
    some = set(driver.results())
    assert 0 < len(some) < 9
    again = Fake(by_batch)
    assert drive(tmp_path, halving, again)[1]
    assert not some & {spec.trial for spec in again.begun if spec.overrides[-1] == "goal.steps=10"}


def test_a_figure_that_trials_do_not_write_is_said_at_the_first(tmp_path: Path) -> None:
    wanted = plan.make("tic_tac_toe", [], ["train.batch=4,8,16"], [], metric="los", budgets={"steps": 5})
    fake = Fake(by_batch, slots=1)
    with pytest.raises(OptionError, match="--metric los: unknown figure, did you mean loss"):
        drive(tmp_path, wanted, fake)
    assert len(fake.begun) == 1
    # Nothing was decided by it, so another may be named, and what was run is not run again.
    other = Fake(by_batch)
    assert drive(tmp_path, planned(grids=["train.batch=4,8,16"], steps=5), other)[1]
    assert len(other.begun) == 2
