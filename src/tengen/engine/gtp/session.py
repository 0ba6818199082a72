"""A controller and an engine that talk."""

import sys
import threading
import traceback
from collections.abc import Callable, Iterable

from tengen.engine.gtp import protocol
from tengen.engine.gtp.commands import GtpCommands
from tengen.engine.gtp.input import InputLines
from tengen.engine.gtp.protocol import GtpCommand, GtpError
from tengen.errors import TengenError


class GtpSession:
    """Answers the commands in `source` until `quit` or its end. `write` sends text at once."""

    def __init__(self, dialect: GtpCommands, source: Iterable[bytes], write: Callable[[str], None]) -> None:
        self._dialect, self._write = dialect, write
        self._lines = InputLines(source)

    def run(self) -> None:
        """Answer until there is nothing more to answer."""
        while (line := self._lines.next()) is not None:
            command = protocol.parse(line)
            if command is not None:
                self._write_answer(command)
                if command.name == "quit":
                    return
            if not self._lines.waiting.is_set():
                self._dialect.ponder(_Answer(GtpCommand("", "", []), self._write, self._lines.waiting))

    def _write_answer(self, command: GtpCommand) -> None:
        """Whatever goes wrong is said, and the session goes on."""
        answer = _Answer(command, self._write, self._lines.waiting)
        try:
            if command.name in self._dialect.streams:
                self._dialect.streams[command.name](command.arguments, answer)
                answer.end()
            elif command.name in self._dialect.commands:
                self._write(protocol.success(command, self._dialect.commands[command.name](command.arguments)))
            else:
                raise GtpError("unknown command")
        except TengenError as error:
            answer.fail(str(error))
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:  # a controller must get its answer even if this program is wrong
            traceback.print_exc(file=sys.stderr)
            answer.fail(f"internal error: {error}")


class _Answer:
    """The answer to one command, sent as it comes."""

    def __init__(self, command: GtpCommand, write: Callable[[str], None], interrupted: threading.Event) -> None:
        self.interrupted = interrupted
        self._command, self._write, self._begun = command, write, False

    def begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._write(f"={self._command.id}\n")

    def line(self, text: str) -> None:
        self.begin()
        if text:
            self._write(text + "\n")

    def end(self) -> None:
        self.begin()
        self._write("\n")

    def fail(self, text: str) -> None:
        """Say what went wrong, if that can still be said."""
        if self._begun:
            print(f"{self._command.name}: {text}", file=sys.stderr)
            self._write("\n")
        else:
            self._write(protocol.failure(self._command, text))
