"""A run directory has one configuration, which is never silently replaced."""

import errno
import os
from pathlib import Path

import pytest

from tengen import files
from tengen.config import load, render
from tengen.config.loading import load_any
from tengen.errors import ConfigError, TengenError
from tengen.run import changes
from tengen.run.config_file import change, check, join, settled, write


def problems(config: str, base: Path, *overrides: str) -> list[str]:
    with pytest.raises(TengenError) as caught:
        write(load(config, overrides), base, ["later"])
    return str(caught.value).split("\n")


def test_writes_what_can_be_loaded_under_its_provenance(tmp_path: Path) -> None:
    config = load("go9", ["game.komi=5.5"])
    path = write(config, tmp_path / "runs" / "a", ["tengen 1", "python 3"])
    assert path == tmp_path / "runs" / "a" / "config.yaml"
    assert path.read_text().startswith("# tengen 1\n# python 3\n# A complete")
    assert load(path) == config
    assert [file.name for file in path.parent.iterdir()] == ["config.yaml"]


def test_the_same_configuration_again_leaves_the_file_alone(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, ["first"])
    edited = path.read_text() + "# a note of mine\n"
    path.write_text(edited)
    assert write(load("go9"), tmp_path, ["second"]) == path
    assert path.read_text() == edited


def test_a_run_from_before_a_setting_existed_goes_on(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, ["tengen 0.1.0"])
    old = "".join(line for line in path.read_text().splitlines(True) if not line.startswith("    deadline:"))
    assert old != path.read_text()
    path.write_text(old)
    assert load(path) == load("go9")
    write(load("go9"), tmp_path, ["second"])
    assert path.read_text() == old
    write(load("go9", ["daemon.upload.deadline=60"]), tmp_path, ["third"])
    assert "daemon.upload.deadline: 3600.0 -> 60.0" in path.read_text()
    mine = tmp_path / "mine.yaml"
    mine.write_text(old.removeprefix("# tengen 0.1.0\n"))  # not written by a run: nothing is filled in
    with pytest.raises(ConfigError, match=r"daemon\.upload\.deadline: missing"):
        load(mine)


def test_a_run_with_a_setting_that_was_removed_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(load("go9"), tmp_path, ["tengen 0.1.0"])
    old = path.read_text().replace("  opening_moves:", "  branch_share: 0.3\n  opening_moves:", 1)
    path.write_text(old)
    assert write(load("go9"), tmp_path, ["later"]) == path
    assert path.read_text() == old
    assert [text for text in caplog.messages if "selfplay.branch_share: was removed" in text]
    with pytest.raises(ConfigError, match=r"^selfplay\.branch_share: was removed, .* \(selfplay\.branch_share=0\)$"):
        change(tmp_path, ["selfplay.branch_share=0"])
    assert change(tmp_path, ["goal.minutes=3"])
    assert "branch_share" not in path.read_text()


def test_another_configuration_is_refused_key_by_key(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, [])
    before = path.read_bytes()
    assert problems("go9", tmp_path, "game.size=13", "run.seed=7", "train.loss.policy=0.5") == [
        "run.seed: 1 -> 7 (cannot change: everything so far followed from this seed; begin a new run for another)",
        "game.size: 9 -> 13 (cannot change: the rows and networks of this run belong to these rules; "
        "begin a new run, with net.start_from to start from this run's network)",
        f"{path}: this run has other settings; keep to them (CONFIG may be this file), or choose another --base",
    ]
    assert any(text.startswith("game.swap: (none) -> true (cannot") for text in problems("hex7", tmp_path))
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"\xff", b"run: [", b"run: {name: x}"])
def test_a_damaged_configuration_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    *_, advice = problems("go9", tmp_path)
    assert advice == (f"{path}: the configuration of this run cannot be used; put it right, or choose another --base")
    assert path.read_bytes() == content


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    assert problems("go9", tmp_path)[0].endswith("expected a YAML file or a run (a folder with a config.yaml)")


def test_the_base_is_a_file(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.write_text("precious")
    for path in (base, base / "below"):
        (problem,) = problems("go9", path)
        assert problem.startswith(f"{path}: is a file or lies below one")
    assert base.read_text() == "precious"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied"), "may not be written to"),
        (OSError(28, "No space left on device"), "cannot be written to: No space left on device"),
    ],
)
def test_what_the_disk_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, words: str) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(files, "write_bytes", fail)
    (problem,) = problems("go9", tmp_path)
    assert problem.startswith(f"{tmp_path}: {words}")
    assert os.listdir(tmp_path) == []


