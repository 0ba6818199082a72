"""The pipeline as processes: all parts at once on this machine, or some of them, until the goal is reached.

    with Asynchronous(config, base, KINDS, shown) as driver:
        driver.run(stop)
    print(driver.reason)

One driver of a run writes its metrics, which hold its time; drivers that join with some parts read the time from there.
"""

import contextlib
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tengen import jax_setup
from tengen.config.sections import Config
from tengen.data.shuffle.folders import newest as newest_shuffle
from tengen.errors import OptionError, TengenError
from tengen.loop.parts.running import Once
from tengen.monitor.display import Display
from tengen.monitor.totals import PlayedTotals, TotalsCounter
from tengen.run import children, metrics, networks, part_status
from tengen.run.children import KINDS, ChildProcess
from tengen.run.config_file import ConfigWatch
from tengen.run.goals import RunCounts, reached
from tengen.run.metrics import Metrics, TensorBoard
from tengen.run.part import Progress, Stop
from tengen.run.part_status import PartStatus, StatusWriter
from tengen.run.status import NetworkCounts, RunStatus
from tengen.schema import unknown
from tengen.words import counted

PartVariables = Mapping[str, Mapping[str, str]]
"""Environment variables for the processes of some kinds of parts."""
_LOOK = 0.1  # seconds between two checks of the children
_SHOW = 1.0  # seconds between two updates of the display
_COUNT = 5.0  # seconds between two counts of rows and networks, each with a line of metrics
_JUDGING = 60.0  # seconds that the gate may go on after the end, for the networks that wait
_JUDGING_SHARE = 0.08  # the same as a share of a goal of minutes, which must not be exceeded by a tenth


def chosen(text: str | None) -> tuple[str, ...]:
    """The parts in a comma-separated list, in the order of the pipeline; all if it is None. OptionError if unknown."""
    if text is None:
        return KINDS
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in KINDS:
            raise OptionError(f"--parts {name}: {unknown('part', name, KINDS)}")
    if not names:
        raise OptionError(f"--parts: expected some of {', '.join(KINDS)}, with commas between them")
    return tuple(kind for kind in KINDS if kind in names)


def device_variables(
    config: Config, parts: Sequence[str], find: Callable[[], tuple[str, int]] = jax_setup.devices_elsewhere
) -> PartVariables:
    """Variables that give each of these parts its devices (`ring.devices`); the gate uses the first of self-play's.

    OptionError if there is no such device, or if a batch cannot be split over the trainer's devices.
    """
    wanted = config.ring.devices
    chosen = {"selfplay": wanted.selfplay, "train": wanted.train, "gate": wanted.selfplay[:1]}
    chosen = {kind: chosen[kind] for kind in parts if chosen.get(kind)}
    if not chosen:
        return {}
    backend, count = find()
    for kind, numbers in chosen.items():
        if missing := [number for number in numbers if number >= count]:
            there = f"JAX finds {counted(count, 'device')} here ({backend}), counted from 0"
            raise OptionError(f"ring.devices.{kind}: there is no device {missing[0]}; {there}")
    if "train" in chosen:
        config.train.check_devices(len(chosen["train"]))
    return {kind: jax_setup.restricted(backend, numbers) for kind, numbers in chosen.items()}


