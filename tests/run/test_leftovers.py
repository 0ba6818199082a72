"""What killed processes left behind goes, and nothing else does."""

import os
import time
from pathlib import Path

from tengen.run import leftovers, locks

NAMES = (
    "models/net-s1-d2/.model.safetensors.01234567.part",
    "models/.net-s2-d3.01234567.part/model.safetensors",
    "games/net-s1-d2/.a.sgf.01234567.part",
    "selfplay/net-s1-d2/.0000000001-a.npz.01234567.part",
    "candidates/.net-s2-d3.01234567.part/model.safetensors",
    "candidates/net-s4-d4/.verdict.json.01234567.part",
    "ratings/.results.jsonl.01234567.part",
    ".config.yaml.01234567.part",
    "train/main/.config.yaml.01234567.part",
)
OTHERS = ("models/net-s1-d2/model.safetensors", "shuffled/.00000001-01234567.part/x", "notes.part", ".lock")


def fill(base: Path) -> None:
    for name in (*NAMES, *OTHERS):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text("x")


def age(base: Path, seconds: float) -> None:
    for path in base.rglob("*"):
        os.utime(path, (time.time() - seconds, time.time() - seconds))


def left(base: Path) -> set[str]:
    return {str(path.relative_to(base)) for path in base.rglob("*") if path.is_file()}


def test_only_what_is_old_while_others_may_write(tmp_path: Path) -> None:
    fill(tmp_path)
    assert leftovers.clean(tmp_path) == []
    age(tmp_path, 7200)
    assert len(leftovers.clean(tmp_path)) == len(NAMES)
    assert left(tmp_path) == set(OTHERS)


def test_at_once_where_nobody_else_writes(tmp_path: Path) -> None:
    fill(tmp_path)
    leftovers.clean(tmp_path, alone=True)
    assert left(tmp_path) == {*OTHERS, *NAMES[4:]}
    assert leftovers.clean(tmp_path / "none", alone=True) == []


def test_every_part_does_so_when_it_starts(tmp_path: Path) -> None:
    fill(tmp_path)
    age(tmp_path, 7200)
    with locks.taking_part(tmp_path, "train-main"):
        assert left(tmp_path) == {*OTHERS, ".lock-train-main"}
