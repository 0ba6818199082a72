"""The configuration of a run directory, which never changes silently.

Which settings may change is declared with the settings themselves (`change` and `fixed` of `schema.setting`). Processes
look for changes while they work (`ConfigWatch`).
"""

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from tengen import files, schema
from tengen.config.loading import load_any
from tengen.config.reader import read_overrides, with_values
from tengen.config.rendering import HEADER, render, render_value
from tengen.config.sections import Config
from tengen.config.source import RUN_FILE as _FILE
from tengen.config.trainers import TrainerConfig, current_key
from tengen.errors import ConfigError
from tengen.files import lock
from tengen.run import changes, first_network
from tengen.run.changes import SettingChange

_OWN = ("goal", "rating", "data.max_chunk_rows", "train", "shuffle", "ring", "gate", "daemon", "evaluation")
"""Sections and settings that each process of a run decides for itself, as far as they may change."""
_PATIENCE = 10.0  # seconds for another process that writes the configuration at the same time

AnyConfig = Config | TrainerConfig
C = TypeVar("C", bound=AnyConfig)


def write(
    config: AnyConfig, base: Path, provenance: Iterable[str], say: Callable[[str], object] = lambda change: None
) -> Path:
    """Make `base` the directory of a run with this configuration; returns the path of its config.yaml.

    A run that has this configuration already is left as it is. If only settings differ that may change, its file is
    rewritten, the changes are added to RUN/changes.jsonl, and `say` is called with each one that does not concern the
    goal. Raises ConfigError if other settings differ or the file cannot be read, and FileError if `base` cannot be
    written to; nothing is overwritten then.
    """
    path = base / _FILE
    if not path.exists():
        first_network.check(config, base)
    if base.is_dir():
        files.check_links(base)
    with lock.writable(base):
        base.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _write(path, config, provenance)
            return path
        if not _differences(path, config):
            return path
        with _alone(base):
            made = _differences(path, config)
            _rewrite(path, config, made)
    for change in made:
        if not change.key.startswith("goal."):
            say(f"from now on {change}")
    return path


def change(base: Path, overrides: Sequence[str]) -> dict[SettingChange, schema.Rule]:
    """Change settings (`section.key=value`) of the run in `base`, whether it runs or not.

    Returns the changes; the rules say when they take effect. ConfigError if a setting cannot change, or if there is no
    run; nothing is changed then.
    """
    path = base / _FILE
    _check_run(base)
    with lock.writable(base), _alone(base):
        try:
            config = load_any(base, overrides)
        except ConfigError as error:  # what cannot change is refused for that, whatever else is wrong with it
            rules = {key: rule for key, _, rule, _ in schema.flat(_load(path))}
            named = [each.path for each in read_overrides(overrides)[0] if each.path in rules]
            fixed = [f"{schema.dotted(key)}{_reason(rules[key])}" for key in named if not rules[key].change]
            if fixed:
                raise ConfigError(fixed) from None
            raise ConfigError([problem.replace("(--set ", "(") for problem in error.problems]) from None
        made = _differences(path, config, by="set")
        if made:
            _rewrite(path, config, made)
    return made


def settled(config: C, base: Path, overrides: Sequence[str] = ()) -> tuple[C, list[str]]:
    """The configuration for restarting the run in `base`, with the changes that `tengen set` has made since.

    Such a change stays if `config` still has the old value, unless one of the `overrides` names the setting. Also
    returns a message for each setting that stays.
    """
    path = base / _FILE
    if not path.exists():
        return config, []
    before: dict[str, str] = {}  # the values at the last start
    for made in changes.read(base):
        key = schema.dotted(current_key(config, tuple(made.key.split("."))))
        if made.by == "set":
            before.setdefault(key, made.old)
        else:
            before.pop(key, None)
    if not before:
        return config, []
    named = {schema.dotted(current_key(config, override.path)) for override in read_overrides(overrides)[0]}
    values = {schema.dotted(key): render_value(value) for key, value, *_ in schema.flat(config)}
    kept = {
        key: value
        for key, value, *_ in schema.flat(_load(path))
        if (name := schema.dotted(key)) in before
        and name not in named
        and values.get(name) == before[name] != render_value(value)
    }
    notes = [
        f"{schema.dotted(key)} stays {render_value(value)}, as `tengen set` left it" for key, value in kept.items()
    ]
    return (with_values(config, kept), notes) if kept else (config, [])


def join(config: AnyConfig, base: Path, provenance: Iterable[str], free: Iterable[str] = ()) -> bool:
    """Take part in the run in `base`, which is made if there is none; returns whether it was made.

    Its configuration must be this one, except for the settings that each process decides for itself and the `free`
    ones (dotted keys or sections); the run's file stays as it is. Raises ConfigError if the configurations differ.
    """
    if not (base / _FILE).exists():
        write(config, base, provenance)
        return True
    check(config, base, free)
    return False


def check(config: AnyConfig, base: Path, free: Iterable[str] = ()) -> None:
    """As `join`, but ConfigError if there is no run."""
    _check_run(base)
    files.check_links(base)
    _differences(base / _FILE, config, free=free, own=_OWN)