class Asynchronous(contextlib.AbstractContextManager):
    """Keeps the chosen parts running. `leads`: it is the driver that writes RUN/metrics.jsonl."""

    def __init__(
        self,
        config: Config,
        base: Path,
        parts: Sequence[str],
        display: Display,
        *,
        leads: bool = True,
        tensorboard: bool = False,
        variables: PartVariables | None = None,
        began: float | None = None,
        command: Callable[[str, Path], Sequence[str]] = children.command,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`began` is when the process did, by `time.monotonic`."""
        self.config, self.base, self.leads = config, base, leads
        self.reason = ""  # why it ended, if not because it was asked to
        self.status = RunStatus(stage="running", goal=config.goal, networks=NetworkCounts())
        self._display, self._clock, self._sleep = display, clock, sleep
        self._watch_config = ConfigWatch(base, config, display.say)
        logs = base / "logs"
        self._children = [
            ChildProcess(kind, command(kind, base), logs / f"{kind}.log", clock, (variables or {}).get(kind, {}))
            for kind in parts
        ]
        self._waits: dict[str, float] = {}  # parts whose predecessors still run, and for how long they wait at most
        self._counter, self._played = TotalsCounter(base), PlayedTotals()
        self._since: dict[str, tuple[tuple[str, float], float]] = {}  # what a part reported, and since when
        self._due = {"show": 0.0, "count": 0.0}
        self._before: tuple[float, RunStatus] | None = None
        self._complain = Once(display.say)
        self._closing = contextlib.ExitStack()
        self._metrics = self._closing.enter_context(Metrics(base, since=began)) if leads else None
        try:
            self._tensorboard = self._closing.enter_context(TensorBoard(base)) if tensorboard and leads else None
            name = "main" if leads else secrets.token_hex(4)
            self._status_writer = self._closing.enter_context(StatusWriter(base, "async", name))
        except BaseException:
            self._closing.close()
            raise

    def __exit__(self, *exception: object) -> None:
        self._closing.close()

    def run(self, stop: Stop) -> None:
        """Run until the goal is reached, `stop` says so, or a part ends with an error that a person must fix."""
        for note in self._metrics.notes if self._metrics else ():
            self._display.say(note)
        self._count()
        if self.reason:
            self._display.say(f"nothing to do: {self.reason}")
            return
        self._write("session", {"mode": "async", "parts": [child.kind for child in self._children]})
        self._find_predecessors()
        try:
            while not stop() and not self.reason:
                self._watch([child for child in self._children if not self._must_wait(child)])
                if not self.reason and all(child.ended for child in self._children):
                    self.reason = "all parts have ended"
                self._sleep(_LOOK)
            if self.reason:
                self._display.say(f"the end: {self.reason}")
                self._judge_the_rest(stop)
        finally:
            self.status = replace(self.status, stage="ending")
            self._display.update(self.status)
            children.stop_all(self._children, self._ending, sleep=self._sleep)
            self._count()
            self._report()

    def _watch(self, running: Sequence[ChildProcess]) -> None:
        for child in running:
            if words := child.look():
                self._display.say(words)
        self._show()
        if (config := self._watch_config.look()) is not None:
            self.config = config
            self.status = replace(self.status, goal=config.goal)
        if self._is_due("count", _COUNT):
            self._count()
            self._report()

    def _judge_the_rest(self, stop: Stop) -> None:
        """If networks wait for the gate, let it go on for a while after all other parts have ended."""
        gate = [child for child in self._children if child.kind == "gate" and child.running]
        self._count()
        if not gate or not self._candidates:
            return
        self.status = replace(self.status, stage="judging the last networks")
        waiting = counted(self._candidates, "network")
        minutes = self.config.goal.minutes
        seconds = _JUDGING if minutes is None else min(_JUDGING, _JUDGING_SHARE * 60 * minutes)
        self._display.say(f"{waiting} at the gate, which goes on for {seconds:.0f} seconds (Ctrl-C ends it now)")
        children.stop_all([child for child in self._children if child.kind != "gate"], self._ending, sleep=self._sleep)
        end = self._clock() + seconds
        while self._candidates and not all(child.ended for child in gate) and self._clock() < end and not stop():
            self._watch(gate)
            self._sleep(_LOOK)

    def _ending(self, words: str) -> None:
        self._status_writer.show(Progress(words))
        self._display.say(words)

    def _find_predecessors(self) -> None:
        """Parts of a driver that was killed need a moment to end; until then, new ones would fail."""
        ours, here = {child.kind for child in self._children} - {"selfplay"}, socket.gethostname()
        for seen in self._looked():
            if seen.alive and seen.kind in ours and seen.machine == here:
                self._display.say(f"{seen.part} still runs (process {seen.process}); waiting for it to end")
                self._waits[seen.kind] = self._clock() + children.PATIENCE

    def _must_wait(self, child: ChildProcess) -> bool:
        if child.kind in self._waits:
            alive = any(seen.alive and seen.kind == child.kind for seen in self._looked())
            if alive and self._clock() < self._waits[child.kind]:
                return True
            del self._waits[child.kind]
        return False

    def _show(self) -> None:
        if not self._is_due("show", _SHOW):
            return
        alive = [seen for seen in self._looked() if seen.alive and seen.kind in KINDS]
        steps = [seen.figures.get("steps") for seen in alive if (seen.kind, seen.name) == ("train", "main")]
        steps = max([self.status.steps, *(number for number in steps if type(number) is int)])
        own = {child.process: child for child in self._children if child.running}
        parts = [self._part(seen, own.pop(seen.process, None)) for seen in alive]
        silent = (child for child in self._children if not child.running or child.process in own)
        parts += [PartStatus(child.kind, child.kind, words=child.words, restarts=child.restarts) for child in silent]
        parts.sort(key=lambda part: (KINDS.index(part.kind), part.part))
        counts = replace(self.status.counts, seconds=self._seconds())
        self.status = replace(self.status, parts=tuple(parts), counts=counts, steps=steps)
        self._display.update(self.status)
        running = sum(child.running for child in self._children)
        self._status_writer.show(Progress("1 part runs" if running == 1 else f"{running} parts run"))
        self.reason = self.reason or self._reached()

    def _part(self, seen: PartStatus, child: ChildProcess | None) -> PartStatus:
        """Its status with the time since it was written, and with what only its driver knows."""
        said, now = (seen.words, seen.seconds), self._clock()
        if self._since.get(seen.part, (None, 0.0))[0] != said:
            self._since[seen.part] = said, now
        seconds = seen.seconds + now - self._since[seen.part][1]
        return replace(seen, seconds=seconds, restarts=child.restarts if child else 0)

    @property
    def _candidates(self) -> int:
        return self.status.networks.candidates if self.status.networks else 0

    def _count(self) -> None:
        with self._careful():
            self._played = self._counter.look()
            for path in self._played.corrupt:
                self._complain(f"{path}: this chunk is damaged, and is not counted")
            accepted = networks.accepted(self.base)
            rejected, candidates = networks.rejected(self.base), networks.candidates(self.base)
            found = NetworkCounts(len(accepted), len(rejected), len(candidates))
            self.status = replace(self.status, networks=found, network=accepted[-1].name if accepted else "")
            if (shuffle := newest_shuffle(self.base)) is not None:
                self.status = replace(self.status, window=int(shuffle.window[1]) - int(shuffle.window[0]))
        counts = RunCounts(games=self._played.games, rows=self._played.rows, seconds=self._seconds())
        self.status = replace(self.status, counts=counts)
        self.reason = self.reason or self._reached()

    def _reached(self) -> str:
        return reached(self.config.goal, self.status.counts, self.status.steps)

    def _report(self) -> None:
        now = self._clock()
        if self._before is not None and now > self._before[0]:
            then, before = self._before
            speeds = self.status.speeds_since(before, now - then)
            self.status = replace(self.status, speeds={name: speeds[name] for name in ("games", "rows", "steps")})
        self._before = now, self.status
        self._display.update(self.status)
        names = ("alive", "machine", "words", "waiting", "seconds", "done", "of")
        parts = {
            part.part: {name: getattr(part, name) for name in names} | {"figures": dict(part.figures)}
            for part in self._looked()
        }
        self._write("progress", {**self.status.values(), "parts": parts})

    def _write(self, kind: str, values: dict[str, Any]) -> None:
        with self._careful():
            if self._metrics is not None:
                self._metrics.write(kind, values)
            if self._tensorboard is not None:
                self._tensorboard.write(kind, values)

    def _looked(self) -> list[PartStatus]:
        with self._careful():
            return part_status.look(self.base)
        return []

    def _seconds(self) -> float:
        if self._metrics is not None:
            return self._metrics.elapsed
        line = metrics.last(self.base / metrics.NAME)
        return line["elapsed"] if line else 0.0

    @contextlib.contextmanager
    def _careful(self) -> Iterator[None]:
        """Report a full disk, or one that does not respond for a moment, and go on, as the parts do if they can."""
        try:
            yield
        except (TengenError, OSError) as error:
            self._complain(str(error))

    def _is_due(self, what: str, every: float) -> bool:
        now = self._clock()
        if now < self._due[what]:
            return False
        self._due[what] = now + every
        return True
