"""The configuration of a run directory: a run never changes it silently."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tengen import files, schema
from tengen.config.loading import load_any
from tengen.config.problems import ConfigError
from tengen.config.rendering import HEADER, render, render_value
from tengen.config.sections import Config
from tengen.config.source import RUN_FILE as _FILE
from tengen.config.trainers import TrainerConfig
from tengen.files import lock
from tengen.run import starting

_RATES = ("optimizer.learning_rate", "optimizer.clip", "optimizer.weight_decay")
CHANGEABLE = (
    *("goal", "rating", "data.max_chunk_rows", "shuffle", "ring", "gate", "daemon", "evaluation"),
    *(f"{section}.{rate}" for section in ("train", "host", "agent") for rate in _RATES),
    *("train.schedule", "host.lr_schedule", "agent.lr_schedule"),
)
"""Sections and settings that may change between two starts of a run: how long it goes on, how its parts work, and how
large the steps of learning are, which a user must be able to lower when training diverges."""

AnyConfig = Config | TrainerConfig


def write(
    config: AnyConfig, base: Path, provenance: Iterable[str], say: Callable[[str], object] = lambda change: None
) -> Path:
    """Make `base` the directory of a run with this configuration; returns the path of its config.yaml.

    A run that has this configuration already is left as it is. If only CHANGEABLE settings differ, its file is written
    anew with a note of what changed and when, and `say` is called with each change to learning. Raises ConfigError if
    other settings differ or the file cannot be read, and FileError if `base` cannot be written to; nothing is
    overwritten then.
    """
    path = base / _FILE
    if not path.exists():
        starting.check(config, base)
    with lock.writable(base):
        base.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _write(path, config, provenance)
            return path
        changes = _changes(path, config)
        if changes:
            now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            _write(path, config, [*_header(path), *(f"changed {now}: {change}" for change in changes)])
    for change in changes:
        if change.startswith(("train.", "host.", "agent.")):
            say(f"from now on {change}")
    return path


def join(config: AnyConfig, base: Path, provenance: Iterable[str], free: Iterable[str] = ()) -> bool:
    """Take part in the run in `base`; returns whether it was made, because there was none.

    Its configuration must be this one, except for CHANGEABLE settings and the `free` ones (dotted keys or sections),
    which each part decides for itself; the run's file stays as it is. Raises ConfigError if it is another one.
    """
    if not (base / _FILE).exists():
        write(config, base, provenance)
        return True
    check(config, base, free)
    return False


def check(config: AnyConfig, base: Path, free: Iterable[str] = ()) -> None:
    """As `join`, but ConfigError if there is no run."""
    if not (base / _FILE).exists():
        raise ConfigError([f"{base}: no run is there (a run directory has a {_FILE})"])
    _changes(base / _FILE, config, (*CHANGEABLE, *free))


def _write(path: Path, config: AnyConfig, comments: Iterable[str]) -> None:
    text = "".join(f"# {line}\n" for line in comments) + render(config)
    files.write_bytes(path, text.encode())


def _header(path: Path) -> list[str]:
    """The comments above the configuration, without #."""
    lines = []
    for line in files.read_text(path).splitlines():
        if not line.startswith("#") or line == HEADER:
            break
        lines.append(line.removeprefix("#").strip())
    return lines


def _changes(path: Path, config: AnyConfig, free: Iterable[str] = CHANGEABLE) -> list[str]:
    """How the file at `path` differs from `config`, key by key; ConfigError if other than `free` settings do."""
    try:
        old = load_any(path)
    except ConfigError as error:
        advice = f"{path}: the configuration of this run cannot be used; put it right, or choose another --base"
        raise ConfigError([*error.problems, advice]) from None
    if old == config:
        return []
    old_values, new_values = dict(_flat(old)), dict(_flat(config))
    absent = "(none)"
    differences = {
        key: f"{schema.dotted(key)}: {old_values.get(key, absent)} -> {new_values.get(key, absent)}"
        for key in dict.fromkeys([*old_values, *new_values])
        if old_values.get(key) != new_values.get(key)
    }
    allowed = tuple(tuple(name.split(".")) for name in free)
    forbidden = [
        text for key, text in differences.items() if not any(key[: len(prefix)] == prefix for prefix in allowed)
    ]
    if forbidden:
        advice = (
            f"{path}: this run has other settings; keep to them (CONFIG may be this file), or choose another --base"
        )
        raise ConfigError([*forbidden, advice])
    return list(differences.values())


def _flat(section: Any, path: schema.Path = ()) -> Iterator[tuple[schema.Path, str]]:
    """The path and the written value of every setting."""
    for setting, value in schema.values(section):
        here = (*path, setting.name)
        if dataclasses.is_dataclass(value):
            yield from _flat(value, here)
        else:
            yield here, render_value(value)
