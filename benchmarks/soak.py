"""A daemon that is killed again and again, while data comes at random and some of it is no good.

    python benchmarks/soak.py --minutes 60

Chunks come at random times, one in a hundred is damaged, the receiver of the networks fails now and then, and the
daemon is killed (SIGKILL) five times at random and started again. In the end: every good chunk was counted, every
network arrived exactly once, and the daemon's memory did not grow. The exit code is 1 if any of that does not hold.
"""

import argparse
import math
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tengen.protocol.messages import Error, NetworkExported, Shutdown, StartTraining, TrainingStatus, decode, encode
from tests.helpers.daemon_data import chunk, overrides
from tests.helpers.upload_receiver import Receiver, receiving

_BAD = 0.01  # share of the files
_KEPT = 400  # files; older ones are removed, as whoever plays would do
_WARM = 20.0  # seconds after its first network from which on a daemon's memory should stay as it is
_GROWTH = 1.15, 20.0  # times, and MB more, that are still flat
_TROUBLE = 0.1  # share of the uploads with which something goes wrong


class Life:
    """One process of the daemon."""

    def __init__(self, base: Path, address: str, log: Path) -> None:
        changes = overrides(
            "daemon.chunks_per_network=10",
            "daemon.steps_per_network=20",
            "daemon.loader.pool_chunks=200",
            "daemon.validation=0.1",
            "daemon.keep_networks=5",
            "daemon.upload.kind=http",
            f"daemon.upload.target={address}",
            "daemon.upload.first_pause=0.1",
            "daemon.upload.timeout=5.0",
            "train.checkpoints.interval=7",
        )
        words = [word for text in changes for word in ("--set", text)]
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tengen", "daemon", "--base", str(base), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self.began = time.monotonic()
        self.memory: list[tuple[float, float]] = []  # age in seconds, MB
        self.warm = math.inf  # the age from which on it counts
        self.status: TrainingStatus | None = None
        self.chunks = 0  # that were counted
        self.exported: list[str] = []
        self.errors: list[str] = []
        self.say(StartTraining("tic_tac_toe"))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def say(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(encode(message))
        self.process.stdin.flush()

    @property
    def age(self) -> float:
        return time.monotonic() - self.began

    def end(self, *, kill: bool) -> int:
        """Its exit code."""
        if kill:
            self.process.kill()
        else:
            self.say(Shutdown())
        code = self.process.wait(60)
        self._reader.join(10)
        return code

    def growth(self) -> tuple[float, float] | None:
        """MB at first and at last, once it was warm; None if it did not live that long."""
        warm = [size for age, size in self.memory if age >= self.warm]
        return (warm[0], max(warm[-5:])) if len(warm) > 10 else None

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith(b"\n"):
                return  # killed in the middle of it
            message = decode(line)
            if isinstance(message, TrainingStatus):
                self.status = message
                if message.loader is not None:  # there is none at the very end
                    self.chunks = sum(message.loader.chunks.values())
                self._measure()
            elif isinstance(message, NetworkExported):
                self.exported.append(message.name)
                self.warm = min(self.warm, self.age + _WARM)
            elif isinstance(message, Error):
                self.errors.append(message.what)

    def _measure(self) -> None:
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            size = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
        except (OSError, StopIteration):
            return
        self.memory.append((self.age, size / 1024))


class Writer:
    """Plays games, as far as the daemon can tell."""

    def __init__(self, folder: Path, mean: float, dice: random.Random) -> None:
        self.good = self.bad = 0
        self._folder, self._mean, self._dice = folder, mean, dice
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        number, written = 0, []
        while not self._over.wait(self._dice.expovariate(1 / self._mean)):
            number += 1
            if self._dice.random() < _BAD:
                content = self._dice.choice([b"", b"no chunk", self._dice.randbytes(3000)])
                hidden = self._folder / f".{number:06}.npz"
                hidden.parent.mkdir(parents=True, exist_ok=True)
                hidden.write_bytes(content)
                written.append(hidden.rename(self._folder / f"{number:06}.npz"))
                self.bad += 1
            else:
                written.append(chunk(self._folder, number))
                self.good += 1
            if len(written) > _KEPT:
                written.pop(0).unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--mean", type=float, default=0.4, help="seconds between two chunks, on average")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.randrange(10**6)
    dice = random.Random(seed)
    place = Path(tempfile.mkdtemp(prefix="tengen-soak-"))
    print(f"seed {seed}, in {place}", flush=True)
    with receiving() as receiver:
        problems = soak(place, receiver, arguments.minutes * 60, arguments.kills, arguments.mean, dice)
    for problem in problems:
        print(f"WRONG: {problem}")
    if not problems:
        shutil.rmtree(place, ignore_errors=True)
        print("all is well")
    return 1 if problems else 0


def soak(place: Path, receiver: Receiver, seconds: float, kills: int, mean: float, dice: random.Random) -> list[str]:
    """What does not hold, in words."""
    base, log = place / "run", place / "stderr.log"
    writer = Writer(base / "selfplay", mean, dice)
    moments = sorted(dice.uniform(0.05, 0.9) * seconds for _ in range(kills))
    began = time.monotonic()
    lives = [Life(base, receiver.address, log)]
    while (now := time.monotonic() - began) < seconds:
        if moments and now >= moments[0]:
            moments.pop(0)
            lives[-1].end(kill=True)
            _tell(lives, writer, receiver, f"killed after {lives[-1].age:.0f} s")
            lives.append(Life(base, receiver.address, log))
        if lives[-1].process.poll() is not None:
            return [f"the daemon ended by itself, see {log}"]
        if dice.random() < _TROUBLE and not receiver.plan:
            receiver.plan.append(dice.choice(["fail", "cut", "lose", "refuse"]))
        time.sleep(0.2)
    writer.end()
    receiver.plan.clear()
    _settle(lives[-1], writer)
    code = lives[-1].end(kill=False)
    _tell(lives, writer, receiver, "the end")
    return [*_problems(base, lives, writer, receiver), *([f"exit code {code}"] if code else [])]


def _settle(life: Life, writer: Writer) -> None:
    """Wait until it has nothing to do, or for a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        status = life.status
        if status is not None and status.loader is not None and status.schedule.stage == "WAITING_FOR_DATA":
            arrived = all(network.upload in ("", "done") for network in status.networks)
            if (
                life.chunks >= writer.good
                and arrived
                and status.schedule.new_chunks < status.schedule.chunks_to_wait_for
            ):
                return
        time.sleep(0.5)


def _problems(base: Path, lives: list[Life], writer: Writer, receiver: Receiver) -> list[str]:
    found = [f"an error was told: {error}" for life in lives for error in life.errors]
    counted = lives[-1].chunks
    if counted != writer.good:
        found.append(f"{counted:,} chunks were counted, expected {writer.good:,}")
    exported = {name for life in lives for name in life.exported}
    stored = {path.removeprefix("/").removesuffix(".safetensors") for path in receiver.stored}
    done = {path.stem for path in (base / "uploads" / "done").glob("*.json")}
    if not exported <= stored:
        found.append(f"exported, but did not arrive: {sorted(exported - stored)}")
    if stored != done:
        found.append(f"arrived or marked as such, but not both: {sorted(stored ^ done)}")
    twice = [name for name, count in receiver.accepted.items() if count != 1]
    if twice:
        found.append(f"arrived more than once: {twice}")
    if left := list((base / "uploads").glob("*.json")):
        found.append(f"still waiting: {left}")
    steps = sorted(int(name.split("-s")[1].split("-")[0]) for name in stored)
    if len(set(steps)) != len(steps):
        found.append("two networks are of the same step")
    for life in lives:
        if (growth := life.growth()) and growth[1] > _GROWTH[0] * growth[0] + _GROWTH[1]:
            found.append(f"memory grew from {growth[0]:.0f} to {growth[1]:.0f} MB")
    return found


def _tell(lives: list[Life], writer: Writer, receiver: Receiver, words: str) -> None:
    life = lives[-1]
    growth = life.growth()
    memory = f"{growth[0]:.0f} -> {growth[1]:.0f} MB" if growth else "too short to measure memory"
    print(
        f"{words}: {writer.good:,} good chunks, {writer.bad} bad; {len(receiver.stored)} networks arrived in "
        f"{len(receiver.asked)} attempts; {memory}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
