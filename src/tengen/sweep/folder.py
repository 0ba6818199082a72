"""The folder of a sweep. Every file in it is complete or absent, so a driver that is killed leaves a good one.

SWEEP/plan.json, config.yaml   the plan                          SWEEP/rounds.json      the trials of each round
SWEEP/trials/007/              the run of a trial, maybe a copy  SWEEP/results/007-0.json   its result in round 0
SWEEP/logs/007.log             its output                        SWEEP/table.txt, results.json, plot.svg   for people
"""

import difflib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from tengen import config as configuration
from tengen import files, importing, schema
from tengen.config.source import RUN_FILE
from tengen.errors import ConfigError, OptionError, TengenError
from tengen.sweep.plan import PlannedTrial, SweepPlan
from tengen.sweep.strategies import Job, Round
from tengen.sweep.trial import TrialResult, TrialSpec
from tengen.words import program

T = TypeVar("T")
_PLAN, _ROUNDS = "plan.json", "rounds.json"
_DIFFERENCES = 10
_BEFORE = ".before"  # the ending of a run that another one is about to replace


@dataclass(frozen=True)
class _Rounds:
    rounds: tuple[Round, ...]


class SweepFolder:
    """Reads and writes the files of a sweep. TengenError says what cannot be read or written, and why."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def exists(self) -> bool:
        return (self.path / _PLAN).exists()

    def begin(self, planned: PlannedTrial) -> PlannedTrial:
        """Write the plan, or check that the folder already has the same one; returns the plan to go on with."""
        text = configuration.render(planned.config)
        if not self.exists:
            self.write(RUN_FILE, "".join(f"# {line}\n" for line in importing.noted_folders()) + text)
            self._keep(_PLAN, planned.plan)
            return self.open()
        there = self.open()
        decided = planned.plan.decides and any(each.scores is not None for each in self.rounds())
        problems = _differences(there.plan, planned.plan, free=() if decided else ("metric", "highest"))
        if there.config != planned.config:
            before = configuration.render(there.config).splitlines()
            lines = difflib.unified_diff(before, text.splitlines(), lineterm="", n=0)
            problems += [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        if problems:
            few = problems[:_DIFFERENCES] + (["..."] if len(problems) > _DIFFERENCES else [])
            go_on = f"go on with it ({program()} sweep --base {self.path}), or choose another --base"
            raise ConfigError([*few, f"{self.path}: is another sweep; {go_on}"])
        if there.plan != planned.plan:  # another metric, and nothing was decided by the old one
            self._keep(_PLAN, planned.plan)
        return self.open()

    def open(self) -> PlannedTrial:
        """The plan that is there. TengenError if there is none."""
        if not self.exists:
            raise TengenError(f"{self.path}: no sweep is there (it would have a {_PLAN}); give a CONFIG to begin one")
        plan = self._read(SweepPlan, self.path / _PLAN)
        file = self.path / RUN_FILE
        configuration.load_any(file)  # says what is wrong with it
        return PlannedTrial(plan, str(file.absolute()))

    def rounds(self) -> list[Round]:
        path = self.path / _ROUNDS
        if not path.exists():
            return []
        return list(self._read(_Rounds, path).rounds)

    def keep_rounds(self, rounds: Sequence[Round]) -> None:
        self._keep(_ROUNDS, _Rounds(tuple(rounds)))

    def result(self, job: Job, number: int) -> TrialResult | None:
        """The result of a trial in a round; None if it is not known yet."""
        path = self._result(job, number)
        return self._read(TrialResult, path) if path.exists() else None

    def keep_result(self, job: Job, number: int, result: TrialResult) -> None:
        self._keep(str(self._result(job, number).relative_to(self.path)), result)

    def forget_result(self, job: Job, number: int) -> None:
        self._result(job, number).unlink(missing_ok=True)

    def trial(self, trial: str) -> Path:
        """The run directory of a trial."""
        return self.path / "trials" / trial

    def log(self, trial: str) -> Path:
        return self.path / "logs" / f"{trial}.log"

    def spec(self, job: Job, overrides: Sequence[str]) -> TrialSpec:
        files = (self.path / RUN_FILE, self.trial(job.trial), self.log(job.trial))
        config, folder, log = (str(file.absolute()) for file in files)
        return TrialSpec(job.trial, config, tuple(overrides), folder, log)

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        files.make_folder(path.parent)
        files.write_bytes(path, text.encode())

    def _result(self, job: Job, number: int) -> Path:
        return self.path / "results" / f"{job.trial}-{number}.json"

    def _keep(self, name: str, content: object) -> None:
        files.make_folder((self.path / name).parent)
        schema.write_json(self.path / name, content)

    def _read(self, cls: type[T], path: Path) -> T:
        try:
            return schema.read_json(cls, path)
        except OptionError as error:
            raise TengenError(f"{error}; correct the file, or choose another --base") from None


def _differences(old: SweepPlan, new: SweepPlan, free: Sequence[str]) -> list[str]:
    before, after = asdict(old), asdict(new)
    return [
        f"{key}: {json.dumps(before[key])} -> {json.dumps(after[key])}"
        for key in before
        if before[key] != after[key] and key not in free
    ]


# The copy gets its own configuration, and is rated by its own matches: otherwise games would count twice.
_LEFT = (RUN_FILE, ".lock", "ratings")


def copy_run(source: Path, target: Path) -> None:
    """Copy a run, unless `target` exists; the copy appears when it is complete.

    Rows, which take most of the space and never change once written, are hard links where that is possible.
    """
    if target.exists():
        return
    for left in target.parent.glob(f".{target.name}.*.part"):  # of a copy that was interrupted
        shutil.rmtree(left, ignore_errors=True)

    def fill(place: Path) -> None:
        shutil.copytree(source, place, ignore=_ignored(source), copy_function=_copy, dirs_exist_ok=True)

    try:
        files.write_folder(target, fill)
    except OSError as error:
        cause = error.__cause__ or error
        why = getattr(cause, "strerror", None) or str(cause)
        if isinstance(cause, shutil.Error) and cause.args and cause.args[0]:
            why = str(cause.args[0][0][2])
        raise TengenError(f"{source}: cannot be copied to {target}: {why}") from None


def replace_run(new: Path, target: Path) -> None:
    """Put the run `new` in the place of `target`. Killed in between, `restore_runs` brings the old one back."""
    before = target.with_name(f".{target.name}{_BEFORE}")
    files.remove(before)
    if target.exists():
        target.rename(before)
    try:
        new.rename(target)
    except OSError:
        if before.exists():
            before.rename(target)
        raise
    files.sync_folder(target.parent)
    files.remove(before)


def restore_runs(folder: Path) -> None:
    """Finish what a kill interrupted in `replace_run`; no trial may be at work."""
    for before in folder.glob(f".*{_BEFORE}"):
        target = before.with_name(before.name[1:].removesuffix(_BEFORE))
        if target.exists():
            files.remove(before)
        else:
            before.rename(target)


def _ignored(top: Path) -> Callable[[str, list[str]], list[str]]:
    def ignore(folder: str, names: list[str]) -> list[str]:
        half = [name for name in names if name.startswith(".") and name.endswith(".part")]
        return [*half, *(name for name in names if name in _LEFT and Path(folder) == top)]

    return ignore


def _copy(source: str, target: str) -> str:
    if source.endswith(".npz"):
        try:
            os.link(source, target)
            return target
        except OSError:  # another disk, or one without links
            pass
    files.check_regular(source)
    return shutil.copy2(source, target)
