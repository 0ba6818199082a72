"""The auditor finds what it is there to find."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tengen.data.shuffle.folders import newest
from tengen.run import networks
from tests.helpers import spoiled_files
from tests.helpers.pipeline_data import put
from tests.helpers.run_audit import audit
from tests.helpers.spoiled_files import fill, shuffler


@pytest.fixture
def base(tmp_path: Path, saved: list[Path]) -> Path:
    """A small run with which nothing is wrong."""
    fill(tmp_path)
    shuffler(tmp_path, []).run_once()
    for number, place in enumerate(("models", "models", "rejected", "candidates"), 1):
        verdict = {"accepted": True, "number": number} if place == "models" else {"accepted": False}
        entry = put(tmp_path, place, 100 * number, saved[0], **({} if place == "candidates" else verdict))
        (entry.path / "made.json").write_text("{}")
    (tmp_path / "ratings").mkdir()
    (tmp_path / "ratings" / "results.jsonl").write_text(_result(200, 100) + _result(300, 200))
    assert audit(tmp_path).problems == []
    return tmp_path


def _name(samples: int) -> str:
    return networks.name_of("tic_tac_toe", "main", samples, 2 * samples)


def _result(a: int, b: int) -> str:
    return json.dumps({"schema": 1, "a": _name(a), "b": _name(b), "wins": 1, "draws": 0, "losses": 1}) + "\n"


def _chunk(base: Path) -> Path:
    return sorted((base / "selfplay" / "random").glob("*.npz"))[3]


def _shuffled(base: Path) -> Path:
    return sorted((base / "shuffled").glob("*/train/*.npz"))[0]


def _index(base: Path, **changes: object) -> None:
    made = newest(base)
    assert made is not None
    (made.folder / "index.json").write_text(json.dumps({**made.index, **changes}))


def _moved_side(base: Path) -> None:
    made = newest(base)
    assert made is not None
    _index(base, settings={**made.index["settings"], "validation_share": 0.9})


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "rows twice": (lambda base: shutil.copy(_chunk(base), _chunk(base).with_name("0000000077-b.npz")), "twice"),
    "a row lost": (lambda base: _chunk(base).unlink(), "rows are in no chunk"),
    "half a chunk": (lambda base: spoiled_files.halved(_chunk(base)), "BadZipFile"),
    "a changed chunk": (lambda base: spoiled_files.flipped(_chunk(base)), "checksum|CRC"),
    "half a shuffled file": (lambda base: spoiled_files.halved(_shuffled(base)), "BadZipFile"),
    "a shuffled file too many": (
        lambda base: shutil.copy(_shuffled(base), _shuffled(base).with_name("00099.npz")),
        "not as its index says",
    ),
    "a file twice in a shuffle": (
        lambda base: shutil.copy(_shuffled(base), _shuffled(base).with_name("00001.npz")),
        "rows are in it twice",
    ),
    "another total": (lambda base: _index(base, total_rows=999), "counts rows that are not"),
    "the wrong side": (_moved_side, "rows of the wrong side"),
    "a network in two places": (
        lambda base: shutil.copytree(base / "rejected" / _name(300), base / "candidates" / _name(300)),
        "also in",
    ),
    "a network without its file": (
        lambda base: (base / "models" / _name(100) / "model.safetensors").unlink(),
        "model.safetensors|No such file",
    ),
    "a number twice": (
        lambda base: (base / "models" / _name(100) / "verdict.json").write_text('{"accepted": true, "number": 2}'),
        "have the numbers",
    ),
    "a rejected one among the models": (
        lambda base: (base / "models" / _name(100) / "verdict.json").write_text('{"accepted": false}'),
        "the verdict says otherwise",
    ),
    "a pair twice": (
        lambda base: (base / "ratings" / "results.jsonl").write_text(2 * _result(200, 100)),
        "a pair of players is there twice",
    ),
    "half a notice": (
        lambda base: ((base / "parts").mkdir(), (base / "parts" / "gate-gate.json").write_text("{")),
        "JSONDecodeError",
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_found(base: Path, what: str) -> None:
    spoil, expected = FAULTS[what]
    spoil(base)
    problems = audit(base).problems
    assert any(word in problem for word in expected.split("|") for problem in problems), problems
