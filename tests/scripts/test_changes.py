"""Short runs that decide about a change: which are made, on which cores, and what is told of them."""

import json
import os
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import changes
from tengen.errors import TengenError

Made = list[tuple[str, set[int]]]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """The runs that were made, and the cores that each had. Nothing is played."""
    found: Made = []

    def run(*words: object, environment: object = None) -> None:
        run = next(word for word in words if isinstance(word, Path))
        found.append((run.name, os.sched_getaffinity(0)))
        run.mkdir()
        (run / changes.FIGURES).write_text(json.dumps({"games": 10 * len(found), "steps": 5}))

    monkeypatch.setattr(changes, "_python", run)
    return found


def _asked(folder: Path, **changed: Any) -> Namespace:
    usual = {"config": "tic_tac_toe", "folder": folder, "change": [["large", "train.batch=128"]], "set": []}
    usual |= {"seeds": [1, 2], "seconds": 5.0, "at_once": 1, "own_cores": False, "opponent": []}
    return Namespace(**usual | changed)


def test_every_seed_of_every_change_is_made_once(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes.decide(_asked(tmp_path))
    assert [name for name, _ in made] == ["base-s1", "large-s1", "base-s2", "large-s2"]
    assert "| base | 20 |  | 5 |" in capsys.readouterr().out, "the mean of 10 and 30 games"
    changes.decide(_asked(tmp_path, seeds=[1, 2, 3]))
    assert [name for name, _ in made[4:]] == ["base-s3", "large-s3"]
    with pytest.raises(TengenError, match="was made with other settings, seconds or cores"):
        changes.decide(_asked(tmp_path, seconds=6.0))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_runs_at_a_time_share_no_cores(made: Made, tmp_path: Path) -> None:
    usable = os.sched_getaffinity(0)
    runs = len(usable)
    changes.decide(_asked(tmp_path, at_once=runs, own_cores=True, seeds=list(range(runs))))
    assert all(len(cores) == 1 for _, cores in made)
    assert os.sched_getaffinity(0) == usable, "this process keeps all of them"
    with pytest.raises(TengenError, match="was made with other settings, seconds or cores"):
        changes.decide(_asked(tmp_path))


def test_cores_are_divided_evenly_or_not_at_all() -> None:
    assert changes.own_cores(2, (0, 1, 4, 5)) == [(0, 4), (1, 5)]
    assert changes.own_cores(1, (3,)) == [(3,)]
    for runs in (0, 3, 5):
        with pytest.raises(TengenError, match=f"--at-once {runs}: expected a divisor of the number of cores, 4"):
            changes.own_cores(runs, (0, 1, 2, 3))
