"""Self-play and learning together: a whole small run, what it leaves, and going on from any moment of it."""

import contextlib
import errno
import itertools
import math
import os
import shutil
import threading
import xml.etree.ElementTree as xml
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest

from tengen import ahead, files, match
from tengen.config import load
from tengen.data.format.chunk import read_chunk
from tengen.data.format.identity import GameIdentity
from tengen.data.records.records import load_records
from tengen.data.store import buffer
from tengen.data.store.store import Store
from tengen.errors import Diverged, OptionError, TengenError
from tengen.loop.components import Components
from tengen.loop.fused import Fused
from tengen.nets import saving
from tengen.run import config_file, metrics, part_status
from tengen.run.networks import UNTRAINED
from tengen.selfplay import driver
from tengen.train.alpha_zero import AlphaZeroTrainer
from tests.helpers.compilations import Compilations
from tests.helpers.crashes import Photographer, copy
from tests.helpers.tiny_runs import Listener, after, never, prepared, tiny

GOAL = "goal.rows=400"
OFTEN = "rating.minutes=0.05"
OTHER_PROGRAMS = "train.batch=12", "selfplay.games=10"  # than those of the other tests, which JAX has compiled already


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Fused, Photographer]:
    """A run to its end, and copies of its directory in the middle of everything that was written."""
    base = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "MOST_PHASES", 6)  # so that there are several calls, however fast the machine
        photographer = Photographer(base, tmp_path_factory.mktemp("album"), patch)
        with prepared(base, GOAL, OFTEN) as loop:
            loop.run(never)
    return base, loop, photographer


@pytest.fixture
def base(album: tuple[Path, Fused, Photographer], tmp_path: Path) -> Path:
    """The finished run, to be changed."""
    return copy(album[0], tmp_path / "run")


def games_on_disk(base: Path) -> tuple[int, list[tuple[int, int]]]:
    """Rows, and the name of every game, as often as a chunk has it."""
    rows, names = 0, []
    for chunk in Store(base / "selfplay").chunks():
        found, meta = read_chunk(chunk.path)
        rows += meta.rows
        names += [tuple(name) for name in np.unique(found["game"], axis=0).tolist()]
    return rows, names


def check_books(loop: Fused, base: Path) -> None:
    """Every row on the disk counts once, and may be learned from as often as it says, never more."""
    rows, names = games_on_disk(base)
    assert loop.counts.rows == rows == loop.trainer.bucket.rows
    assert len(names) == len(set(names)) <= loop.counts.games
    per_row = loop.config.train.samples_per_row
    assert loop.trainer.samples + loop.trainer.bucket.level == pytest.approx(per_row * rows)
    assert loop.trainer.samples == loop.trainer.step * loop.config.train.batch
    kept = buffer.newest(loop.buffer, 10**6)
    expected = Store(base / "selfplay").read_newest(
        loop.components.capacity, loop.components.form, GameIdentity.of(loop.components.game)
    )
    assert len(kept["ply"]) == expected.count == min(rows, loop.components.capacity)
    for name, values in expected.rows.items():
        np.testing.assert_array_equal(kept[name], values)


def test_a_run_ends_at_its_goal_and_leaves_everything(album: tuple[Path, Fused, Photographer]) -> None:
    base, loop, _ = album
    assert loop.reason == "400 rows are played"
    assert loop.counts.rows >= 400
    check_books(loop, base)
    newest = loop.networks.newest
    assert newest is not None
    assert newest.step == loop.trainer.step
    assert saving.read(base / "models" / newest.name).info["samples"] == loop.trainer.samples
    assert newest.name == f"tic_tac_toe-main-s{loop.trainer.samples}-d{loop.counts.rows}"
    assert loop.rater.results == match.read(base / "ratings" / "results.jsonl")
    records = [record for file in base.glob("games/*/*.txt") for record in load_records(file)]
    assert len(records) == pytest.approx(loop.counts.games / 2, abs=1)
    assert len({record.id for record in records}) == len(records)


