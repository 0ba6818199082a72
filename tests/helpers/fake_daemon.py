"""A daemon that only talks: it speaks the protocol on standard input and output, or on a socket with --listen PATH.

What it says is told by its arguments: --log N lines at once, --garbage, --fragile, --selfplay.
Each order is answered by a log message, so that tests see what arrived.
A fragile one breaks when it is told to stop.
"""

import argparse
import contextlib
import os
import select
import socket
import sys
import time

from tengen.protocol.messages import GetStatus, Log, ProtocolError, Shutdown, StopTraining, decode, encode
from tests.helpers.dashboard_samples import selfplay_status, status


def main() -> int:
    args = _arguments()
    listener = _listen(args.listen) if args.listen else None
    clients: list[socket.socket] = []
    print("the stand-in has started", file=sys.stderr, flush=True)
    for number in range(args.log):
        print(f"line {number}", file=sys.stderr)
    sys.stderr.flush()
    if args.garbage:
        _garbage()
    due, step, rest = 0.0, args.step, b""
    while True:
        now = time.monotonic()
        if now >= due and not args.silent:
            due, step = now + args.every, step + 10
            made = selfplay_status(step) if args.selfplay else status(step)
            _say(encode(made), clients)
        readers = [0, *([listener] if listener else []), *clients]
        for ready in select.select(readers, [], [], args.every / 2)[0]:
            if ready is listener and listener is not None:
                clients.append(listener.accept()[0])
                continue
            piece = os.read(0, 65536) if ready == 0 else _received(ready)
            if not piece:
                if ready == 0:
                    return 0
                clients.remove(ready)
                continue
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if args.fragile and decode(line) == StopTraining():
                    print("Traceback: the stand-in breaks", file=sys.stderr, flush=True)
                    os._exit(3)
                if not _answer(line, clients, step):
                    if args.listen:
                        os.unlink(args.listen)
                    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen")
    parser.add_argument("--log", type=int, default=0)
    parser.add_argument("--garbage", action="store_true")
    parser.add_argument("--selfplay", action="store_true")
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--fragile", action="store_true")
    parser.add_argument("--every", type=float, default=0.1)
    parser.add_argument("--step", type=int, default=100)
    return parser.parse_args()


def _listen(path: str) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.bind(path)
    found.listen()
    return found


def _received(client: socket.socket) -> bytes:
    """What a client has sent; nothing if it is gone, also if it left without reading everything."""
    try:
        return client.recv(65536)
    except ConnectionError:
        return b""


def _answer(line: bytes, clients: list[socket.socket], step: int) -> bool:
    """Whether it goes on."""
    try:
        order = decode(line)
    except ProtocolError as error:
        _say(encode(Log("error", str(error))), clients)
        return True
    if isinstance(order, GetStatus):
        _say(encode(status(step)), clients)
    else:
        _say(encode(Log("info", f"got {order}")), clients)
    return not isinstance(order, Shutdown)


def _say(line: bytes, clients: list[socket.socket]) -> None:
    with contextlib.suppress(OSError):
        os.write(1, line)
    for client in clients:
        with contextlib.suppress(OSError):
            client.sendall(line)


def _garbage() -> None:
    whole = encode(status(1))
    for line in (
        b"Segmentation fault\n",
        b"\xff\xfe\x00 \x1b[2J\n",
        b"[1, 2]\n",
        b'{"type": "nonsense", "payload": {}}\n',
        b'{"type": "training_status", "payload": {"run": 7}}\n',
        b'{"type": "stop_training", "payload": {}}\n',
        whole.replace(b'"uptime":', b'"uptime":1' + b"0" * 400),
        whole.replace(b'"load":0.62', b'"load":NaN').replace(b'"rate":', b'"rate":-1e300'),
        b"x" * 5_000_000 + b"\n",
        b"\n",
    ):
        _write_all(line)


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
