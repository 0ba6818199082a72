"""Who may ask the live page for what. Nothing else on this machine or in a browser can reach a run through it."""

import hmac
import ipaddress
import secrets
import socket
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

from tengen.web import page

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Access:
    """The rules of one server. A loopback address needs the token for requests that do something; others for all."""

    host: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def refusal(self, method: str, headers: Mapping[str, str], query: str) -> tuple[int, str] | None:
        """Why a request is refused, as a status and a message; None if it is not. Header names are in lower case."""
        host = headers.get("host", "")
        name = _split(f"//{host}").hostname or ""
        # A page of another site may have its own name point here (DNS rebinding): its requests carry that name.
        if self.is_local and name not in (*_NAMES, self.host):
            return 403, f"this server is called localhost, not {name[:80]!r}"
        origin = headers.get("origin")
        if origin is not None and _split(origin).netloc != host:
            return 403, "requests from other sites are refused"
        if headers.get("sec-fetch-site") == "cross-site":
            return 403, "requests from other sites are refused"
        if self.is_local and method in ("GET", "HEAD"):
            return None
        given = headers.get("x-tengen-token") or dict(urllib.parse.parse_qsl(query)).get("token", "")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return 401, "the token is missing or wrong: use the address that `tengen web` printed"
        return None

    def headers(self) -> dict[str, str]:
        found = {**HEADERS, "Content-Security-Policy": page.policy(True)}
        # Browsers complain about this one in pages of other machines without encryption.
        return {**found, "Cross-Origin-Opener-Policy": "same-origin"} if self.is_local else found

    def address(self, port: int) -> str:
        """The address to open: with the name of this machine if the server listens on all of its addresses."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        name = "localhost" if host in _NAMES else f"[{host}]" if ":" in host else host
        return f"http://{name}:{port}/" + ("" if self.is_local else f"?token={self.token}")


def _split(address: str) -> urllib.parse.SplitResult:
    """The parts of an address, all of them empty if it is not well formed."""
    try:
        return urllib.parse.urlsplit(address)
    except ValueError:
        return urllib.parse.SplitResult("", "", "", "", "")