def test_goals_and_ratings_may_change_and_the_file_says_when(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, ["tengen 1", "python 3"])
    changed = load("go9", ["goal.minutes=77", "rating.games=2"])
    assert write(changed, tmp_path, ["tengen 2"]) == path
    assert load(path) == changed
    lines = path.read_text().splitlines()
    assert lines[:2] == ["# tengen 1", "# python 3"]
    assert lines[2].startswith("# changed 20")
    assert lines[2].split(" UTC: ")[1].startswith("rating.games: ")
    assert lines[3].endswith(" -> 77.0")
    assert lines[4].startswith("# A complete Tengen configuration")
    write(load("go9", ["goal.minutes=78", "rating.games=2"]), tmp_path, [])
    lines = path.read_text().splitlines()
    assert lines[2].endswith("goal.minutes: 77.0 -> 78.0"), "earlier changes are in the log"
    assert lines[3].startswith("# A complete Tengen configuration")
    assert [made.key for made in changes.read(tmp_path)] == ["rating.games", "goal.minutes", "goal.minutes"]
    assert {file.name for file in tmp_path.iterdir()} == {"config.yaml", "changes.jsonl", ".lock-config"}


def test_the_size_of_learning_steps_may_change_and_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    write(load("go9"), tmp_path, [], said.append)
    rate = load("go9").train.optimizer.learning_rate
    changed = ["train.optimizer.learning_rate=1e-5", "train.optimizer.clip=0.5", "train.schedule.warmup=7"]
    path = write(load("go9", [*changed, "goal.minutes=77"]), tmp_path, [], said.append)
    assert load(path).train.optimizer.learning_rate == 1e-5
    assert said[0] == f"from now on train.optimizer.learning_rate: {rate} -> 1e-05"
    assert len(said) == 3, "goals are nobody's surprise"
    with pytest.raises(ConfigError, match="train.optimizer.kind: .* hold the moments of its optimiser"):
        write(load("go9", ["train.optimizer.kind=sgd"]), tmp_path, [])


def test_so_may_those_of_a_training_of_roles(tmp_path: Path) -> None:
    said: list[str] = []
    write(load_any("dqn_tic_tac_toe"), tmp_path, [])
    write(load_any("dqn_tic_tac_toe", ["x.optimizer.learning_rate=1e-6"]), tmp_path, [], said.append)
    assert said == ["from now on x.optimizer.learning_rate: 0.001 -> 1e-06"]
    with pytest.raises(ConfigError, match="x.batch"):
        write(load_any("dqn_tic_tac_toe", ["x.batch=3"]), tmp_path, [])


def test_one_change_too_many_and_nothing_is_written(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, [])
    before = path.read_bytes()
    with pytest.raises(ConfigError) as caught:
        write(load("go9", ["goal.minutes=77", "run.seed=9"]), tmp_path, [])
    assert caught.value.problems == (
        "run.seed: 1 -> 9 (cannot change: everything so far followed from this seed; begin a new run for another)",
        f"{path}: this run has other settings; keep to them (CONFIG may be this file), or choose another --base",
    )
    assert path.read_bytes() == before


def test_what_cannot_change_is_refused_for_that_even_where_its_new_value_would_need_more(tmp_path: Path) -> None:
    write(load("tic_tac_toe"), tmp_path, [])
    with pytest.raises(ConfigError, match=r"^game.name \(cannot change: .*begin a new run"):
        change(tmp_path, ["game.name=go"])
    with pytest.raises(ConfigError, match="train.lr_scale: expected a number"):
        change(tmp_path, ["train.lr_scale=-5"])


def test_a_change_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(load("go9"), tmp_path, [])
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_bytes", fail)
    with pytest.raises(TengenError, match="cannot be written to: No space left on device"):
        write(load("go9", ["goal.minutes=77"]), tmp_path, [])
    assert path.read_bytes() == before


def without_new_setting(path: Path) -> None:
    """As an older version wrote it."""
    lines = [line for line in path.read_text().splitlines(keepends=True) if "max_chunk_rows" not in line]
    path.write_text("".join(lines))


def test_a_run_from_before_a_setting_goes_on(tmp_path: Path) -> None:
    config = load("go5")
    path = write(config, tmp_path, ["tengen 1, commit abc", "python 3"])
    without_new_setting(path)
    assert config.data.max_chunk_rows == 1_000_000
    assert load(path) == config  # CONFIG may be this file
    before = path.read_bytes()
    write(config, tmp_path, ["tengen 2"])
    assert path.read_bytes() == before
    write(load("go5", ["data.max_chunk_rows=20000"]), tmp_path, ["tengen 2"])
    assert load(path).data.max_chunk_rows == 20_000
    assert "data.max_chunk_rows: 1000000 -> 20000" in path.read_text()


def test_nothing_is_filled_in_for_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(render(load("go5")))
    without_new_setting(path)
    with pytest.raises(ConfigError, match=r"data\.max_chunk_rows: missing, expected a whole number from 10000 to"):
        load(path)


def test_a_run_still_needs_all_older_settings(tmp_path: Path) -> None:
    path = write(load("go5"), tmp_path, ["tengen 1"])
    path.write_text(path.read_text().replace("  ring_rows:", "  # ring_rows:"))
    with pytest.raises(ConfigError, match=r"data\.ring_rows: missing"):
        load(path)


