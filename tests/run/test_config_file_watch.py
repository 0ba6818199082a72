"""A running process takes over what may change while it runs, and reports the rest."""

from pathlib import Path

from tengen.config import load
from tengen.run.config_file import ConfigWatch, change, write


def test_takes_over_what_changes_and_nothing_else(tmp_path: Path) -> None:
    write(load("go9"), tmp_path, ["tengen 1"])
    said: list[str] = []
    own = load("go9", ["selfplay.games=64", "ring.poll_seconds=9"])  # decided by this process
    watch = ConfigWatch(tmp_path, own, said.append, same=False)
    assert watch.look() is None
    change(tmp_path, ["train.lr_scale=0.3", "search.simulations=99", "train.batch=512"])
    expected = ["selfplay.games=64", "ring.poll_seconds=9", "train.lr_scale=0.3", "search.simulations=99"]
    assert watch.look() == load("go9", expected) == watch.config
    assert said == [
        "train.batch was changed, which takes effect when the run is started again",
        f"from now on search.simulations: {own.search.simulations} -> 99",
        "from now on train.lr_scale: 1.0 -> 0.3",
    ]
    assert watch.look() is None


def test_notices_a_change_from_before_its_first_look(tmp_path: Path) -> None:
    config = load("go9")
    write(config, tmp_path, ["tengen 1"])
    change(tmp_path, ["goal.minutes=7"])
    found = ConfigWatch(tmp_path, config, [].append).look()
    assert found is not None
    assert found.goal.minutes == 7


def test_what_is_its_own_stays_and_is_no_reason_to_refuse_the_rest(tmp_path: Path) -> None:
    go = ["game.observation=katago", "selfplay.value_horizon=6"]
    write(load("go5", go), tmp_path, ["tengen 1"])
    own = load("go5", [go[0], "selfplay.value_horizon=0", "data.format=katago"])  # which needs a horizon of 0
    watch = ConfigWatch(tmp_path, own, [].append, same=False, own=["selfplay.value_horizon"])
    assert watch.look() is None
    change(tmp_path, ["selfplay.value_horizon=3", "selfplay.temperature=0.9"])
    found = watch.look()
    assert found is not None
    assert (found.selfplay.value_horizon, found.selfplay.temperature) == (0, 0.9)


def test_goes_on_with_its_settings_if_the_file_is_damaged(tmp_path: Path) -> None:
    path = write(load("go9"), tmp_path, ["tengen 1"])
    said: list[str] = []
    watch = ConfigWatch(tmp_path, load("go9"), said.append)
    whole = path.read_text()
    path.write_text("nonsense")
    assert watch.look() is None
    assert said[0].startswith("the settings stay as they are, because the run's new ones cannot be used: ")
    path.write_text(whole.replace("lr_scale: 1.0", "lr_scale: 0.25"))
    found = watch.look()
    assert found is not None
    assert found.train.lr_scale == 0.25
    path.unlink()
    assert watch.look() is None
