"""Bytes to lines, whatever is sent: a line that is too long is never held, and half a line at the end is told."""

from collections.abc import Iterator

from tengen.protocol.encoding import LONGEST, ProtocolError


class LineSplitter:
    """One stream of bytes. Holds at most `longest` bytes, besides what it is fed."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()
        self._skipping = False  # the rest of a line that was too long

    def feed(self, data: bytes) -> Iterator[bytes | ProtocolError]:
        """The lines that end in `data`, without their ends; and what is wrong, as soon as it is known."""
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
        """What is wrong with the end of the stream."""
        if self._held:
            start = bytes(self._held[:80]).decode("utf-8", "replace")
            return ProtocolError(f"it ended in the middle of a line, which is not obeyed: {start!r}")
        return None
