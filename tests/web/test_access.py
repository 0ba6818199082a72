"""Who may ask for what."""

import socket

import pytest

from tengen.web.access import Access

LOCAL, OPEN = Access("127.0.0.1", "secret"), Access("0.0.0.0", "secret")
HOST = {"host": "localhost:8136"}


@pytest.mark.parametrize(
    ("access", "method", "headers", "query", "status"),
    [
        (LOCAL, "GET", HOST, "", None),
        (LOCAL, "GET", {"host": "127.0.0.1:8136"}, "", None),
        (LOCAL, "GET", {"host": "[::1]:8136"}, "", None),
        (LOCAL, "GET", {"host": "evil.example:8136"}, "", 403),
        (LOCAL, "GET", {}, "", 403),
        (LOCAL, "GET", {**HOST, "origin": "http://evil.example"}, "", 403),
        (LOCAL, "GET", {**HOST, "origin": "null"}, "", 403),
        (LOCAL, "GET", {**HOST, "origin": "http://localhost:8136"}, "", None),
        (LOCAL, "GET", {"host": "[::1"}, "", 403),
        (LOCAL, "GET", {"host": "localhost@evil.example"}, "", 403),
        (LOCAL, "GET", {**HOST, "origin": "http://[::1"}, "", 403),
        (LOCAL, "GET", {**HOST, "sec-fetch-site": "cross-site"}, "", 403),
        (LOCAL, "POST", HOST, "", 401),
        (LOCAL, "POST", {**HOST, "x-tengen-token": "wrong"}, "", 401),
        (LOCAL, "POST", {**HOST, "x-tengen-token": "secret"}, "", None),
        (LOCAL, "DELETE", HOST, "", 401),
        (OPEN, "GET", {"host": "server:8136"}, "", 401),
        (OPEN, "GET", {"host": "server:8136"}, "token=wrong", 401),
        (OPEN, "GET", {"host": "server:8136"}, "token=secret", None),
        (OPEN, "GET", {"host": "server:8136", "origin": "http://evil.example"}, "token=secret", 403),
    ],
)
def test_requests(access: Access, method: str, headers: dict[str, str], query: str, status: int | None) -> None:
    found = access.refusal(method, headers, query)
    assert (None if found is None else found[0]) == status


def test_the_token_is_long_and_only_in_addresses_that_need_it() -> None:
    assert len(Access("0.0.0.0").token) >= 32
    assert Access("0.0.0.0").token != Access("0.0.0.0").token
    assert LOCAL.address(80) == "http://localhost:80/"
    name = socket.gethostname()  # other machines do not find 0.0.0.0
    assert OPEN.address(80) == Access("::", "secret").address(80) == f"http://{name}:80/?token=secret"
    assert Access("10.0.0.7", "secret").address(80) == "http://10.0.0.7:80/?token=secret"
    assert Access("fe80::1", "secret").address(80) == "http://[fe80::1]:80/?token=secret"
    assert "secret" not in repr(OPEN)
    assert ("Cross-Origin-Opener-Policy" in LOCAL.headers(), "Cross-Origin-Opener-Policy" in OPEN.headers()) == (
        True,
        False,
    )
    assert not Access("some.name").is_local
