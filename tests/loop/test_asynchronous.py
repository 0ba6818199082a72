"""The driver with tiny programs in place of the parts: until the goal, until Ctrl-C, until it is hopeless."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tengen.data.format.chunk import write_chunk
from tengen.data.store.store import Store
from tengen.errors import ConfigError, OptionError
from tengen.loop import asynchronous
from tengen.loop.asynchronous import Asynchronous
from tengen.run import config_file, metrics, part_status
from tengen.run.children import KINDS, Hopeless
from tests.helpers import paths
from tests.helpers import rows as made
from tests.helpers.patience import eventually
from tests.helpers.tiny_runs import Listener, never, tiny

# What a part does that shows a notice, and ends when it is asked to.
PART = """
import sys, time
from pathlib import Path
from tengen.run.signals import Stopping
from tengen.run.part_status import StatusWriter
from tengen.run.part import Progress
kind, base, figures = sys.argv[1], Path(sys.argv[2]), eval(sys.argv[3])
with Stopping(print) as stopping, StatusWriter(base, kind, "main") as notice:
    notice.show(Progress(f"{kind} works", done=1, of=4, figures=figures))
    while not stopping.asked:
        time.sleep(0.02)
print(kind, "ends", flush=True)
"""
ENDLESS = "import time\nwhile True: time.sleep(0.05)"


def quick(kind: str, base: Path) -> list[str]:
    return [sys.executable, "-c", ENDLESS]


def part(figures: str = "{}") -> Callable[[str, Path], list[str]]:
    return lambda kind, base: [sys.executable, "-c", PART, kind, str(base), figures]


def driver(
    base: Path,
    *overrides: str,
    parts: Sequence[str] = ("selfplay",),
    command: Callable[[str, Path], Sequence[str]] = quick,
    **more: Any,
) -> Asynchronous:
    return Asynchronous(tiny(*overrides), base, parts, Listener(), command=command, **more)


def said(made: Asynchronous) -> list[str]:
    display = made._display
    assert isinstance(display, Listener)
    return display.said


def add_rows(base: Path, count: int, seed: int = 0) -> Path:
    path = Store(base / "selfplay").reserve("random")
    write_chunk(path, made.FORM, made.rows(count, seed), made.GAME, network="random", more={"finished": count})
    return path


def test_chosen_parts() -> None:
    assert asynchronous.chosen(None) == KINDS
    assert asynchronous.chosen("gate, selfplay,gate") == ("selfplay", "gate")
    with pytest.raises(OptionError, match="--parts: expected some of selfplay, shuffle"):
        asynchronous.chosen(" , ")
    with pytest.raises(OptionError, match="--parts shufle: unknown part, did you mean shuffle?"):
        asynchronous.chosen("selfplay,shufle")


def test_each_part_sees_its_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    config = tiny("ring.devices.selfplay=[0, 2]", "ring.devices.train=[3]")
    variables = asynchronous.device_variables(config, KINDS, lambda: ("gpu", 4))
    seen = {kind: given["CUDA_VISIBLE_DEVICES"] for kind, given in variables.items()}
    assert seen == {"selfplay": "0,2", "train": "3", "gate": "0"}
    assert list(asynchronous.device_variables(config, ["train", "export"], lambda: ("gpu", 4))) == ["train"]
    program = "import os; print('sees', os.environ.get('CUDA_VISIBLE_DEVICES'), flush=True)"

    def command(kind: str, base: Path) -> list[str]:
        return [sys.executable, "-c", program]

    parts = ("selfplay", "shuffle", "train")
    with driver(tmp_path, parts=parts, command=command, variables=variables) as found:
        found.run(never)
    logs = [(tmp_path / "logs" / f"{kind}.log").read_text().splitlines()[-1] for kind in parts]
    assert logs == ["sees 0,2", "sees None", "sees 3"]


def test_devices_that_cannot_be_used() -> None:
    def check(*overrides: str, count: int = 2) -> None:
        asynchronous.device_variables(tiny(*overrides), KINDS, lambda: ("gpu", count))

    with pytest.raises(OptionError, match=r"^ring.devices.train: there is no device 2; JAX finds 2 devices here"):
        check("ring.devices.train=[0, 2]")
    with pytest.raises(OptionError, match=r"^train.batch: expected a multiple of the 3 devices, got 16; change it"):
        check("ring.devices.train=[0, 1, 2]", count=3)
    with pytest.raises(ConfigError, match=r"^ring.devices.selfplay: device 1 is given twice"):
        check("ring.devices.selfplay=[1, 0, 1]")
    with pytest.raises(ConfigError, match=r"^ring.devices.selfplay"):
        check("ring.devices.selfplay=[-1]")
    asynchronous.device_variables(tiny(), KINDS, pytest.fail)  # nothing is looked for if nothing is chosen


def test_a_goal_that_is_reached_already(tmp_path: Path) -> None:
    add_rows(tmp_path, 20)
    with driver(tmp_path, "goal.rows=20") as found:
        found.run(never)
    assert found.reason == "20 rows are played"
    assert said(found) == ["nothing to do: 20 rows are played"]
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("goal", ["rows=12", "games=12"])
def test_rows_and_games_reach_the_goal(tmp_path: Path, goal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asynchronous, "_COUNT", 0.05)
    monkeypatch.setattr(asynchronous, "newest_shuffle", lambda base: SimpleNamespace(window=(5, 12)))
    add_rows(tmp_path, 4)
    with driver(tmp_path, f"goal.{goal}", parts=("selfplay", "gate")) as found:
        looks = 0

        def stop() -> bool:
            nonlocal looks
            looks += 1
            if looks == 3:
                add_rows(tmp_path, 8, 1)
            return looks > 300

        found.run(stop)
    reason = f"12 {goal.partition('=')[0]} are played"
    assert found.reason == reason
    assert said(found) == [f"the end: {reason}", "ending selfplay", "ending gate"]
    assert (found.status.counts.rows, found.status.counts.games) == (12, 12)
    lines = metrics.read(tmp_path / metrics.NAME).lines
    assert [line["kind"] for line in lines][:2] == ["session", "progress"]
    assert lines[0]["parts"] == ["selfplay", "gate"]
    assert (lines[-1]["rows"], lines[-1]["games"], lines[-1]["window"]) == (12, 12, 7)


@pytest.mark.parametrize(("judged", "goal", "seconds"), [(True, "null", 60), (False, "null", 60), (False, "5.0", 24)])
def test_the_gate_goes_on_for_a_while_at_the_end(tmp_path: Path, judged: bool, goal: str, seconds: int) -> None:
    candidate = tmp_path / "candidates" / "go-main-s2-d1"
    candidate.mkdir(parents=True)
    (candidate / "model.safetensors").touch()
    now, asleep = 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal now, asleep
        if seconds < asynchronous._LOOK:  # a part is waited for, which takes the time that it takes
            time.sleep(seconds)
            return
        now += 10 * seconds
        if found.status.stage.startswith("judging"):
            asleep += 1
            assert [child.kind for child in found._children if child.running] == ["gate"], "the others have ended"
            if judged and asleep == 20:
                shutil.rmtree(candidate)

    with driver(tmp_path, f"goal.minutes={goal}", parts=("selfplay", "gate"), clock=lambda: now, sleep=sleep) as found:
        looks = iter(range(100))

        def stop() -> bool:
            if next(looks, 0) == 3:
                found.reason = "that is enough"
            return False

        found.run(stop)
    assert said(found) == [
        "the end: that is enough",
        f"1 network at the gate, which goes on for {seconds} seconds (Ctrl-C ends it now)",
        "ending selfplay",
        "ending gate",
    ]
    assert found.status.networks.candidates == (0 if judged else 1)
    assert asleep >= 20 if judged else asleep == seconds


def test_nobody_waits_for_a_gate_that_has_ended(tmp_path: Path) -> None:
    candidate = tmp_path / "candidates" / "go-main-s2-d1"
    candidate.mkdir(parents=True)
    (candidate / "model.safetensors").touch()
    judging = 0

    def sleep(seconds: float) -> None:
        nonlocal judging
        time.sleep(min(seconds, 0.05))
        if found.status.stage.startswith("judging"):
            judging += 1
            gate = next(child for child in found._children if child.kind == "gate")
            if gate.running:
                gate.stop(sleep=time.sleep)

    with driver(tmp_path, parts=("selfplay", "gate"), clock=lambda: 0.0, sleep=sleep) as found:
        looks = iter(range(100))

        def stop() -> bool:
            if next(looks, 0) == 3:
                found.reason = "that is enough"
            return judging > 3

        found.run(stop)
    assert judging == 1


def test_minutes_count_over_restarts(tmp_path: Path) -> None:
    with metrics.Metrics(tmp_path, iter([0.0, 59.9, 59.9]).__next__) as before:
        before.write("progress", {})
    with driver(tmp_path, "goal.minutes=1") as found:
        found.run(never)
    assert found.reason == "1 minute is over"
    assert found.status.counts.seconds >= 60


def test_minutes_count_from_the_start_of_the_process(tmp_path: Path) -> None:
    with driver(tmp_path, "goal.minutes=1", began=time.monotonic() - 60) as found:
        found.run(never)
    assert found.reason == "1 minute is over"


def test_steps_are_those_that_train_shows(tmp_path: Path) -> None:
    with driver(tmp_path, "goal.steps=50", parts=("train",), command=part("{'steps': 77, 'loss': 2.5}")) as found:
        found.run(never)
        shown = found._display.shown  # type: ignore[attr-defined]
    assert (found.reason, found.status.steps) == ("50 steps are learned", 77)
    assert "train ends" in (tmp_path / "logs" / "train.log").read_text()
    parts = [part for status in shown for part in status.parts]
    assert ("train main", "train works", 0.25) in [(part.part, part.words, part.share) for part in parts]
    assert part_status.look(tmp_path) == []


def test_a_subset_stops_when_asked_and_says_what_died(tmp_path: Path) -> None:
    def command(kind: str, base: Path) -> list[str]:
        return [sys.executable, "-c", "print('bad luck'); raise SystemExit(3)" if kind == "gate" else ENDLESS]

    with driver(tmp_path, parts=("selfplay", "gate"), command=command) as found:
        found.run(lambda: any("gate" in text for text in said(found)))
    assert found.reason == ""
    assert said(found) == ["gate ended with code 3: bad luck; starting it again in 1 s", "ending selfplay"]
    assert sorted(os.listdir(tmp_path / "logs")) == ["gate.log", "selfplay.log"]


def test_a_hopeless_part_ends_all(tmp_path: Path) -> None:
    def command(kind: str, base: Path) -> list[str]:
        return [sys.executable, "-c", "print('bad key'); raise SystemExit(2)" if kind == "train" else ENDLESS]

    now = time.monotonic()

    def sleep(seconds: float) -> None:  # the pauses go by at once, but not the end, for which a busy machine needs time
        nonlocal now
        ending = "ending selfplay" in said(found)
        now += seconds if ending else 10
        time.sleep(seconds if ending else 0.01)

    with driver(tmp_path, parts=("selfplay", "train"), command=command, clock=lambda: now, sleep=sleep) as found:
        with pytest.raises(Hopeless, match="train ended 3 times with the same error: bad key"):
            found.run(never)
        assert said(found)[-1] == "ending selfplay"
        assert not any(child.running for child in found._children)


def test_the_end_of_all_parts_is_the_end(tmp_path: Path) -> None:
    with driver(tmp_path, command=lambda *_: [sys.executable, "-c", "print('no more')"]) as found:
        found.run(never)
    assert found.reason == "all parts have ended"
    assert said(found)[0] == "selfplay has ended: no more"


def test_garbage_in_the_run_directory(tmp_path: Path) -> None:
    (tmp_path / "parts").write_text("a file")
    (tmp_path / "models").write_text("a file")
    (tmp_path / "selfplay" / "net").mkdir(parents=True)
    (tmp_path / "selfplay" / "net" / "0000000000-a.npz").write_text("no chunk")
    looks = iter(range(100))
    with driver(tmp_path) as found:
        found.run(lambda: next(looks) > 3)
    text = "\n".join(said(found))
    assert text.count("parts: cannot be read: Not a directory") == 1
    assert text.count("models: cannot be read: Not a directory") == 1
    assert "0000000000-a.npz: this chunk is damaged, and is not counted" in text
    assert (tmp_path / "selfplay" / "net" / "0000000000-a.npz").exists()


def test_garbage_notices(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    strange = {"schema": 1, "machine": 1, "process": 1, "words": None, "waiting": 0, "seconds": 0, "running": 0}
    for name, text in {
        "train-a": "no JSON",
        "train-b": "[" * 100_000,
        "train-c": "[]",
        "train-d": json.dumps({**strange, "done": "x", "of": [], "figures": {"steps": "many"}}),
        "train-e": json.dumps({**strange, "process": 1e999, "done": 1, "of": 1, "figures": {}}),
    }.items():
        (tmp_path / "parts" / f"{name}.json").write_text(text)
    looks = iter(range(100))
    with driver(tmp_path, parts=("train",)) as found:
        found.run(lambda: next(looks) > 3)
    assert said(found) == ["ending train"]


def test_a_driver_that_joins_leaves_the_metrics_alone(tmp_path: Path) -> None:
    with metrics.Metrics(tmp_path, iter([0.0, 30.0, 30.0]).__next__) as before:
        before.write("progress", {})
    content = (tmp_path / metrics.NAME).read_bytes()
    looks = iter(range(100))
    with driver(tmp_path, leads=False) as found:
        found.run(lambda: next(looks) > 3)
    assert (tmp_path / metrics.NAME).read_bytes() == content
    assert found.status.counts.seconds == 30.0


def test_parts_of_a_driver_that_was_killed_end_first(tmp_path: Path) -> None:
    old = subprocess.Popen([*part()("train", tmp_path)])
    try:
        eventually(lambda: [seen.words for seen in part_status.look(tmp_path)] == ["train works"])
        with driver(tmp_path, parts=("train",)) as found:
            looks = 0

            def stop() -> bool:
                nonlocal looks
                looks += 1
                if looks == 4:
                    assert not found._children[0].running
                    old.terminate()
                    old.wait()
                return looks > 300 or found._children[0].running

            found.run(stop)
    finally:
        old.kill()
        old.wait()
    assert said(found) == [f"train main still runs (process {old.pid}); waiting for it to end", "ending train"]


DRIVER = """
import sys
sys.path[:0] = [{tests!r}]
from pathlib import Path
from tests.loop import test_asynchronous as t
with t.driver(Path({base!r}), parts=("selfplay", "train"), command=t.part()) as found:
    found.run(t.never)
