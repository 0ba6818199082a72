"""The ways to hand a network on: to a directory, to a command, or by HTTP PUT.

`send` returns when the receiver has all of it, and raises SendError with the reason if not. It may be sent again then:
a copy that is there already, or an answer 412 to `If-None-Match: *`, says that it had arrived.
"""

import contextlib
import http.client
import os
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import urllib.parse
from pathlib import Path
from typing import Protocol

from tengen import atomic, files
from tengen.daemon.settings import UploadSettings
from tengen.errors import TengenError
from tengen.loop.ring import models
from tengen.nets.spec import FILE_NAME

_BLOCK = 1 << 18  # bytes
_TAIL = 300  # characters of what a command or a server says
_THERE_ALREADY = 412


class SendError(TengenError):
    """It did not arrive, as far as is known."""


class Sender(Protocol):
    """One way."""

    def send(self, name: str, path: Path) -> None:
        """Hand on the network in the folder `path`. SendError if that fails; it is cut short by `cancel`."""
        ...

    def cancel(self) -> None:
        """Give up what is being sent, from any thread."""
        ...


def sender(settings: UploadSettings) -> Sender | None:
    """As the configuration says; None for nowhere."""
    if settings.target is None or settings.kind == "none":
        return None
    if settings.kind == "copy":
        return Copy(Path(settings.target))
    if settings.kind == "command":
        return Command(settings.target, settings.timeout)
    return Http(settings.target, settings.token_variable, settings.timeout)


class Copy:
    """To DIRECTORY/<network>, which appears by renaming."""

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
                    atomic.write_bytes(folder / file.name, files.read_bytes(file))

        try:
            models.publish(target, write)
        except TengenError as error:
            raise SendError(str(error)) from error

    def cancel(self) -> None:
        """A copy is made quickly."""


class Command:
    """A program of the user's, with the folder of the network as its last argument; 0 means that it has arrived."""

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
            raise SendError(f"{self._command}: {getattr(error, 'strerror', None) or error}") from None
        self._process = process
        try:
            said, _ = process.communicate(timeout=self._timeout)
        except subprocess.TimeoutExpired:
            self.cancel()
            raise SendError(f"{words[0]} took longer than {self._timeout:g} s") from None
        finally:
            process.wait()
            self._process = None
            if process.stdout is not None:
                process.stdout.close()
        if process.returncode:
            raise SendError(f"{words[0]} ended with {process.returncode}: {said.strip()[-_TAIL:]}".rstrip(": "))

    def cancel(self) -> None:
        process = self._process
        if process is not None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)


class Http:
    """PUT of the network's file to an address: `{name}` in it, or else /<network>.safetensors at its end."""

    def __init__(self, address: str, token_variable: str | None, timeout: float) -> None:
        self._address, self._variable, self._timeout = address, token_variable, timeout
        self._connection: http.client.HTTPConnection | None = None

    def send(self, name: str, path: Path) -> None:
        url = urllib.parse.urlsplit(self._full(name))
        place = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
        try:
            self._put(url, place, path / FILE_NAME)
        except TimeoutError:
            raise SendError(f"{url.hostname} was silent for {self._timeout:g} s") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SendError(f"{url.hostname}: {getattr(error, 'strerror', None) or error!r}") from None

    def cancel(self) -> None:
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _put(self, url: urllib.parse.SplitResult, place: str, file: Path) -> None:
        headers = {"Content-Type": "application/octet-stream", "If-None-Match": "*", "User-Agent": "tengen"}
        if self._variable is not None:
            token = os.environ.get(self._variable, "")
            if not token:
                raise SendError(f"the environment variable {self._variable} is not set, expected the token in it")
            if not (token.isascii() and token.isprintable()):
                raise SendError(f"the environment variable {self._variable} holds no token: it has odd characters")
            headers["Authorization"] = f"Bearer {token}"
        if url.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                url.hostname or "", url.port, timeout=self._timeout, context=context, blocksize=_BLOCK
            )
        else:
            connection = http.client.HTTPConnection(
                url.hostname or "", url.port, timeout=self._timeout, blocksize=_BLOCK
            )
        self._connection = connection
        try:
            with files.open_buffered(file) as body:
                headers["Content-Length"] = str(os.fstat(body.fileno()).st_size)
                # Whoever hangs up early may have said why.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.request("PUT", place, body=body, headers=headers)
                answer = connection.getresponse()
                said = answer.read(4096).decode("utf-8", "replace")
        finally:
            self._connection = None
            connection.close()
        if 200 <= answer.status < 300 or answer.status == _THERE_ALREADY:
            return
        words = " ".join(said.split())[:_TAIL]
        raise SendError(f"{url.hostname} answered {answer.status} {answer.reason}" + (f": {words}" if words else ""))

    def _full(self, name: str) -> str:
        if "{name}" in self._address:
            return self._address.replace("{name}", name)
        return f"{self._address.rstrip('/')}/{name}.safetensors"
