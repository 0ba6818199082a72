"""The live page on a free port, in a thread of this process."""

import contextlib
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tengen.web.access import Access
from tests.helpers.patience import LONG, eventually

if TYPE_CHECKING:
    from tengen.web.server import LivePage, PageServer


@dataclass(frozen=True)
class Serving:
    """A server to ask."""

    address: str  # without a slash at the end
    access: Access
    server: "PageServer"
    page: "LivePage"

    def end(self) -> None:
        """As Ctrl-C does."""
        self.server.should_exit = True

    def ask(
        self, path: str, body: Any = None, headers: Mapping[str, str] | None = None, token: bool = True
    ) -> tuple[int, Any, Any]:
        """Status, content and headers of the answer. With a body, the request is a POST with the token."""
        sent = {**({"X-Tengen-Token": self.access.token} if token and body is not None else {}), **(headers or {})}
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, sent)
        try:
            with urllib.request.urlopen(request, timeout=LONG) as answer:
                return answer.status, _content(answer.read()), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _content(error.read()), error.headers


@contextlib.contextmanager
def serving(*folders: Path, host: str = "127.0.0.1") -> Iterator[Serving]:
    """Serve the runs in these folders."""
    from tengen.web.server import LivePage, PageServer, Watched

    access = Access(host)
    listening = socket.create_server(("127.0.0.1", 0))
    page = LivePage(Watched(folders), access)
    server = PageServer(page)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started)
        yield Serving(f"http://127.0.0.1:{listening.getsockname()[1]}", access, server, page)
    finally:
        server.should_exit = True
        thread.join(LONG)
        listening.close()


def _content(raw: bytes) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(raw)
    return raw.decode(errors="replace")
