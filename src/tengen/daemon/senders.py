"""Upload methods: copying to a directory, a command, or HTTP PUT (docs/daemon.md).

`send` returns when the receiver has everything, and otherwise raises SendError with the reason. Then it may be sent
again: a copy that is there already, or an answer 412 to `If-None-Match: *`, means that it had arrived.
"""

import base64
import binascii
import contextlib
import http.client
import ipaddress
import os
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import urllib.parse
from pathlib import Path
from typing import Any

from tengen import files, redact
from tengen.config.settings.data import UploadSettings
from tengen.errors import TengenError
from tengen.interop.lc0.exchange import FILE_NAME as LC0_FILE
from tengen.nets.specs import FILE_NAME

_TAIL = 300  # characters of a command's output
_STREAMS: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}


class SendError(TengenError):
    """The network did not arrive, as far as is known."""


class Sender:
    """An upload method."""

    @property
    def warning(self) -> str:
        """A warning for the user before anything is sent; empty if there is none."""
        return ""

    def send(self, name: str, path: Path) -> None:
        """Send the network in the folder `path`. SendError if that fails; `cancel` cuts it short."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Give up what is being sent, if that could take long. Any thread may call this."""


def sender(settings: UploadSettings) -> Sender | None:
    """The sender that the settings describe; None if there is nothing to send to."""
    if settings.target is None or settings.kind == "none":
        return None
    if settings.kind == "copy":
        return CopySender(Path(settings.target))
    if settings.kind == "command":
        return CommandSender(settings.target, settings.timeout)
    return HttpSender(settings)


class CopySender(Sender):
    """Copies to DIRECTORY/<network>, which appears by renaming."""

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


class CommandSender(Sender):
    """Runs a program with the folder of the network as its last argument; exit code 0 means that it has arrived."""

    def __init__(self, command: str, timeout: float) -> None:
        self._command, self._timeout = command, timeout
        self._process: subprocess.Popen[str] | None = None

    def send(self, name: str, path: Path) -> None:
        try:
            words = [*shlex.split(self._command), str(path.absolute())]
            # In a new session, so that all that it starts can be ended with it.
            process = subprocess.Popen(words, **_STREAMS, text=True, errors="replace", start_new_session=True)
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


_LC0_ENDING = ".pb.gz"
_BLOCK = 1 << 18  # bytes
_SHOWN = 300  # characters of a receiver's answer
_THERE_ALREADY = 412
_PORTS = {"https": http.client.HTTPS_PORT, "http": http.client.HTTP_PORT}


