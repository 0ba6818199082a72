"""Whether a Ray cluster answers at an address, found out before Ray itself, which tries for minutes, is imported."""

import os
import secrets
import socket
import sys
from pathlib import Path
from typing import Any

from tengen import files
from tengen.errors import OptionError, TengenError

_CONNECT = 5.0  # seconds in which the address must answer
_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"  # the call with which Ray's own programs begin
_MODE, _TOKEN, _TOKEN_FILE = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"


def own_token() -> None:
    """Let the Ray that this process is about to start accept this process alone.

    By default Ray writes a token into the home directory, and later clusters of the user then ask for it. It reads the
    variables when it is imported.
    """
    if _MODE not in os.environ and "ray" not in sys.modules:
        os.environ[_MODE] = "token"
        os.environ.setdefault(_TOKEN, secrets.token_hex(32))


def check(address: str) -> None:
    """OptionError unless Ray answers at `HOST:PORT` or, for `auto`, if that must be left to Ray.

    If the cluster asks for a token and there is one, Ray is told to use it.
    """
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    odd = not host or not port.isdecimal() or not 0 < int(port) < 1 << 16
    if odd or "://" in address or any(map(str.isspace, address)):
        raise OptionError(
            f"--address: expected HOST:PORT of the head node, or auto on one of its nodes, got {address!r}"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT).close()
    except (OSError, UnicodeError) as error:
        raise OptionError(
            f"--address {address}: no cluster answers there ({error}); `ray start --head` starts one"
        ) from None
    if os.environ.get("RAY_USE_TLS", "0") == "0":
        _check_ray(address)


def _check_ray(address: str) -> None:
    try:
        import grpc  # comes with Ray
    except ImportError:
        return
    code, found = grpc.StatusCode, _ask(address, "")
    if found is code.UNAUTHENTICATED:
        os.environ.setdefault(_MODE, "token")
        token = _known_token() if os.environ[_MODE].lower() == "token" else ""
        if not token:
            raise OptionError(
                f"--address {address}: the cluster asks for a token, and there is none here: set {_TOKEN}, or copy "
                f"~/.ray/auth_token from its head node; {_MODE} must be unset or token"
            )
        found = _ask(address, token)
    if found is code.UNAUTHENTICATED:
        raise OptionError(f"--address {address}: the cluster has another token than this node ({_TOKEN})")
    if found is not code.OK:
        raise OptionError(
            f"--address {address}: what answers there is no Ray cluster, or hangs "
            f"({found.name.replace('_', ' ').lower()}); `ray start --head` says its address"
        )


def _ask(address: str, token: str) -> Any:
    """gRPC's code of the answer to the question whether a cluster lives."""
    import grpc

    sent = (("authorization", f"Bearer {token}"),) if token else ()
    try:
        with grpc.insecure_channel(address) as channel:
            channel.unary_unary(_ALIVE)(b"", timeout=_CONNECT, metadata=sent)
    except grpc.RpcError as error:
        return error.code()  # type: ignore[attr-defined]
    return grpc.StatusCode.OK


def _known_token() -> str:
    """The token that Ray would use; empty if there is none."""
    if token := os.environ.get(_TOKEN, "").strip():
        return token
    path = os.environ.get(_TOKEN_FILE) or Path.home() / ".ray" / "auth_token"
    try:
        return files.read_text(path).strip()
    except (OSError, RuntimeError, TengenError, UnicodeError):
        return ""
