"""A real HTTP server on loopback that takes networks, and does so badly on demand."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """Takes PUTs. `plan` says what becomes of the next ones; then all is well.

    fail: 500. stall: no answer. cut: hangs up in the middle of the body. lose: takes it all and hangs up without an
    answer. refuse: hangs up at once after a 401, without reading.
    """

    def __init__(self, *plan: str, token: str | None = None) -> None:
        self.plan = list(plan)
        self.token = token
        self.stored: dict[str, bytes] = {}
        self.accepted: Counter[str] = Counter()  # answered with 201
        self.asked: list[str] = []  # path of every request
        self.let_go = threading.Event()
        self.lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self) -> None:
                receiver.put(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def put(self, request: BaseHTTPRequestHandler) -> None:
        with self.lock:
            self.asked.append(request.path)
            act = self.plan.pop(0) if self.plan else "take"
        length = int(request.headers["Content-Length"])
        if act == "refuse":
            request.close_connection = True
            _answer(request, 401, "who are you")
            return
        if act == "cut":
            request.rfile.read(length // 2)
            request.close_connection = True
            request.connection.close()
            return
        body = request.rfile.read(length)
        if act == "stall":
            self.let_go.wait()
            request.close_connection = True
            return
        if act == "fail":
            _answer(request, 500, "try again\nlater")
            return
        if self.token is not None and request.headers["Authorization"] != f"Bearer {self.token}":
            _answer(request, 403, "no")
            return
        with self.lock:
            if request.path in self.stored and request.headers["If-None-Match"] == "*":
                code = 412
            else:
                code = 201
                self.stored[request.path] = body
                self.accepted[request.path] += 1
        if act == "lose":
            request.close_connection = True
            request.connection.close()
            return
        _answer(request, code, "")


def _answer(request: BaseHTTPRequestHandler, code: int, text: str) -> None:
    data = text.encode()
    request.send_response(code)
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)


@contextmanager
def receiving(*plan: str, token: str | None = None) -> Iterator[Receiver]:
    """A receiver that runs."""
    receiver = Receiver(*plan, token=token)
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.let_go.set()
        receiver.server.shutdown()
        receiver.server.server_close()
        thread.join()
