"""The configuration in a run directory: written once, and never silently another."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tengen import atomic, schema
from tengen.config.load import load
from tengen.config.problems import ConfigError
from tengen.config.render import render, render_value
from tengen.config.sections import Config

_FILE = "config.yaml"


def write(config: Config, base: Path, provenance: Iterable[str]) -> Path:
    """Make the run directory `base` one of this configuration, and return the path of its config.yaml.

    A run that has this configuration already is left as it is. Raises ConfigError if it has another, or one
    that cannot be read, or if `base` cannot be written to; nothing is overwritten then.
    """
    path = base / _FILE
    try:
        base.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            comments = "".join(f"# {line}\n" for line in provenance)
            atomic.write_bytes(path, (comments + render(config)).encode())
            return path
    except OSError as error:
        raise ConfigError([_cannot_write(base, error)]) from error
    _compare(path, config)
    return path


def _compare(path: Path, config: Config) -> None:
    """Raise ConfigError unless the file at `path` holds `config`."""
    try:
        old = load(path)
    except ConfigError as error:
        advice = f"{path}: the configuration of this run cannot be used; put it right, or choose another --base"
        raise ConfigError([*error.problems, advice]) from None
    if old == config:
        return
    old_values, new_values = dict(_flat(old)), dict(_flat(config))
    absent = "(none)"
    differences = [
        f"{schema.dotted(key)}: {old_values.get(key, absent)} -> {new_values.get(key, absent)}"
        for key in dict.fromkeys([*old_values, *new_values])
        if old_values.get(key) != new_values.get(key)
    ]
    advice = f"{path}: this run has other settings; keep to them, or choose another --base"
    raise ConfigError([*differences, advice])


def _flat(section: Any, path: schema.Path = ()) -> Iterator[tuple[schema.Path, str]]:
    """The path and the written value of every setting."""
    for setting, value in schema.values(section):
        here = (*path, setting.name)
        if dataclasses.is_dataclass(value):
            yield from _flat(value, here)
        else:
            yield here, render_value(value)


def _cannot_write(base: Path, error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{base}: is a file or lies below one, expected a folder for the run; choose another --base"
    if isinstance(error, PermissionError):
        return f"{base}: may not be written to; choose another --base, or change its permissions"
    return f"{base}: cannot be written to: {error.strerror or error}; choose another --base, or make room"
