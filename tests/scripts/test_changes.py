"""Short runs that decide about a change: which are made, on which cores, and what is told of them."""

import json
import os
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from benchmarks import changes
from tengen.cores import cores
from tengen.errors import TengenError
from tests.helpers.patience import LONG


@dataclass
class Made:
    """The runs that were made, in the order in which they ended, and the cores that each had."""

    runs: list[tuple[str, set[int]]] = field(default_factory=list)
    together: Barrier = field(default_factory=lambda: Barrier(1))  # each waits until so many are being made

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.runs]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """Nothing is played."""
    found = Made()

    def run(*words: object, environment: object = None) -> None:
        run = next(word for word in words if isinstance(word, Path))
        own = set(cores())
        found.together.wait()
        found.runs.append((run.name, own))
        run.mkdir()
        (run / changes.FIGURES).write_text(json.dumps({"games": 10 * len(found.runs), "steps": 5}))

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
    assert made.names == ["base-s1", "large-s1", "base-s2", "large-s2"]
    assert "| base | 20 |  | 5 |" in capsys.readouterr().out, "the mean of 10 and 30 games"
    changes.decide(_asked(tmp_path, seeds=[1, 2, 3]))
    assert made.names[4:] == ["base-s3", "large-s3"]
    with pytest.raises(TengenError, match="was made with other settings, seconds or cores"):
        changes.decide(_asked(tmp_path, seconds=6.0))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(cores()) < 2, reason="needs two cores and Linux")
def test_runs_at_a_time_share_no_cores(made: Made, tmp_path: Path) -> None:
    usable = set(cores())
    runs = len(usable)
    made.together = Barrier(runs, timeout=LONG)
    changes.decide(_asked(tmp_path, at_once=runs, own_cores=True, seeds=list(range(runs))))
    assert len(made.runs) == 2 * runs
    for first in (0, runs):  # those that were made together
        assert sorted(core for _, own in made.runs[first : first + runs] for core in own) == sorted(usable)
    assert set(cores()) == usable, "this process keeps all of them"
    with pytest.raises(TengenError, match="was made with other settings, seconds or cores"):
        changes.decide(_asked(tmp_path, seeds=[0]))


def test_cores_are_divided_evenly_or_not_at_all() -> None:
    assert changes.own_cores(2, (0, 1, 4, 5)) == [(0, 4), (1, 5)]
    assert changes.own_cores(1, (3,)) == [(3,)]
    for runs in (0, 3, 5):
        with pytest.raises(TengenError, match=f"--at-once {runs}: expected a divisor of the number of cores, 4"):
            changes.own_cores(runs, (0, 1, 2, 3))
