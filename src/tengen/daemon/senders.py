"""Upload methods: copying to a directory, a command, or HTTP PUT (`http.py`).

`send` returns when the receiver has everything, and otherwise raises SendError with the reason. Then it may be sent
again: a copy that is there already, or an answer 412 to `If-None-Match: *`, means that it had arrived.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Protocol

from tengen import files, redact
from tengen.config.settings.daemon import UploadSettings
from tengen.daemon.http import HttpSender, SendError
from tengen.errors import TengenError

_TAIL = 300  # characters of a command's output


class Sender(Protocol):
    """An upload method."""

    @property
    def warning(self) -> str:
        """A warning for the user before anything is sent; empty if there is none."""
        ...

    def send(self, name: str, path: Path) -> None:
        """Send the network in the folder `path`. SendError if that fails; `cancel` cuts it short."""
        ...

    def cancel(self) -> None:
        """Give up what is being sent. Any thread may call this."""
        ...


def sender(settings: UploadSettings) -> Sender | None:
    """The sender that the settings describe; None if there is nothing to send to."""
    if settings.target is None or settings.kind == "none":
        return None
    if settings.kind == "copy":
        return CopySender(Path(settings.target))
    if settings.kind == "command":
        return CommandSender(settings.target, settings.timeout)
    return HttpSender(settings)


class CopySender:
    """Copies to DIRECTORY/<network>, which appears by renaming."""

    warning = ""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def send(self, name: str, path: Path) -> None:
        target = self._directory / name
        if target.exists():
            return
        for left in self._directory.glob(f".{name}.*.part"):  # by a daemon that was killed
            shutil.rmtree(left, ignore_errors=True)

        def write(folder: Path) -> None:
            for file in sorted(path.iterdir()):
                if file.is_file():
                    files.write_bytes(folder / file.name, files.read_bytes(file))

        try:
            files.write_folder(target, write)
        except TengenError as error:
            raise SendError(str(error)) from error

    def cancel(self) -> None:
        """A copy is made quickly."""


class CommandSender:
    """Runs a program with the folder of the network as its last argument; exit code 0 means that it has arrived."""

    warning = ""

    def __init__(self, command: str, timeout: float) -> None:
        self._command, self._timeout = command, timeout
        self._process: subprocess.Popen[str] | None = None

    def send(self, name: str, path: Path) -> None:
        try:
            words = [*shlex.split(self._command), str(path.absolute())]
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # so that all that it starts can be ended with it
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SendError(f"{redact.hide(self._command)}: {reason}") from None
        self._process = process
        try:
            output, _ = process.communicate(timeout=self._timeout)
        except subprocess.TimeoutExpired:
            self.cancel()
            raise SendError(f"{words[0]} took longer than {self._timeout:g} s") from None
        finally:
            process.wait()
            self._process = None
            if process.stdout is not None:
                process.stdout.close()
        if process.returncode:
            tail = redact.hide(output.strip())[-_TAIL:]
            raise SendError(f"{words[0]} ended with {process.returncode}: {tail}".rstrip(": "))

    def cancel(self) -> None:
        process = self._process
        if process is not None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