class ConfigWatch(Generic[C]):
    """Follows RUN/config.yaml for a process with the settings `config`, which may differ from the run's.

    It takes over the settings whose values change in the file, if they can change in a running process.
    """

    def __init__(
        self, base: Path, config: C, say: Callable[[str], object], *, same: bool = True, own: Collection[str] = ()
    ) -> None:
        """`same`: the process was started with the run's settings, so that changes made meanwhile are noticed too.

        Settings that are the process's `own` stay as they are.
        """
        self.config, self._own = config, own
        self._path, self._say = base / _FILE, say
        self._stamp: tuple[int, ...] | None = None
        self._seen: AnyConfig | None = config if same else None

    def look(self) -> C | None:
        """The new settings of this process, if they have changed since the last call. Cheap if they have not."""
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        try:
            new = load_any(self._path)
            if self._seen is None:
                self._seen = new
                return None
            return self._take(self._seen, new)
        except ConfigError as error:
            self._say(f"the settings stay as they are, because the run's new ones cannot be used: {error}")
            return None

    def _take(self, seen: AnyConfig, new: AnyConfig) -> C | None:
        before = {key: value for key, value, *_ in schema.flat(seen)}
        self._seen = new
        changed = {
            key: (value, rule)
            for key, value, rule, _ in schema.flat(new)
            if before.get(key, ...) != value and schema.dotted(key) not in self._own
        }
        for key, (_, rule) in changed.items():
            if rule.change != "now":
                when = "when the run is started again" if rule.change else "never"
                self._say(f"{schema.dotted(key)} was changed, which takes effect {when}")
        now = {key: value for key, (value, rule) in changed.items() if rule.change == "now"}
        own = {key: value for key, value, *_ in schema.flat(self.config)}
        now = {key: value for key, value in now.items() if own.get(key, ...) != value}
        if not now:
            return None
        self.config = with_values(self.config, now)
        for key, value in now.items():
            self._say(f"from now on {schema.dotted(key)}: {render_value(own.get(key))} -> {render_value(value)}")
        return self.config


def _check_run(base: Path) -> None:
    if not (base / _FILE).exists():
        raise ConfigError([f"{base}: no run is there (a run directory has a {_FILE})"])


def _alone(base: Path) -> contextlib.AbstractContextManager[None]:
    """One process at a time changes the configuration."""
    what = f"the configuration of {base}"
    return lock.waiting(lambda: lock.locked(base, name=".lock-config", what=what), _PATIENCE)


def _write(path: Path, config: AnyConfig, comments: Iterable[str]) -> None:
    text = "".join(f"# {line}\n" for line in comments) + render(config)
    files.write_bytes(path, text.encode())


def _rewrite(path: Path, config: AnyConfig, made: Iterable[SettingChange]) -> None:
    comments = [line for line in changes.head(path) if line != HEADER.removeprefix("#").strip()]
    changes.append(path.parent, comments)  # those of a process that was killed before it did
    new = [change.comment for change in made]
    _write(path, config, [*(line for line in comments if changes.of_comment(line) is None), *new])
    changes.append(path.parent, new)


def _load(path: Path) -> AnyConfig:
    try:
        return load_any(path)
    except ConfigError as error:
        advice = f"{path}: the configuration of this run cannot be used; put it right, or choose another --base"
        raise ConfigError([*error.problems, advice]) from None


def _differences(
    path: Path, config: AnyConfig, by: str = "start", free: Iterable[str] = (), own: Iterable[str] | None = None
) -> dict[SettingChange, schema.Rule]:
    """How the file at `path` differs from `config`, key by key, with the rules of these settings.

    ConfigError if settings differ that must not: those that cannot change or are not among `own`, except `free` ones.
    """
    old = _load(path)
    if old == config:
        return {}
    rules = {key: rule for each in (old, config) for key, _, rule, _ in schema.flat(each)}
    old_values, new_values = (
        {key: render_value(value) for key, value, *_ in schema.flat(each)} for each in (old, config)
    )
    absent, time = "(none)", changes.now()
    found: dict[SettingChange, schema.Rule] = {}
    refused = []
    for key in dict.fromkeys([*old_values, *new_values]):
        was, will_be = old_values.get(key, absent), new_values.get(key, absent)
        if was == will_be:
            continue
        change = SettingChange(time, schema.dotted(key), was, will_be, "set" if by == "set" else "start")
        if _among(key, free) or (rules[key].change and (own is None or _among(key, own))):
            found[change] = rules[key]
        else:
            refused.append(f"{change}{_reason(rules[key])}")
    if refused and by == "set":
        raise ConfigError(refused)
    if refused:
        advice = (
            f"{path}: this run has other settings; keep to them (CONFIG may be this file), or choose another --base"
        )
        raise ConfigError([*refused, advice])
    return found


def _among(key: schema.Path, names: Iterable[str]) -> bool:
    prefixes = (tuple(name.split(".")) for name in names)
    return any(key[: len(prefix)] == prefix for prefix in prefixes)


def _reason(rule: schema.Rule) -> str:
    if rule.change:
        return " (all processes of a run share this setting; `tengen set` changes it for all)"
    return f" (cannot change: {rule.fixed or 'what is there was made with it; begin a new run'})"