def test_the_first_makes_the_run(tmp_path: Path) -> None:
    base = tmp_path / "new"
    assert join(load("go9"), base, ["a line"])
    assert load(base / "config.yaml") == load("go9")
    assert (base / "config.yaml").read_text().startswith("# a line\n")
    assert not join(load("go9"), base, [])


def test_what_is_free_may_differ_and_the_file_stays_as_it_is(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, [])
    before = path.read_bytes()
    own = load("go9", ["net.name=b2c16", "train.batch=64", "goal.minutes=7", "ring.poll_seconds=1", "gate.games=2"])
    assert not join(own, tmp_path, [], ("net", "train"))
    assert path.read_bytes() == before
    games = load("go9", ["selfplay.games=8"])
    join(games, tmp_path, [], ("selfplay.games", "net.dtype"))
    with pytest.raises(ConfigError):
        join(games, tmp_path, [], ("selfplay.gam", "self"))


def test_what_is_not_free_is_named(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, [])
    other = load("go9", ["net.name=b2c16", "train.batch=64", "search.simulations=99"])
    with pytest.raises(ConfigError) as caught:
        join(other, tmp_path, [], ("train",))
    *named, advice = caught.value.problems
    assert [text.partition(":")[0] for text in named] == ["net.name", "search.simulations"]
    assert "-> 99 (all processes of a run share this setting; `tengen set` changes it for all)" in named[1]
    assert advice.startswith(f"{path}: this run has other settings; keep to them (CONFIG may be this file)")


def test_a_section_of_a_like_name_is_not_meant(tmp_path: Path) -> None:
    write(load("go9"), tmp_path, [])
    with pytest.raises(ConfigError, match="selfplay.games"):
        join(load("go9", ["selfplay.games=8"]), tmp_path, [], ("selfplay.games_room", "net"))


def test_only_looking_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run is there"):
        check(load("go9"), tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    write(load("go9"), tmp_path, [])
    check(load("go9", ["goal.minutes=3"]), tmp_path)
    with pytest.raises(ConfigError, match="this run has other settings"):
        check(load("tic_tac_toe"), tmp_path)


def test_set_changes_a_run_and_says_when_it_takes_effect(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, ["tengen 1"])
    unchanged = f"train.samples_per_row={load('go9').train.samples_per_row}"
    made = change(tmp_path, ["train.lr_scale=0.3", "train.batch=512", unchanged])
    assert [(str(one), rule.change) for one, rule in made.items()] == [
        ("train.batch: 2048 -> 512", "start"),
        ("train.lr_scale: 1.0 -> 0.3", "now"),
    ]
    assert load(path) == load("go9", ["train.lr_scale=0.3", "train.batch=512"])
    assert [(one.key, one.by) for one in changes.read(tmp_path)] == [("train.batch", "set"), ("train.lr_scale", "set")]
    assert change(tmp_path, ["train.lr_scale=0.3"]) == {}


def test_set_refuses_what_cannot_change_and_changes_nothing(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, [])
    before = path.read_bytes()
    with pytest.raises(ConfigError) as caught:
        change(tmp_path, ["train.lr_scale=0.3", "net.name=b2c16"])
    (problem,) = caught.value.problems
    assert problem.startswith("net.name: ")
    assert "begin a new run, with net.start_from to start from this run's network" in problem
    with pytest.raises(ConfigError, match=r"train\.lr_scale: expected a number"):
        change(tmp_path, ["train.lr_scale=-1"])
    with pytest.raises(ConfigError, match=r"cheap_simulations: expected at most search\.simulations, 2"):
        change(tmp_path, ["search.simulations=2"])
    with pytest.raises(ConfigError, match="no run is there"):
        change(tmp_path / "nowhere", ["train.lr_scale=0.3"])
    assert path.read_bytes() == before
    assert changes.read(tmp_path) == []


def test_a_change_by_set_survives_the_command_that_began_the_run(tmp_path: Path) -> None:
    write(load("go9"), tmp_path, [])
    change(tmp_path, ["train.lr_scale=0.3", "search.simulations=99"])
    config, notes = settled(load("go9"), tmp_path)
    assert config == load("go9", ["train.lr_scale=0.3", "search.simulations=99"])
    assert notes == [
        "search.simulations stays 99, as `tengen set` left it",
        "train.lr_scale stays 0.3, as `tengen set` left it",
    ]
    named = ["train.lr_scale=1.0"]
    config, notes = settled(load("go9", named), tmp_path, named)
    assert (config.train.lr_scale, len(notes)) == (1.0, 1), "an explicit --set wins"
    other = load("go9", ["train.lr_scale=0.7"])  # as an edited file has it
    assert settled(other, tmp_path)[0].train.lr_scale == 0.7
    write(other, tmp_path, [])
    assert settled(load("go9"), tmp_path)[0].train.lr_scale == 1.0, "the last start decided about it"


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "selfplay").symlink_to(tmp_path / "unmounted")
    with pytest.raises(TengenError, match="unmounted, which does not exist; make that folder, or mount its disk"):
        write(load("go9"), tmp_path, [])
