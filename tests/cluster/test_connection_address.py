"""An address at which no Ray cluster answers is one line at once: Ray itself tries for minutes."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest

from tengen.cluster import connection
from tengen.cluster.connection import connected
from tengen.config.settings.parts import ClusterSettings
from tengen.errors import OptionError, TengenError

CALL = "/ray.rpc.NodeInfoGcsService/CheckAlive"


@pytest.fixture(autouse=True)
def environment(tmp_path: Path) -> Iterator[None]:
    """Without variables of Ray, and with an empty home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    with patch.dict(os.environ, {**kept, "HOME": str(tmp_path)}, clear=True):
        yield


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("127.0.0.1:1", r"^--address 127.0.0.1:1: no cluster answers there \(.*\); `ray start --head` starts one$"),
        ("[::1]:1", r"^--address \[::1\]:1: no cluster answers there"),
        ("127.0.0.1:99999", "^--address: expected HOST:PORT of the head node, or auto on one of its nodes, got '127"),
        ("127.0.0.1:0", "^--address: expected HOST:PORT"),
        ("here", "^--address: expected HOST:PORT of the head node, or auto on one of its nodes, got 'here'$"),
        ("", "^--address: expected HOST:PORT of the head node, or auto on one of its nodes, got ''$"),
        ("a\nb:12", r"^--address: expected HOST:PORT of the head node, or auto on one of its nodes, got 'a\\nb:12'$"),
        ("ray://here:10001", "^--address: expected HOST:PORT of the head node, or auto"),
    ],
)
def test_without_a_cluster_at_the_address(given: str, message: str) -> None:
    with pytest.raises(TengenError, match=message), connected(given, ClusterSettings()):
        pass


def test_something_else_at_the_address() -> None:
    pytest.importorskip("grpc")
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        where = f"127.0.0.1:{server.server_port}"
        with pytest.raises(
            OptionError, match=rf"^--address {where}: what answers there is not a Ray cluster, or does not respond \("
        ):
            connection.check(where)
        server.shutdown()


@pytest.fixture
def guarded() -> Iterator[str]:
    """The address of a cluster whose token is `right`."""
    grpc = pytest.importorskip("grpc")

    def answer(request: bytes, context: Any) -> bytes:
        if ("authorization", "Bearer right") not in context.invocation_metadata():
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "InvalidAuthToken")
        return b""

    class Handler(grpc.GenericRpcHandler):
        def service(self, call: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(answer) if call.method == CALL else None

    server = grpc.server(ThreadPoolExecutor(1), handlers=[Handler()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


def test_a_token_is_used_where_it_is_asked_for(guarded: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="the cluster asks for a token, and there is none here: set RAY_AUTH_TOKEN"):
        connection.check(guarded)
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("right\n")
    connection.check(guarded)
    assert os.environ["RAY_AUTH_MODE"] == "token", "by which Ray sends it"
    os.environ["RAY_AUTH_TOKEN"] = "wrong"
    with pytest.raises(OptionError, match="the cluster has another token than this node"):
        connection.check(guarded)
    os.environ["RAY_AUTH_MODE"] = "disabled"
    with pytest.raises(OptionError, match="RAY_AUTH_MODE must be unset or token"):
        connection.check(guarded)


def test_ray_on_this_machine_writes_no_token_into_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    connection.own_token()
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
    with patch.dict(os.environ, {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": ""}):
        connection.own_token()
        assert os.environ["RAY_AUTH_MODE"] == "disabled", "it was chosen by the user"
