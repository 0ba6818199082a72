"""Messages as lines, and back. Any line gives a message or a ProtocolError that names the problem.

line = encode(StopTraining())                # b'{"type": "stop_training", "payload": {}}\n'
decode(line) == StopTraining()
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tengen import schema
from tengen.errors import OptionError, TengenError
from tengen.protocol.messages import TYPES
from tengen.run.metrics import plain
from tengen.schema import quote, unknown

LONGEST = 4 * 2**20
"""Bytes of a line, at most."""


class ProtocolError(TengenError):
    """A line is not a message."""


def encode(message: Any) -> bytes:
    """A message as a line. Numbers that are not finite become null."""
    name = next(name for name, kind in TYPES.items() if kind is type(message))
    found = {"type": name, "payload": plain(asdict(message))}
    return json.dumps(found, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode(line: bytes | str) -> Any:
    if len(line) > LONGEST:
        raise ProtocolError(f"a line of {len(line):,} bytes; expected at most {LONGEST:,}")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not valid JSON: {error}: {quote(_start(line))}") from None
    if not isinstance(found, dict) or set(found) - {"type", "payload"} or not isinstance(found.get("type"), str):
        raise ProtocolError(f'expected {{"type": ..., "payload": {{...}}}}, got {quote(_start(line))}')
    kind = TYPES.get(found["type"])
    if kind is None:
        raise ProtocolError(unknown("type", found["type"], list(TYPES)))
    try:
        return schema.from_data(kind, found.get("payload", {}), found["type"], strict=True, noun="field")
    except OptionError as error:
        raise ProtocolError(str(error)) from None


class LineSplitter:
    """Splits a stream into lines, and holds at most `longest` bytes of it."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()
        self._skipping = False  # the rest of a line that is too long

    def feed(self, data: bytes) -> Iterator[bytes | ProtocolError]:
        """The lines that end in `data`, without their ends, and errors."""
        begin = 0
        while begin < len(data):
            end = data.find(b"\n", begin)
            stop = len(data) if end < 0 else end
            if not self._skipping and len(self._held) + stop - begin > self._longest:
                self._skipping = True
                self._held = bytearray()
                yield ProtocolError(f"a line of more than {self._longest:,} bytes, which is skipped up to its end")
            if not self._skipping:
                self._held += data[begin:stop]
            if end < 0:
                return
            if not self._skipping:
                line, self._held = bytes(self._held), bytearray()
                yield line
            self._skipping = False
            begin = end + 1

    def end(self) -> ProtocolError | None:
        """The error at the end of the stream, if there is one."""
        if self._held:
            start = _start(bytes(self._held))
            return ProtocolError(f"it ended in the middle of a line, which is ignored: {start!r}")
        return None


def _start(line: bytes | str) -> str:
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    return text[:80].strip()
