"""Runs a sweep from its first trial to its last, across interruptions.

A round is written before it is run, and the result of a trial as soon as it is known.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tengen.sweep import scoring
from tengen.sweep.folder import SweepFolder, copy_run, restore_runs
from tengen.sweep.plan import PlannedTrial
from tengen.sweep.scoring import TrialScore
from tengen.sweep.strategies import Job, Round
from tengen.sweep.trial import Executor, TrialResult
from tengen.words import counted

_BEAT = 0.5  # seconds between two checks whether to stop
Stop = Callable[[], bool]
Say = Callable[[str], None]


class Driver:
    """Chooses rounds, runs their trials, and keeps the results."""

    def __init__(self, folder: SweepFolder, planned: PlannedTrial, executor: Executor, say: Say = print) -> None:
        self.folder, self.planned = folder, planned
        self.rounds = folder.rounds()
        self.running: set[str] = set()  # trials
        self._executor = executor
        self.listen(say, lambda: None)
        self._strategy = planned.strategy
        self._results = {
            (job.trial, number): found
            for number, each in enumerate(self.rounds)
            for job in each.jobs
            if (found := folder.result(job, number)) is not None
        }

    def listen(self, say: Say, changed: Callable[[], None]) -> None:
        """Call `say` with a line for each event, and `changed` when a trial has begun or ended."""
        self._say, self._changed = say, changed

    def retry(self) -> int:
        """Forget the failures of the current round, unless a later one depends on them; returns how many there were."""
        failed = [job for job in self._present() if self._status(job) == "failed"]
        number = len(self.rounds) - 1
        if failed and not self.planned.plan.decides and self.rounds[-1].scores is not None:
            self.rounds[-1] = replace(self.rounds[-1], scores=None)
            self.folder.keep_rounds(self.rounds)
        if self.rounds and self.rounds[-1].scores is not None:
            return 0
        for job in failed:
            self.folder.forget_result(job, number)
            del self._results[job.trial, number]
        return len(failed)

    def run(self, stop: Stop) -> bool:
        """Run until the sweep is complete or `stop` returns True; returns whether it is complete."""
        restore_runs(self.folder.trial(""))
        while not stop():
            if not self.rounds or self.rounds[-1].scores is not None:
                following = self._strategy.following(self.rounds)
                if following is None:
                    return True
                self.rounds.append(following)
                self.folder.keep_rounds(self.rounds)
                self._say_round()
            # All copies are made before any trial of the round goes on, so that their sources have not changed.
            for job in self._present():
                if job.source is not None:
                    copy_run(self.folder.trial(job.source), self.folder.trial(job.trial))
            if not self._run_round(stop):
                return False
            self._decide()
        return False

    def results(self) -> dict[str, TrialResult]:
        return {trial: result for (trial, _), result in sorted(self._results.items(), key=lambda item: item[0][1])}

    def result(self, job: Job, number: int) -> TrialResult | None:
        """The result of a trial in that round; None if it is not known yet."""
        return self._results.get((job.trial, number))

    def scores(self) -> dict[str, TrialScore]:
        """The score of every trial that has one, in the metric's unit."""
        return scoring.scores(self.results(), self.planned.plan.metric)

    def _present(self) -> tuple[Job, ...]:
        return self.rounds[-1].jobs if self.rounds else ()

    def _status(self, job: Job) -> str:
        found = self.result(job, len(self.rounds) - 1)
        return found.status if found else ""

    def _run_round(self, stop: Stop) -> bool:
        """Run the current round; returns whether all of its trials have ended."""
        waiting = [job for job in self._present() if not self._status(job)]
        jobs = {job.trial: job for job in waiting}
        try:
            while (waiting or self.running) and not (stop() and not self.running):
                if stop():
                    self._executor.stop()
                    waiting = []
                while waiting and self._executor.free:
                    self._submit(waiting.pop(0))
                for spec, result in self._executor.collect(_BEAT):
                    self._ended(jobs[spec.trial], result)
        except BaseException:
            self._executor.stop()
            raise
        return all(self._status(job) for job in self._present())

    def _submit(self, job: Job) -> None:
        self._executor.submit(self.folder.spec(job, self.planned.overrides(job, self.rounds[0])))
        self.running.add(job.trial)
        self._say(f"trial {job.trial} begins: {words(job.settings)}{self._budget(job)}")
        self._changed()

    def _ended(self, job: Job, result: TrialResult) -> None:
        self.running.discard(job.trial)
        number = len(self.rounds) - 1
        if result.status == "stopped":
            self._say(f"trial {job.trial} stopped, and will go on from there")
        else:
            self.folder.keep_result(job, number, result)
            self._results[job.trial, number] = result
            scoring.check(result, self.planned.plan.metric)
            self._say(f"trial {job.trial} {self._outcome(job.trial, result)}")
        self._changed()

    def _outcome(self, trial: str, result: TrialResult) -> str:
        if result.status == "failed":
            return f"failed: {result.why}; its log: {self.folder.log(trial)}"
        metric, score = self.planned.plan.metric, self.scores().get(trial)
        return f"ended: {metric} {figure(score)}" if score else f"ended, without a {metric}"

    def _decide(self) -> None:
        plan, present = self.planned.plan, self.rounds[-1]
        found = scoring.comparable(self.scores(), plan.highest)
        scores = {job.trial: None if self._status(job) == "failed" else found.get(job.trial) for job in present.jobs}
        self.rounds[-1] = Round(present.jobs, scores)
        self.folder.keep_rounds(self.rounds)
        self._changed()

    def _say_round(self) -> None:
        plan, jobs = self.planned.plan, self._present()
        if plan.decides:
            noun = "generation" if plan.strategy == "population" else "round"
            copies = [f"{job.trial} from {job.source}" for job in jobs if job.source is not None]
            copied = f"; copied: {', '.join(copies)}" if copies else ""
            self._say(f"{noun} {len(self.rounds)}: {counted(len(jobs), 'trial')}{self._budget(jobs[0])}{copied}")

    def _budget(self, job: Job) -> str:
        return "" if self.planned.plan.unit is None else f", up to {job.budget:,.6g} {self.planned.plan.unit}"


def words(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in settings.items())


def figure(score: TrialScore) -> str:
    if score.error is not None:
        return f"{score.value:.0f} +-{score.error:.0f}"
    return f"{score.value:.4g}"
