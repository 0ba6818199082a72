"""Uploads of networks: a queue on the disk, and a thread that never gives up and blocks nothing.

RUN/uploads/<network>.json waits, RUN/uploads/done/<network>.json has arrived. An entry is written before the network,
and moves when the receiver has confirmed that it has everything. So nothing is forgotten, whenever the daemon dies, and
what has arrived is not sent again. If the answer was lost, the request asks the receiver not to store it twice.
"""

import contextlib
import threading
import time
from pathlib import Path
from typing import Any, Self

from tengen import files, schema
from tengen.config.settings.data import UploadSettings
from tengen.daemon import senders
from tengen.daemon.senders import Sender
from tengen.nets.specs import FILE_NAME
from tengen.run import networks

FOLDER, DONE = "uploads", "done"
_LONGEST = 600.0  # seconds between two attempts
_PATIENCE = 5.0  # seconds for an upload under way, at the end


class Uploads:
    """The networks of one run. Any thread may call any method."""

    def __init__(self, base: Path, settings: UploadSettings, say: Any) -> None:
        self._base, self._settings, self._say = base, settings, say
        self._folder = base / FOLDER
        self._changed = threading.Condition()
        self._states: dict[str, str] = {}
        self._due: dict[str, tuple[float, float]] = {}  # name -> when it is tried, and the pause after that
        self._closed = False
        self._sender: Sender | None = senders.sender(settings)
        self._thread = threading.Thread(target=self._work, name="tengen-uploads", daemon=True)

    def __enter__(self) -> Self:
        for path in files.inside(self._folder / DONE):
            self._states[path.stem] = "done"
        for path in sorted(files.inside(self._folder), key=lambda path: networks.parse(path.stem) or (0, "")):
            if path.suffix != ".json" or path.name.startswith("."):
                continue
            if networks.known(self._base, path.stem) is not None:
                self._wait(path.stem)
            elif networks.parse(path.stem) is not None:  # the daemon died before the network was made
                with contextlib.suppress(OSError):
                    path.unlink()
        if self._sender is not None:
            if self._sender.warning:
                self._say("warning", self._sender.warning)
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._sender is not None:
            self._sender.cancel()
            self._thread.join(_PATIENCE)

    def put(self, name: str) -> None:
        """Upload this network once it exists, unless that was done before or uploads are off."""
        if self._sender is None or self.state(name):
            return
        path = self._folder / f"{name}.json"
        files.make_folder(path.parent)
        schema.write_json(path, {"schema": 1, "name": name, "since": time.time()})
        with self._changed:
            self._wait(name)
            self._changed.notify_all()

    def wake(self) -> None:
        """Look again, because a network has appeared."""
        with self._changed:
            self._changed.notify_all()

    def state(self, name: str) -> str:
        """waiting, uploading, done, or failed with the reason; empty if there is nothing to do for it."""
        with self._changed:
            return self._states.get(name, "")

    def _wait(self, name: str) -> None:
        self._states[name] = "waiting"
        self._due[name] = (0.0, self._settings.first_pause)

    def _work(self) -> None:
        while (found := self._next()) is not None:
            name, path = found
            assert self._sender is not None
            try:
                self._sender.send(name, path)
            except Exception as error:  # whatever goes wrong with one, the others are uploaded
                self._failed(name, f"{error}" or type(error).__name__)
            else:
                self._arrived(name)

    def _next(self) -> tuple[str, Path] | None:
        """The next that is due, in the order of training, and where it is; None at the end."""
        with self._changed:
            while not self._closed:
                now, made, again = time.monotonic(), dict[str, Path](), list[float]()
                for name, (due, _) in self._due.items():
                    try:
                        path = networks.known(self._base, name)
                        if path is not None and (path / FILE_NAME).exists():
                            made[name] = path
                            again.append(due)
                    except OSError:  # the disk, or the network it is on, does not answer
                        again.append(now + self._settings.first_pause)
                ready = [name for name in made if self._due[name][0] <= now]
                if ready:
                    name = min(ready, key=lambda name: (networks.parse(name) or (0, ""), name))
                    self._states[name] = "uploading"
                    return name, made[name]
                self._changed.wait(min(again) - now if again else None)
            return None

    def _arrived(self, name: str) -> None:
        try:
            (self._folder / DONE).mkdir(parents=True, exist_ok=True)
            (self._folder / f"{name}.json").replace(self._folder / DONE / f"{name}.json")
            files.sync_folder(self._folder / DONE)
        except OSError as error:
            # It would be sent once more after a restart; this process knows better.
            self._say("error", str(files.cannot_write(self._folder / DONE / f"{name}.json", error)))
        with self._changed:
            self._states[name] = "done"
            del self._due[name]
        self._say("info", f"{name} was uploaded")

    def _failed(self, name: str, reason: str) -> None:
        with self._changed:
            if self._closed:
                return
            _, pause = self._due[name]
            self._states[name] = f"failed ({reason})"
            self._due[name] = (time.monotonic() + pause, min(2 * pause, _LONGEST))
        self._say("warning", f"{name} could not be uploaded: {reason}; again in {pause:,.4g} s")