"""


def gone(process: int) -> bool:
    """It is not there, or nobody has asked yet how it ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_parts_end_by_themselves_when_the_driver_is_killed(tmp_path: Path) -> None:
    tests = str(paths.ROOT)
    process = subprocess.Popen([sys.executable, "-c", DRIVER.format(tests=tests, base=str(tmp_path))])
    try:
        eventually(lambda: len(part_status.look(tmp_path)) == 3)
        parts = [seen for seen in part_status.look(tmp_path) if seen.kind != "async"]
        assert [seen.kind for seen in parts] == ["selfplay", "train"]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    eventually(lambda: all(gone(seen.process) for seen in parts))
    assert "train ends" in (tmp_path / "logs" / "train.log").read_text()
    assert [(seen.part, seen.alive) for seen in part_status.look(tmp_path)] == [("async main", False)]


def test_a_goal_that_changes_while_it_runs(tmp_path: Path) -> None:
    config_file.write(tiny("goal.minutes=1000"), tmp_path, ["tengen 1"])
    with driver(tmp_path, "goal.minutes=1000") as made:
        config_file.change(tmp_path, ["goal.rows=5"])
        add_rows(tmp_path, 7)
        made.run(never)
        assert made.reason == "5 rows are played"
        assert "from now on goal.rows: null -> 5" in said(made)
