"""Notices when the configuration of a run is changed while a process works with it.

watch = ConfigWatch(base, config, say)
...
if (config := watch.look()) is not None:    # now and then
    part.change(config)
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic

from tengen import schema
from tengen.config.loading import load_any
from tengen.config.override import with_values
from tengen.config.problems import ConfigError
from tengen.config.rendering import render_value
from tengen.config.source import RUN_FILE
from tengen.run.directory import AnyConfig, C


class ConfigWatch(Generic[C]):
    """Follows RUN/config.yaml for a process with the settings `config`, which may differ from the run's.

    It takes over the settings whose values change in the file, if they can change in a running process.
    """

    def __init__(self, base: Path, config: C, say: Callable[[str], object], *, same: bool = True) -> None:
        """`same`: the process was started with the run's settings, so that changes made meanwhile are noticed too."""
        self.config = config
        self._path, self._say = base / RUN_FILE, say
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
        changed = {key: (value, rule) for key, value, rule, _ in schema.flat(new) if before.get(key, ...) != value}
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
