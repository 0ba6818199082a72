"""The configuration in a run directory: never silently another; and one process at a time."""

import contextlib
import dataclasses
import errno
import os
import socket
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

_RATES = ("optimizer.learning_rate", "optimizer.clip", "optimizer.weight_decay")
CHANGEABLE = (
    *("goal", "rating", "data.max_chunk_rows", "shuffle", "ring", "gate", "daemon", "evaluation"),
    *(f"{section}.{rate}" for section in ("train", "host", "agent") for rate in _RATES),
    *("train.schedule", "host.lr_schedule", "agent.lr_schedule"),
)
"""Sections and settings that may change between two starts of a run: how long it goes on, how its parts go about it,
and how large the steps of learning are, which a person must be able to lower when a training diverges."""


AnyConfig = Config | TrainerConfig


class InUse(ConfigError):
    """Another process has what was to be locked. `here`: a process of this machine."""

    def __init__(self, what: object, who: str, other: str) -> None:
        super().__init__([f"{what}: is being used by {who}; wait until it ends, or choose another {other}"])
        self.here = who.endswith(f" on {socket.gethostname()}")


_LOCK = ".lock"
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # of file systems that have none


def write(
    config: AnyConfig, base: Path, provenance: Iterable[str], say: Callable[[str], object] = lambda change: None
) -> Path:
    """Make the run directory `base` one of this configuration, and return the path of its config.yaml.

    A run that has this configuration already is left as it is. If it differs in what is CHANGEABLE alone, its file is
    written anew, and says above what changed and when; `say` is told of what will be different in learning. Raises
    ConfigError if it differs elsewhere or cannot be read, or if `base` cannot be written to; nothing is overwritten
    then.
    """
    path = base / _FILE
    try:
        base.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _write(path, config, provenance)
            return path
    except OSError as error:
        raise ConfigError([_cannot_write(base, error)]) from error
    changes = _changes(path, config)
    if changes:
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        try:
            _write(path, config, [*_header(path), *(f"changed {now}: {change}" for change in changes)])
        except OSError as error:
            raise ConfigError([_cannot_write(base, error)]) from error
    for change in changes:
        if change.startswith(("train.", "host.", "agent.")):
            say(f"from now on {change}")
    return path


def join(config: AnyConfig, base: Path, provenance: Iterable[str], free: Iterable[str] = ()) -> bool:
    """Take part in the run in `base`, which is made if there is none; whether it was.

    Its configuration must be this one, except for what is CHANGEABLE and those settings or sections that are `free`
    (dotted): they are a matter of each part, and the run's file stays as it is. ConfigError if it is another one.
    """
    if not (base / _FILE).exists():
        write(config, base, provenance)
        return True
    check(config, base, free)
    return False


def check(config: AnyConfig, base: Path, free: Iterable[str] = ()) -> None:
    """As `join`, but nothing is made: ConfigError if there is no run."""
    if not (base / _FILE).exists():
        raise ConfigError([f"{base}: no run is there (a run directory has a {_FILE})"])
    _changes(base / _FILE, config, (*CHANGEABLE, *free))


@contextlib.contextmanager
def locked(
    base: Path, *, shared: bool = False, name: str = _LOCK, what: str = "", other: str = "--base"
) -> Iterator[None]:
    """Have the run directory `base` to oneself, or share it with others that share it.

    The system lets go of it even if the process is killed. InUse if another process has it, ConfigError if it cannot
    be written to. `name` and `what` are of a lock that is only for one kind of use; `other` is what to choose instead.
    """
    try:
        import fcntl
    except ImportError:  # a system without such locks
        yield
        return
    try:
        base.mkdir(parents=True, exist_ok=True)
        file = files.open_to_append(base / name, readable=True)
    except OSError as error:
        raise ConfigError([_cannot_write(base, error)]) from error
    with file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read(200).decode(errors="replace").strip() or "another process"
            raise InUse(what or base, who, other) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise ConfigError([_cannot_write(base, error)]) from error
        with contextlib.suppress(OSError):  # only for the message above
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield


def _write(path: Path, config: AnyConfig, comments: Iterable[str]) -> None:
    text = "".join(f"# {line}\n" for line in comments) + render(config)
    files.write_bytes(path, text.encode())


def _header(path: Path) -> list[str]:
    """The comments above the configuration itself, without their signs."""
    lines = []
    for line in files.read_text(path).splitlines():
        if not line.startswith("#") or line == HEADER:
            break
        lines.append(line.removeprefix("#").strip())
    return lines


def _changes(path: Path, config: AnyConfig, free: Iterable[str] = CHANGEABLE) -> list[str]:
    """How the file at `path` differs from `config`, key by key; ConfigError if it may not."""
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


def _cannot_write(base: Path, error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{base}: is a file or lies below one, expected a folder for the run; choose another --base"
    if isinstance(error, PermissionError):
        return f"{base}: may not be written to; choose another --base, or change its permissions"
    return f"{base}: cannot be written to: {error.strerror or error}; choose another --base, or make room"
