"""Settings are complete, good by default, and known without JAX."""

import subprocess
import sys
from dataclasses import asdict
from typing import Any

import pytest

from tengen import schema, train


def problems(**changes: Any) -> list[str]:
    data = asdict(train.TrainSettings())
    for key, value in changes.items():
        section, _, inner = key.partition("__")
        if inner:
            data[section][inner] = value
        else:
            data[section] = value
    return [f"{schema.dotted(path)}: {text}" for path, text in schema.check(train.TrainSettings, data)[1]]


def test_the_defaults_are_allowed_and_explained() -> None:
    assert problems() == []
    for described, _ in schema.values(train.TrainSettings()):
        assert described.help


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 0}, "batch: expected a whole number from 1 to 1000000, got 0"),
        ({"largest_debt": 5}, "largest_debt: expected at least one batch of 1024, got 5"),
        ({"schedule__boundaries": [5, 5]}, "schedule.boundaries: expected rising steps, got 5, 5"),
        (
            {"schedule__length": 100, "schedule__kind": "cosine"},
            "schedule.length: expected more than the 200 steps of the warm-up, got 100",
        ),
        ({"optimizer__kind": "adam"}, 'optimizer.kind: expected one of sgd, adamw, muon, got "adam"'),
        ({"loss__search_share": 1.5}, "loss.search_share: expected a number from 0 to 1, got 1.5"),
        ({"checkpoints__keep": 0}, "checkpoints.keep: expected a whole number from 1 to 1000, got 0"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], message: str) -> None:
    assert problems(**changes) == [message]


def test_settings_do_not_wait_for_jax() -> None:
    code = "import sys, tengen.train; tengen.train.TrainSettings(); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