def test_it_says_what_it_does_and_how_it_stands(album: tuple[Path, Fused, Photographer]) -> None:
    base, loop, _ = album
    stages = [progress.stage for progress in loop._display.shown]
    order = ["building the network", "compiling the games", "playing", "compiling the learner", "saving the network"]
    first = [stages.index(stage) for stage in order]
    assert first == sorted(first)
    last = loop._display.shown[-1]
    assert list(last.losses) == ["loss", "policy", "value"]
    assert last.losses["loss"] == pytest.approx(last.losses["policy"] + last.losses["value"])
    assert last.rating is not None
    assert last.rating.against == "random"
    found = metrics.read(base / metrics.NAME)
    kinds = [line["kind"] for line in found.lines]
    assert found.invalid == ()
    assert kinds[0] == "session"
    assert kinds[-1] == "progress"
    assert kinds.count("rating") == len(loop.networks.saved) + 1, "the untrained network has one too"
    ratings = [line["network"] for line in found.lines if line["kind"] == "rating"]
    assert ratings == [UNTRAINED, *(saved.name for saved in loop.networks.saved)]
    assert found.lines[-1]["rows"] == loop.counts.rows
    elapsed = [line["elapsed"] for line in found.lines]
    assert elapsed == sorted(elapsed)
    assert [line["what"] for line in found.lines if line["kind"] == metrics.FIRST] == ["move", "step"]


def test_ratings_are_on_one_scale_over_time(album: tuple[Path, Fused, Photographer]) -> None:
    _, loop, _ = album
    curve = loop.rater.curve()
    assert [point.elapsed for point in curve] == [0.0, *(saved.seconds for saved in loop.networks.saved)]
    assert loop.rater.ratings is not None
    assert all(point.error > 0 for point in curve)
    assert curve[-1].elo == loop.rater.ratings[loop.networks.saved[-1].name].elo


def test_it_leaves_a_chart_of_losses_and_ratings(album: tuple[Path, Fused, Photographer]) -> None:
    base, loop, photographer = album
    root = xml.fromstring((base / "chart.svg").read_text())
    kinds = [element.attrib.get("class") for element in root.iter()]
    assert kinds.count("network") == kinds.count("error") == 1 + len(loop.networks.saved)
    assert kinds.count("loss") >= 3  # the loss, policy and value
    assert len(photographer.copies["chart"]) >= 2, "it is drawn at every rating, not only at the end"


