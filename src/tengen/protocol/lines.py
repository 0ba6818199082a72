"""Splits bytes into lines. A line that is too long is not held in memory, and half a line at the end is reported."""

from collections.abc import Iterator

from tengen.protocol.encoding import LONGEST, ProtocolError


class LineSplitter:
    """Splits one stream, and holds at most `longest` bytes of it."""

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
            start = bytes(self._held[:80]).decode("utf-8", "replace")
            return ProtocolError(f"it ended in the middle of a line, which is not obeyed: {start!r}")
        return None
