"""`kill -9` at any moment: processes of a real run are killed at random, and an auditor looks at what they leave."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import tengen
from tests.helpers.patience import LONG, eventually
from tests.helpers.run_audit import FOLDERS, Audit, audit

SETTINGS = (
    "net.name=b1c8",
    "search.simulations=60",
    "selfplay.games=4",
    "selfplay.cheap_simulations=30",
    "data.first_rows=50",
    "data.chunk_rows=40",
    "data.record_share=0.5",
    "data.window.min_rows=2000",
    "train.batch=16",
    "train.samples_per_row=0.3",
    "train.checkpoints.interval=5",
    "shuffle.rows_per_file=100",
    "shuffle.validation_share=0.2",
    "shuffle.workers=1",
    "ring.shuffle_rows=80",
    "ring.samples_per_epoch=160",
    "ring.poll_seconds=0.1",
    "gate.games=8",
    "gate.round_games=4",
    "gate.simulations=2",
    "goal.minutes=null",
)


def command(*words: str, base: Path) -> list[str]:
    settings = [word for text in SETTINGS for word in ("--set", text)]
    return [sys.executable, "-m", "tengen", *words, "--base", str(base), *settings]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(tengen.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}


class Witness(threading.Thread):
    """Notes what a run reports as written, and which networks it has, for as long as it goes."""

    def __init__(self, base: Path) -> None:
        super().__init__(daemon=True)
        self.base = base
        self.written: dict[str, int] = {}  # worker -> rows that are on the disk, as it said
        self.finished: dict[str, int] = {}  # worker -> rows of games that have ended
        self.networks: set[str] = set()
        self.shuffles: set[str] = set()
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.05):
            self.look()

    def look(self) -> None:
        for path in _inside(self.base / "parts"):
            if path.name.startswith("selfplay-") and path.suffix == ".json":
                with contextlib.suppress(FileNotFoundError):  # anything else must not be: it is written at once
                    self._note(path.stem.removeprefix("selfplay-"), json.loads(path.read_bytes())["figures"])
        for folder in (self.base / "train" / "main" / "export", *(self.base / name for name in FOLDERS)):
            self.networks |= {path.name for path in _inside(folder) if not path.name.startswith(".")}
        self.shuffles |= {path.name for path in _inside(self.base / "shuffled") if not path.name.startswith(".")}

    def _note(self, worker: str, figures: dict[str, Any]) -> None:
        for known, name in ((self.written, "rows_written"), (self.finished, "rows")):
            known[worker] = max(known.get(worker, 0), figures.get(name, 0))

    def stop(self) -> None:
        self._over.set()
        self.join()
        self.look()


class Driver:
    """`tengen run --mode async`, started and started again."""

    def __init__(self, base: Path, *words: str) -> None:
        self.base, self.words, self.starts = base, words, 0
        self.output = base.parent / "driver.log"
        self.start()

    def start(self) -> None:
        self.starts += 1
        with self.output.open("ab") as log:
            line = command("run", "tic_tac_toe", "--mode", "async", *self.words, base=self.base)
            self.process = subprocess.Popen(line, stdout=log, stderr=log, env=environment(), start_new_session=True)

    def parts(self) -> dict[str, int]:
        """Kind -> process number, of its children that are there."""
        found = {}
        for number in _text(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")).split():
            words = _text(Path(f"/proc/{number}/cmdline")).split("\0")
            if "tengen" in words:
                found[words[words.index("tengen") + 1]] = int(number)
        return found

    def works(self, kind: str) -> bool:
        """Whether that part has got so far that it says what it does."""
        number = self.parts().get(kind)
        files = [path for path in _inside(self.base / "parts") if path.name.startswith(kind) and path.suffix == ".json"]
        return any(f'"process": {number},' in _text(path) for path in files)

    def kill(self, kind: str) -> bool:
        """One of its parts, or itself; whether it was there to be killed."""
        if kind == "driver":
            self.process.kill()
            self.process.wait()
            self.start()
            return True
        number = self.parts().get(kind)
        if number is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        return number is not None

    def end(self) -> float:
        """By SIGTERM; how long that took."""
        began, before = time.monotonic(), self.output.stat().st_size
        self.process.terminate()
        try:
            code = self.process.wait(LONG)
        finally:
            self.process.kill()
        said = self.output.read_bytes()[before:].decode(errors="replace")
        assert code == 128 + signal.SIGTERM, said
        assert "ended with code" not in said, said
        return time.monotonic() - began

    def tail(self) -> str:
        return self.output.read_text()[-3000:]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def wait_for(what: Callable[[], bool], driver: Driver, words: str) -> None:
    eventually(lambda: what() or driver.process.poll() is not None, lambda: f"{words}: {driver.tail()}", pause=0.1)
    assert driver.process.poll() is None, f"the driver has ended: {driver.tail()}"


def progress(base: Path) -> tuple[int, int, int]:
    """Chunks, steps in checkpoints, and networks that were judged by a match (the first one is taken without)."""
    chunks = sum(1 for _ in (base / "selfplay").glob("*/??????????-*.npz"))
    steps = max((int(path.name[5:]) for path in (base / "train" / "main").glob("step_?????????")), default=0)
    return chunks, steps, _text(base / "ratings" / "results.jsonl").count("\n")


def check(base: Path, witness: Witness) -> Audit:
    """All that must hold after any number of kills."""
    found = audit(base)
    assert found.problems == []
    for worker, rows in witness.written.items():
        assert found.rows_by_worker.get(worker, 0) >= rows, f"{worker} said that it had written {rows} rows"
    waiting = {path.name for path in _inside(base / "train" / "main" / "export")}
    assert witness.networks <= set(found.networks) | waiting, "a network is lost"
    said = [line.split()[1] for line in _text(base / "logs" / "gate.log").splitlines() if _is_verdict(line)]
    assert all(count == 1 for count in Counter(said).values()), "a candidate was judged twice"
    assert not list((base / "selfplay").rglob("*.corrupt")), "a half-written chunk was read"
    assert not list((base / "train").rglob("*.corrupt")), "a half-written checkpoint was read"
    return found


def _is_verdict(line: str) -> bool:
    return " is accepted:" in line or " is rejected:" in line


def survive(base: Path, victims: Sequence[str], seed: int, longest: float) -> dict[str, Any]:
    """Kill these, one after the other, at random moments; then the run must go on, end in time, and be whole."""
    chance = random.Random(seed)
    witness = Witness(base)
    witness.start()
    driver = Driver(base)
    killed: Counter[str] = Counter()
    at_work = 0
    try:
        wait_for(lambda: progress(base)[1] > 0, driver, "the first checkpoint")
        for victim in victims:
            if victim != "driver" and chance.random() < 0.7:  # else it may still be starting
                wait_for(lambda who=victim: driver.works(who), driver, f"{victim} works")
            time.sleep(chance.uniform(0.05, longest))
            at_work += driver.works(victim)
            assert driver.process.poll() is None, f"the driver has ended: {driver.tail()}"
            wait_for(lambda who=victim: driver.kill(who), driver, f"{victim} is started again")
            killed[victim] += 1
        before = progress(base)
        wait_for(
            lambda: all(now > then for now, then in zip(progress(base), before, strict=True)),
            driver,
            f"rows, steps and verdicts beyond {before}",
        )
        seconds = driver.end()
    finally:
        driver.process.kill()
        driver.process.wait()
        witness.stop()
    found = check(base, witness)
    assert found.results > 0
    assert witness.shuffles
    return {
        "killed": dict(killed),
        "of these at work": at_work,
        "ended in": round(seconds, 1),
        "rows": found.rows,
        "reported": sum(witness.written.values()),
        "workers": len(witness.written),
        "shuffles": len(witness.shuffles),
        "networks": len(found.networks),
        "steps": found.steps,
        "left unfinished": found.unfinished,
    }


@pytest.mark.slow
def test_self_play_that_is_killed_is_started_again_and_nothing_is_lost(tmp_path: Path) -> None:
    """The quick one of these: a driver with one part, which is killed once."""
    base = tmp_path / "run"
    witness = Witness(base)
    witness.start()
    driver = Driver(base, "--parts", "selfplay")
    try:
        wait_for(lambda: any(witness.written.values()), driver, "the first rows")
        assert driver.kill("selfplay")
        before, _, _ = progress(base)
        wait_for(lambda: progress(base)[0] > before and len(witness.written) > 1, driver, "rows of another worker")
        driver.end()
    finally:
        driver.process.kill()
        driver.process.wait()
        witness.stop()
    assert check(base, witness).chunks > before


@pytest.mark.slow
def test_a_run_survives_a_few_kills(tmp_path: Path) -> None:
    print(survive(tmp_path / "run", ("train", "selfplay", "driver"), seed=1, longest=1.5))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_survives_many_kills(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    victims = ["selfplay", "shuffle", "train", "export", "gate"] * 4 + ["driver"] * 4
    chance.shuffle(victims)
    print(survive(tmp_path / "run", victims, seed, longest=4.0))


@pytest.mark.slow
def test_a_driver_that_is_killed_while_its_parts_start(tmp_path: Path) -> None:
    """Parts of the one before still hold their locks, and do not say yet that they are there."""
    base = tmp_path / "run"
    chance = random.Random(5)
    driver = Driver(base)
    try:
        for _ in range(6):
            time.sleep(chance.uniform(2.0, 5.0))
            assert driver.kill("driver")
        wait_for(lambda: progress(base)[2] > 0, driver, "the first verdict")
        driver.end()
    finally:
        driver.process.kill()
        driver.process.wait()
    assert audit(base).problems == []


@contextlib.contextmanager
def part(*words: str, base: Path) -> Iterator[subprocess.Popen[str]]:
    """A single part, which nobody watches over."""
    line = command(*words, base=base)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_self_play_that_is_stopped_writes_all_games_that_have_ended(tmp_path: Path, number: signal.Signals) -> None:
    base = tmp_path / "run"
    witness = Witness(base)
    witness.start()
    with part("selfplay", "tic_tac_toe", base=base) as process:
        eventually(lambda: any(witness.finished.values()) or process.poll() is not None)
        process.send_signal(number)
        said, _ = process.communicate(timeout=LONG)
    witness.stop()
    assert process.returncode == 128 + number, said
    assert "everything is written" in said
    found = audit(base)
    assert found.problems == []
    assert found.unfinished == 0
    assert witness.finished
    assert all(found.rows_by_worker[name] >= rows for name, rows in witness.finished.items())
    assert not list((base / "parts").iterdir())
