"""Upload methods: copying to a directory, a command, or HTTP PUT.

`send` returns when the receiver has everything, and otherwise raises SendError with the reason. Then it may be sent
again: a copy that is there already, or an answer 412 to `If-None-Match: *`, means that it had arrived.

By HTTP, every wait for the receiver is cut off at the deadline, however slowly it reads or answers. (Only the lookup of
its name is not: the system's resolver has its own limits.) The token comes from an environment variable and is only
sent to the configured host, since redirects are not followed. A receiver's answer is left out of messages if it repeats
any part of the token.
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
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tengen import files, redact
from tengen.config.settings.daemon import UploadSettings
from tengen.errors import TengenError
from tengen.interop.lc0.exchange import FILE_NAME as LC0_FILE
from tengen.nets.specs import FILE_NAME

_TAIL = 300  # characters of a command's output
_STREAMS: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}


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

Clock = Callable[[], float]
"""Seconds, as `time.monotonic` counts them."""


class SendError(TengenError):
    """The network did not arrive, as far as is known."""


class HttpSender:
    """Sends a network's file by PUT to an address with `{name}` in it, or with /<network>.safetensors added to it.

    An address that ends in .pb.gz gets the file for Lc0, if the network has one.
    """

    def __init__(self, settings: UploadSettings, clock: Clock = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._address = settings.target or ""
        self._host = urllib.parse.urlsplit(self._address).hostname or ""
        self._secrets: set[str] = set()  # all that were ever sent: a receiver may repeat an earlier one
        self._socket: socket.socket | None = None

    @property
    def warning(self) -> str:
        """A warning if the token could be read on its way."""
        variable = self._settings.token_variable
        if variable is None or self._address.lower().startswith("https:") or _is_here(self._host):
            return ""
        return (
            f"the token in {variable} is sent to {self._host} over plain http, where others on the way can read it; "
            "use an address that begins with https://"
        )

    def send(self, name: str, path: Path) -> None:
        limits = _Limits(self._settings.timeout, self._clock() + self._settings.deadline, self._clock)
        try:
            for_lc0 = path / LC0_FILE
            file = for_lc0 if self._address.endswith(_LC0_ENDING) and for_lc0.exists() else path / FILE_NAME
            self._put(self._address, name, file, limits)
        except SendError:
            raise
        except TimeoutError:
            if limits.overdue:
                words = f"took longer than the deadline, {self._settings.deadline:g} s"
            else:
                words = f"was silent for {self._settings.timeout:g} s"
            raise SendError(f"{self._host} {words}") from None
        except Exception as error:  # whatever is wrong with what a receiver sends
            reason = getattr(error, "strerror", None) or repr(error)
            if isinstance(error, OSError) and error.filename:  # of the network here, not of the receiver
                raise SendError(f"{error.filename}: {reason}") from None
            raise SendError(self._in_words(self._host, reason)) from None

    def cancel(self) -> None:
        sock = self._socket
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _put(self, address: str, name: str, file: Path, limits: "_Limits") -> None:
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
                # Connected by hand, since only our sockets know the deadline; then it is an ordinary connection.
                secure = url.scheme == "https"
                connection.sock = self._socket = _connect(connection.host, connection.port, secure, limits)
                headers["Content-Length"] = str(os.fstat(body.fileno()).st_size)
                headers["Host"] = url.netloc.rpartition("@")[2]
                # A receiver that hangs up early may have given the reason.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.request("PUT", place, body=body, headers=headers)
                answer = connection.getresponse()
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


class _Limits:
    """How long a single wait may take, and when all of them must end."""

    def __init__(self, timeout: float, end: float, clock: Clock) -> None:
        self._timeout, self._end, self._clock = timeout, end, clock
        self.overdue = False
        """Whether it was the deadline that limited the last wait."""

    def wait(self) -> float:
        """Seconds that the next wait may take; TimeoutError if there is no time left."""
        left = self._end - self._clock()
        self.overdue = left <= self._timeout
        if left <= 0:
            raise TimeoutError
        return min(self._timeout, left)


class _Limited(socket.socket):
    """A socket whose waits end at the deadline."""

    limits: _Limits

    def recv_into(self, *args: Any, **more: Any) -> int:
        self.settimeout(self.limits.wait())
        return super().recv_into(*args, **more)


class _Plain(_Limited):
    """Without TLS."""

    def sendall(self, *args: Any, **more: Any) -> None:
        self.settimeout(self.limits.wait())
        super().sendall(*args, **more)


class _Secure(_Limited, ssl.SSLSocket):
    """With TLS."""

    def send(self, *args: Any, **more: Any) -> int:  # `sendall` is made of these
        self.settimeout(self.limits.wait())
        return super().send(*args, **more)


def _connect(host: str, port: int, secure: bool, limits: _Limits) -> "_Plain | _Secure":
    """A connection to the first of the host's addresses that answers, encrypted if `secure`."""
    problem: OSError = OSError(f"no address for {host}")
    for family, kind, protocol, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = _Plain(family, kind, protocol)
        try:
            sock.limits = limits
            sock.settimeout(limits.wait())
            sock.connect(place)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not secure:
                return sock
            context = ssl.create_default_context()
            context.sslsocket_class = _Secure
            sock.settimeout(limits.wait())  # for the whole handshake
            encrypted = context.wrap_socket(sock, server_hostname=host)
            assert isinstance(encrypted, _Secure)
            encrypted.limits = limits
            return encrypted
        except OSError as error:
            problem = error
            sock.close()
        except BaseException:
            sock.close()
            raise
    raise problem


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
