"""A real HTTP server on loopback that takes networks, and does so badly on demand."""

import contextlib
import itertools
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """Takes PUTs. `plan` says what becomes of the next ones; then all is well.

    fail: 500. stall: no answer. cut: hangs up in the middle of the body. lose: takes it all and hangs up without an
    answer. refuse: hangs up at once after a 401, without reading. echo: 400 with the request's headers. garble: the
    request's headers instead of an answer. trickle: an answer that never ends, a byte at a time. An address: a
    redirect to it.

    `tick` is called before each byte of a trickle. With `tls`, the server speaks https.
    """

    def __init__(self, *plan: str, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.plan = list(plan)
        self.token = token
        self.tick: Callable[[], object] = lambda: None
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
        port = self.server.server_address[1]
        self.address = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)

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
        if len(body) < length:  # the sender has given up
            request.close_connection = True
            return
        if act == "stall":
            self.let_go.wait()
            request.close_connection = True
            return
        if act == "fail":
            _answer(request, 500, "try again\nlater")
            return
        if act == "echo":
            _answer(request, 400, f"bad request:\n{request.headers}")
            return
        if act == "garble":
            request.close_connection = True
            request.wfile.write(f"{request.headers['Authorization']}\r\n\r\n".encode())
            return
        if act == "trickle":
            request.close_connection = True
            with contextlib.suppress(OSError):
                for byte in itertools.chain(b"HTTP/1.1 200 OK\r\nX-Slow: ", itertools.repeat(ord("z"))):
                    self.tick()
                    request.connection.sendall(bytes([byte]))
            return
        if act.startswith("http"):
            request.send_response(307)
            request.send_header("Location", act)
            request.send_header("Content-Length", "0")
            request.end_headers()
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


@contextlib.contextmanager
def receiving(*plan: str, token: str | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver that runs."""
    receiver = Receiver(*plan, token=token, tls=tls)
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.let_go.set()
        receiver.server.shutdown()
        receiver.server.server_close()
        thread.join()