class HttpSender(Sender):
    """Sends a network's file by PUT to an address with `{name}` in it, or with /<network>.safetensors added to it.

    An address that ends in .pb.gz gets the file for Lc0, if the network has one.
    """

    def __init__(self, settings: UploadSettings) -> None:
        self._settings = settings
        self._address = settings.target or ""
        self._host = urllib.parse.urlsplit(self._address).hostname or ""
        self._secrets: set[str] = set()  # all that were ever sent: a receiver may repeat an earlier one
        self._socket: socket.socket | None = None
        self._late = threading.Event()  # whether the deadline of the current upload is over

    @property
    def warning(self) -> str:
        variable = self._settings.token_variable
        if variable is None or self._address.lower().startswith("https:") or _is_here(self._host):
            return ""
        return (
            f"the token in {variable} is sent to {self._host} over plain http, where others on the way can read it; "
            "use an address that begins with https://"
        )

    def send(self, name: str, path: Path) -> None:
        self._late.clear()
        timer = threading.Timer(self._settings.deadline, self._expire)
        timer.daemon = True
        timer.start()
        try:
            for_lc0 = path / LC0_FILE
            file = for_lc0 if self._address.endswith(_LC0_ENDING) and for_lc0.exists() else path / FILE_NAME
            self._put(self._address, name, file)
        except SendError:
            raise
        except Exception as error:  # whatever is wrong with what a receiver sends
            if self._late.is_set():
                words = f"took longer than the deadline, {self._settings.deadline:g} s"
                raise SendError(f"{self._host} {words}") from None
            if isinstance(error, TimeoutError):
                raise SendError(f"{self._host} was silent for {self._settings.timeout:g} s") from None
            reason = getattr(error, "strerror", None) or repr(error)
            if isinstance(error, OSError) and error.filename:  # of the network here, not of the receiver
                raise SendError(f"{error.filename}: {reason}") from None
            raise SendError(self._in_words(self._host, reason)) from None
        finally:
            timer.cancel()

    def _expire(self) -> None:
        self._late.set()
        self.cancel()

    def cancel(self) -> None:
        sock = self._socket
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _put(self, address: str, name: str, file: Path) -> None:
        headers = {"Content-Type": "application/octet-stream", "If-None-Match": "*", "User-Agent": "tengen"}
        token = self._token()
        if token is not None:
            if redact.TOKEN in address:
                address = address.replace(redact.TOKEN, urllib.parse.quote(token, safe=""))
            else:
                headers["Authorization"] = token if " " in token else f"Bearer {token}"
        full = address.replace("{name}", name) if "{name}" in address else f"{address.rstrip('/')}/{name}.safetensors"
        url = urllib.parse.urlsplit(full)
        place = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
        connection = http.client.HTTPConnection(self._host, url.port or _PORTS[url.scheme], blocksize=_BLOCK)
        with files.open_buffered(file) as body:
            try:
                self._connect(connection, url.scheme == "https")
                headers["Content-Length"] = str(os.fstat(body.fileno()).st_size)
                headers["Host"] = url.netloc.rpartition("@")[2]
                # A receiver that hangs up early may have given the reason.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.request("PUT", place, body=body, headers=headers)
                with connection.getresponse() as answer:
                    if self._late.is_set():  # an answer that is cut off may look like a whole one
                        raise TimeoutError
                    if 200 <= answer.status < 300 or answer.status == _THERE_ALREADY:
                        return
                    said = answer.read(4096).decode("utf-8", "replace")
            finally:
                self._socket = None
                connection.close()
        if 300 <= answer.status < 400 and (elsewhere := answer.getheader("Location")):
            said = f"redirects are not followed; this one is to {elsewhere}"
        said = f"{answer.reason}: {' '.join(said.split())}".rstrip(": ")
        raise SendError(self._in_words(f"{self._host} answered {answer.status}", said, " "))

    def _connect(self, connection: http.client.HTTPConnection, secure: bool) -> None:
        """Connect so that `cancel` can cut it off from the beginning, even before it is encrypted."""
        sock = socket.create_connection((connection.host, connection.port), self._settings.timeout)
        connection.sock = self._socket = sock
        if self._late.is_set():
            raise TimeoutError
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if secure:
            context = ssl.create_default_context()
            encrypted = context.wrap_socket(sock, server_hostname=connection.host, do_handshake_on_connect=False)
            connection.sock = self._socket = encrypted
            encrypted.do_handshake()

    def _token(self) -> str | None:
        """The token from the environment; None if none is configured."""
        variable = self._settings.token_variable
        if variable is None:
            return None
        token = os.environ.get(variable, "")
        if not token:
            raise SendError(f"the environment variable {variable} is not set, expected the token in it")
        if not (token.isascii() and token.isprintable()):
            raise SendError(f"the environment variable {variable} holds no token: it has odd characters")
        self._secrets |= _parts(token)
        return token

    def _in_words(self, ours: str, theirs: str, between: str = ": ") -> str:
        """What went wrong, in our words and in the receiver's, without secrets."""
        if any(redact.repeats(theirs, secret) for secret in self._secrets):
            return f"{ours} (what it said is left out, because it repeats the token)"
        return f"{ours}{between}{redact.hide(theirs)[:_SHOWN]}".rstrip(": ")


def _is_here(host: str) -> bool:
    """Whether what is sent to `host` stays on this machine."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _parts(token: str) -> set[str]:
    """All parts of a token that must stay secret; for `Basic ...`, also the password in it."""
    scheme, _, value = token.partition(" ")
    parts = {value or token}
    if scheme.lower() == "basic":
        with contextlib.suppress(binascii.Error, UnicodeDecodeError, ValueError):
            parts.add(base64.b64decode(value, validate=True).decode().partition(":")[2])
    return {part for part in parts if part}