def test_a_goal_of_minutes_is_the_whole_time(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Play ends early enough for the last rating and for writing, as long as those were measured to take."""
    with prepared(base, GOAL) as done:
        passed = done.counts.seconds
    with prepared(base, f"goal.minutes={(passed + 600) / 60}") as loop:
        now = [0.0]
        monkeypatch.setattr(loop._metrics, "_clock", lambda: now[0])
        loop._metrics._opened, loop._metrics._before = 0.0, passed
        monkeypatch.setattr(loop.rater, "expected", lambda most: min(most, 40.0))
        loop._writing = 10.0
        now[0] = 600 - 40.0
        assert loop.reason == "", "nothing new was learned, so nothing will be rated"
        loop._saved_step = loop.trainer.step - 1
        assert loop.reason.endswith("minutes are over")
        kept = 40.0 + 1.2 * 10.0 + 2.0
        now[0] = 600 - kept - 1
        assert loop.reason == ""
        now[0] = 600 - kept + 1
        assert loop.reason.endswith("minutes are over")
        loop.run(never)
        goal = loop._budget.goal
        assert goal == pytest.approx(passed + 600)
        assert loop.counts.seconds == pytest.approx(goal), "what was kept and not needed is not played for later"
    with prepared(base, f"goal.minutes={(passed + 600) / 60}") as again:
        assert again.reason.endswith("minutes are over")


def test_a_goal_that_is_reached_is_not_played_for(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = ("metrics.jsonl", "chart.svg", "chart.png", part_status.FOLDER)
    before = sorted(path for path in base.rglob("*") if path.name not in known)
    with prepared(base, GOAL) as loop:
        monkeypatch.setattr(loop, "_play", pytest.fail)
        assert loop.reason == "400 rows are played"
        loop.run(never)
        check_books(loop, base)
    assert sorted(path for path in base.rglob("*") if path.name not in known) == before


@pytest.mark.slow
def test_killed_at_any_moment_nothing_is_lost_or_counted_twice(
    album: tuple[Path, Fused, Photographer], tmp_path: Path
) -> None:
    _, whole, photographer = album
    assert set(photographer.copies) == {
        "chunk",
        "record",
        "model",
        "result",
        "chart",
        "before-checkpoint",
        "checkpoint",
    }
    for what, copies in photographer.copies.items():
        assert copies, what
        for number, taken in enumerate({copies[0]: 0, copies[-1]: 1}):
            left = copy(taken, tmp_path / f"{what}-{number}")
            on_disk = games_on_disk(left)[0]
            results = match.read(left / "ratings" / "results.jsonl")
            with prepared(left, GOAL) as loop:
                check_books(loop, left)
                assert loop.counts.rows == on_disk <= whole.counts.rows
                assert loop.counts.sessions == 2
                # The last files of a run are written when its time was taken.
                assert loop.counts.seconds <= whole.counts.seconds or taken == copies[-1]
                assert loop.rater.results == results
                newest = loop.networks.newest
                # A network that was saved is one that this run has been at, or it would be saved again otherwise.
                assert newest is None or newest.step <= loop.trainer.step
                if newest is not None and newest.step == loop.trainer.step:
                    assert newest.name.startswith(f"tic_tac_toe-main-s{loop.trainer.samples}-")
            assert not list(left.rglob("selfplay/*/.*")), "half-written chunks are removed"


def test_it_goes_on_from_the_middle_and_books_stay_right(
    album: tuple[Path, Fused, Photographer], tmp_path: Path
) -> None:
    further = "goal.rows=900"
    taken = next(path for path in album[2].copies["result"] if (path / "models").exists())
    left = copy(taken, tmp_path / "run")
    with prepared(left, further, "rating.minutes=1000") as loop:
        started = loop.counts.rows
        state = jax.device_get(loop.trainer.state)
        found = loop.session.checkpoints.restore(loop.trainer.state)
        assert found is not None
        jax.tree.map(np.testing.assert_array_equal, state, found[0].state)
        (earlier,) = (saved.name for saved in loop.networks.saved)
        loop.run(never)
        check_books(loop, left)
        assert loop.counts.rows >= 900 > started
        sessions = {name[0] for name in games_on_disk(left)[1]}
        assert sessions == {1, 2}
        played = [result.b for result in loop.rater.results if result.a not in (UNTRAINED, earlier)]
        assert sorted(played) == sorted(["random", earlier]), "it is found again"
    # All of it is on the disk: another start sees the same.
    with prepared(left, further) as again:
        check_books(again, left)
        assert (again.counts.rows, again.counts.games, again.trainer.step) == (
            loop.counts.rows,
            loop.counts.games,
            loop.trainer.step,
        )
        assert again.counts.seconds >= loop.counts.seconds
        assert again.counts.sessions == 3


def test_stopping_writes_everything_and_plays_no_match(base: Path) -> None:
    with prepared(base, "goal.rows=100000", "rating.minutes=1000") as loop:
        played = len(loop.rater.results)
        loop.run(after(6))
        check_books(loop, base)
        assert loop.reason == ""
        assert loop.networks.newest.step == loop.trainer.step
        assert loop.session.checkpoints.steps()[-1] == loop.trainer.step
        assert len(loop.rater.results) == played


def test_a_run_that_was_stopped_before_its_first_rating_rates_the_untrained_network_later(tmp_path: Path) -> None:
    with prepared(tmp_path, GOAL, "rating.minutes=1000") as loop:
        first = jax.device_get(loop.weights)
        loop.run(lambda: loop.trainer.step > 0)
        assert (loop.reason, loop.rater.results) == ("", [])
    with prepared(tmp_path, GOAL, "rating.minutes=1000") as loop:
        jax.tree.map(np.testing.assert_array_equal, jax.device_get(loop._untrained), first)
        loop.run(never)
        assert loop.rater.rating(UNTRAINED) is not None
    with prepared(tmp_path, GOAL) as loop:
        assert loop._untrained is None


def test_damaged_files_are_set_aside_and_named(base: Path) -> None:
    chunks = Store(base / "selfplay").chunks()
    lost = read_chunk(chunks[-1].path)[1].rows
    cut(chunks[-1].path)
    steps = sorted((base / "train" / "main").glob("step_*"))
    assert len(steps) >= 2
    for file in steps[-1].rglob("*"):
        if file.is_file():
            cut(file)
    garbage = base / "models" / "garbage"
    garbage.mkdir()
    (garbage / "model.safetensors").write_bytes(b"garbage")
    (base / "models" / "notes.txt").write_text("mine")
    with (base / metrics.NAME).open("ab") as file:
        file.write(b'garbage\n{"time": "2026-01-01T00:00')
    with prepared(base, "goal.rows=100000") as loop:
        said = "\n".join(loop._display.said)
        for words in (
            f"{steps[-1].name} is corrupt",
            f"a damaged chunk was set aside: {chunks[-1].path}.corrupt",
            "skipped, not a network of this run: ",
            "skipped 1 invalid line: line",
            "removed the last line, of which only",
            f"going on from step {int(steps[-2].name.removeprefix('step_')):,}",
        ):
            assert words in said
        on_disk = games_on_disk(base)[0]
        # Rows that an older checkpoint knows of have been played, even if they are gone.
        assert on_disk <= loop.counts.rows <= on_disk + lost
        assert loop.trainer.bucket.rows == loop.counts.rows
        # The network of the damaged checkpoint stays, and what is learned from here on is newer than it.
        ahead = loop.networks.newest
        assert ahead.step > loop.trainer.step
        loop._feed(100)
        loop._learn(never)
        loop._finish(lambda: True)
        assert (loop.networks.saved[-2], loop.networks.newest.step) == (ahead, loop.trainer.step)
    assert Path(f"{chunks[-1].path}.corrupt").exists()
    assert (base / "models" / "notes.txt").read_text() == "mine"
    assert b"garbage\n" in (base / metrics.NAME).read_bytes()


def test_a_network_without_numbers_does_not_play_and_its_checkpoint_is_set_aside(base: Path) -> None:
    steps = sorted((base / "train" / "main").glob("step_*"))
    with prepared(base, "goal.rows=100000") as loop:
        loop.weights = jax.tree.map(lambda leaf: leaf * np.nan, loop.weights)
        before, rows = loop.trainer.step, loop.counts.rows
        with pytest.raises(Diverged, match=rf"training diverged at step {before}: the network gives numbers that are"):
            loop.run(never)
        assert loop.counts.rows == rows
        assert any(f"{steps[-1].name} is corrupt (training diverged" in text for text in loop._display.said)
    assert sorted(path.name for path in (base / "train" / "main").glob("step_*")) == [
        *(path.name for path in steps[:-1]),
        f"{steps[-1].name}.corrupt",
    ]
    with prepared(base, "goal.rows=100000") as loop:
        assert loop.trainer.step == int(steps[-2].name.removeprefix("step_"))


@pytest.mark.parametrize("error", [Diverged.at(3, "it was so"), ValueError("in the network of a user")])
def test_the_games_of_a_training_that_fails_are_kept(
    error: Exception, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(steps: int) -> dict[str, float]:
        raise error

    networks = sorted((base / "models").iterdir())
    with prepared(base, "goal.rows=100000") as loop:
        monkeypatch.setattr(loop.trainer, "train", diverge)
        before = loop.counts.rows
        with pytest.raises(type(error)):
            loop.run(never)
        assert games_on_disk(base)[0] == loop.counts.rows > before
    assert sorted((base / "models").iterdir()) == networks


def test_without_a_good_checkpoint_nothing_begins_anew(base: Path) -> None:
    for file in (base / "train").rglob("*"):
        if file.is_file():
            cut(file)
    for _ in range(2):  # the second start finds them set aside
        loop = Fused(tiny(GOAL), base, Listener())
        with loop, pytest.raises(TengenError, match="no (good )?checkpoint"):
            loop.prepare()
    before = games_on_disk(base)[0]
    for folder in (base / "train" / "main").glob("*.corrupt"):
        shutil.rmtree(folder)
    with prepared(base, GOAL) as loop:
        assert (loop.trainer.step, loop.counts.rows) == (0, before)
        check_books(loop, base)


def test_results_that_cannot_be_read_are_left_alone(base: Path) -> None:
    path = base / "ratings" / "results.jsonl"
    path.write_text(path.read_text() + "garbage\n")
    before = path.read_bytes()
    loop = Fused(tiny(GOAL), base, Listener())
    with loop, pytest.raises(TengenError, match=r"results.jsonl, line \d+: not the result of a match"):
        loop.prepare()
    assert path.read_bytes() == before


@pytest.mark.slow
def test_networks_that_have_gone_do_not_play(base: Path) -> None:
    with prepared(base, "goal.rows=100000", OFTEN) as loop:
        for saved in loop.networks.saved:
            cut(base / "models" / saved.name / "model.safetensors")
        loop.run(after(6))
        loop._saved_step = 0
        loop._rate(loop._save_network(), math.inf, never)
        assert any("an earlier network cannot play: " in text for text in loop._display.said)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), PermissionError(13, "denied")])
def test_a_disk_that_refuses_ends_the_run_with_a_message(
    base: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    rows, names = games_on_disk(base)
    write = files.write_bytes

    def refuse(path: Path, data: bytes) -> None:
        if path.suffix == ".npz":
            raise files.cannot_write(path, error)
        write(path, data)

    monkeypatch.setattr(files, "write_bytes", refuse)
    with (
        pytest.raises(TengenError, match=r"\.npz: cannot be written: .*then start again"),
        prepared(base, "goal.rows=100000") as loop,
    ):
        loop.run(never)
    monkeypatch.undo()
    assert games_on_disk(base) == (rows, names)
    with prepared(base, GOAL) as again:
        check_books(again, base)


def test_a_checkpoint_that_cannot_be_written(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with prepared(base, "goal.rows=100000") as loop:
        step = loop.trainer.step
        monkeypatch.setattr(ocp.CheckpointManager, "save", refuse)
        with pytest.raises(TengenError, match="a checkpoint could not be written: .*No space left on device"):
            loop.run(never)
    monkeypatch.undo()
    with prepared(base, GOAL) as again:
        assert again.trainer.step == step
        check_books(again, base)


def cut(path: Path) -> None:
    """Leave the first half."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def test_the_copies_differ(album: tuple[Path, Fused, Photographer]) -> None:
    """Smoke test of the tests: moments are moments."""
    rows = [games_on_disk(copies[0])[0] for copies in album[2].copies.values()]
    assert len(set(rows)) > 1
    assert all(path.exists() for path in itertools.chain(*album[2].copies.values()))


def test_it_takes_changed_settings_over_while_it_runs(tmp_path: Path) -> None:
    config_file.write(tiny(GOAL), tmp_path, ["tengen 1"])
    changes = ["train.lr_scale=0.5", "goal.rows=300", "data.chunk_rows=100", "rating.minutes=500"]
    with prepared(tmp_path, GOAL) as loop:
        config_file.change(tmp_path, changes)
        rate = loop.config.train.optimizer.learning_rate
        loop.run(never)
    assert loop.reason == "300 rows are played"
    assert loop._display.shown[-1].goal == loop.config.goal
    assert (loop.collector.settings.chunk_rows, loop.config.rating.minutes) == (100, 500)
    steps = min(loop.trainer.step / loop.config.train.schedule.warmup, 1)
    assert loop.figures["learning_rate"] <= 0.5 * rate * steps * 1.001
    assert xml.parse(tmp_path / "chart.svg").getroot().findall(".//*[@class='change']")
    with prepared(tmp_path, GOAL, *changes[:1]) as again:
        assert again.trainer.step == loop.trainer.step


def test_searches_and_learning_rate_follow_the_stages_of_the_run(tmp_path: Path) -> None:
    most = tiny().search.simulations
    with prepared(tmp_path, GOAL, 'selfplay.stages=["0.25:2/2:3.0"]', "selfplay.cheap_simulations=2") as loop:
        assert loop._enter_stage() == (2, 2)
        assert loop.trainer.stage_rate == 3.0
        loop.counts = loop.counts.plus(10, 100, 1000.0)
        assert loop._enter_stage() == loop.collector.visits == (most, 2)
        assert loop.trainer.stage_rate == 1.0
        loop._enter_stage()
    assert [text for text in loop._display.said if "simulations" in text] == [
        "self-play searches with 2 and 2 simulations from now on",
        f"self-play searches with {most} and 2 simulations from now on",
    ]


def test_every_large_program_is_compiled_once_in_a_thread_and_the_first_games_are_played_while_the_learner_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU: all calls find what was compiled ahead, and with enough rows, games wait for the learner."""
    monkeypatch.setattr(driver, "MOST_PHASES", 6)
    monkeypatch.setattr(Components, "compiles_learner", staticmethod(lambda: True))
    may_compile, programs = threading.Event(), AlphaZeroTrainer.programs

    def waiting(lower: Callable[[], Any]) -> Any:
        may_compile.wait()
        return lower()

    def first_waits(trainer: AlphaZeroTrainer, data: Any) -> Any:
        learning, settling = programs(trainer, data)
        return partial(waiting, learning), settling

    monkeypatch.setattr(AlphaZeroTrainer, "programs", first_waits)
    wait_for_learner, rows = Fused._wait_for_learner, []

    def wait(loop: Fused) -> None:
        rows.append(loop.counts.rows)
        assert not ahead.done(loop._learner)
        may_compile.set()
        wait_for_learner(loop)
        assert ahead.done(loop._learner)

    monkeypatch.setattr(Fused, "_wait_for_learner", wait)
    compilations = Compilations()
    with prepared(tmp_path, GOAL, *OTHER_PROGRAMS) as loop:
        loop.run(never)
    assert len(rows) == 1
    assert rows[0] >= loop.config.data.first_rows, "games are played, and learning waits"
    assert loop.trainer.step > 0
    for name in ("_start", "_play", "append", "_drawn", "_settled_by_draw"):
        assert [thread.rpartition("_")[0] for thread in compilations.of(name)] == ["compiling"], f"{name} once, ahead"
    assert all(thread.startswith("compiling") for thread in compilations.of("_end"))


def test_a_program_that_cannot_be_compiled_ahead_is_left_to_its_first_call() -> None:
    with ahead.Ahead() as threads:
        jobs = threads.call(lambda: 1 / 0)
        ahead.finish(jobs)
        assert ahead.done(jobs)


def test_a_run_that_fails_waits_for_the_thread_that_compiles() -> None:
    loop, events = Fused(tiny(), Path(), Listener()), []
    may_end, waits = threading.Event(), threading.Event()

    def compile_slowly() -> None:
        may_end.wait()
        events.append("compiled")

    def fail() -> None:
        with contextlib.suppress(RuntimeError), loop:
            loop._ahead.call(compile_slowly)
            waits.set()
            raise RuntimeError
        events.append("ended")

    failing = threading.Thread(target=fail)
    failing.start()
    waits.wait()
    may_end.set()
    failing.join()
    assert events == ["compiled", "ended"]


def test_a_run_whose_self_play_stays_as_it_is_keeps_the_budgets_of_its_searches() -> None:
    """The trees of searches have no room for more."""
    loop, said, before = object.__new__(Fused), [], tiny()

    def refuse(config: Any) -> None:
        raise OptionError("too little memory")

    ignore = SimpleNamespace(change=lambda *settings: None)
    components = SimpleNamespace(change=refuse, config=before)
    reporter = SimpleNamespace(say=said.append, goal=lambda goal: None)
    watch = SimpleNamespace(look=lambda: tiny("search.simulations=40", "train.lr_scale=0.5"))
    following = SimpleNamespace(changed=lambda config: following)
    vars(loop).update(components=components, rater=ignore, collector=SimpleNamespace(), reporter=reporter, _watch=watch)
    vars(loop).update(_grown=0, _next=following)
    loop._take_changes()
    assert said == ["self-play stays as it is: too little memory"]
    assert loop.config == tiny("train.lr_scale=0.5")


@pytest.mark.slow
def test_a_run_that_writes_for_katago_counts_everything_once(tmp_path: Path) -> None:
    go = ("game.size=3", "game.observation=katago", "net.heads=[score]", "net.name=b1c8", "net.growth=[]")
    go += ("data.format=katago", "selfplay.value_horizon=0", "selfplay.games=8", "selfplay.full_share=1")
    config = load("go5", [*go, "data.chunk_rows=100", "goal.rows=300", "rating.references=[]", "rating.earlier=0"])
    for rows in (300, 600):
        config = replace(config, goal=replace(config.goal, rows=rows))
        with Fused(config, tmp_path, Listener()) as loop:
            loop.prepare()
            before = loop.counts.rows
            loop.run(never)
            after = loop.counts.rows
        there = Store(tmp_path / "selfplay").listing().rows
        assert (before >= rows // 2) == (rows == 600)
        assert after == there >= rows
