"""JSON files become dataclasses, or errors that name the file and every problem."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from tengen import files
from tengen.errors import OptionError
from tengen.schema import from_json, read_json, setting, write_json


@dataclass(frozen=True)
class Inner:
    rows: int = setting(0, "rows", low=0)


@dataclass(frozen=True)
class Outer:
    schema: Literal[1]
    window: tuple[int, int]
    inner: tuple[Inner, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)


def test_there_and_back(tmp_path: Path) -> None:
    outer = Outer(1, (3, 4), (Inner(5), Inner()), {"size": 9, "komi": [1.5, None]}, {"a": 0.5})
    write_json(tmp_path / "a.json", outer)
    assert read_json(Outer, tmp_path / "a.json") == outer


def test_defaults_apply_and_unknown_keys_are_ignored_unless_strict() -> None:
    text = json.dumps({"schema": 1, "window": [0, 1], "wndow": 2})
    assert from_json(Outer, text) == Outer(1, (0, 1))
    with pytest.raises(OptionError, match="^line 3: wndow: unknown key, did you mean window"):
        from_json(Outer, text, "line 3", strict=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "expected a section with the keys schema, window"),
        ('{"schema": 1}', "window: missing, expected a list of 2, each item a whole number"),
        ('{"schema": true, "window": [0, 1]}', "schema: expected one of 1, got true"),
        ('{"schema": 1, "window": [0, 1, 2]}', "window: expected a list of 2"),
        ('{"schema": 1, "window": [0, 1.5]}', r"window\[1\]: expected a whole number, got 1.5"),
        ('{"schema": 1, "window": [0, 1], "inner": [{"rows": -1}]}', r"inner\[0\].rows: expected .* at least 0"),
        ('{"schema": 1, "window": [0, 1], "options": []}', "options: expected a mapping, got a list"),
        ('{"schema": 1, "window": [0, 1], "shares": {"a": NaN}}', "shares.a: expected a number"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(OptionError, match=f"a.json: .*{problem}"):
        read_json(Outer, path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(files.FileError, match="a.json: cannot be read: No such file"):
        read_json(Outer, tmp_path / "a.json")
