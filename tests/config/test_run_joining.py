"""Taking part in a run: whose settings count, and who may be there at the same time."""

import subprocess
import sys
from pathlib import Path

import pytest

from tengen.config import load
from tengen.config.problems import ConfigError
from tengen.run.directory import check, join, locked, write

HOLD = """
import sys
from pathlib import Path
from tengen.run.directory import locked
with locked(Path(sys.argv[1]), shared=True):
    print("locked", flush=True)
    sys.stdin.read()
"""


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
    assert named[1].endswith(" -> 99")
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


def test_those_that_share_a_run_keep_out_who_wants_it_alone(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with locked(tmp_path, shared=True), locked(tmp_path, shared=True):
            pass
        with pytest.raises(ConfigError, match=r"is being used by process \d+ on .*another --base"), locked(tmp_path):
            pass
        with locked(tmp_path, name=".lock-other"):  # of its own kind
            pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(tmp_path), pytest.raises(ConfigError), locked(tmp_path, shared=True):
        pass
    with locked(tmp_path, shared=True):
        pass


def test_what_is_used_is_named(tmp_path: Path) -> None:
    with (
        locked(tmp_path, name=".lock-x"),
        pytest.raises(ConfigError, match=r"^the cook: is being used by .*, or choose another --name$"),
        locked(tmp_path, name=".lock-x", what="the cook", other="--name"),
    ):
        pass
