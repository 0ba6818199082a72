"""The syntax of commands and answers: version 2 of the Go Text Protocol."""

import re
from dataclasses import dataclass

from tengen.errors import TengenError

_ID = re.compile(r"(\d+)(?:\s+|$)")


class GtpError(TengenError):
    """A command that fails; the text is the answer."""


@dataclass(frozen=True)
class GtpCommand:
    """One line of a controller. The `id` is repeated in the answer; it may be empty."""

    id: str
    name: str
    arguments: list[str]


def parse(line: str) -> GtpCommand | None:
    """The command in a line; None if the line is empty or a comment."""
    line = line.replace("\t", " ").partition("#")[0]
    line = "".join(c for c in line if c >= " " and c != "\x7f").strip()
    if not line:
        return None
    number = _ID.match(line)
    if number is None:
        name, *arguments = line.split()
        return GtpCommand("", name, arguments)
    name, *arguments = line[number.end() :].split() or [""]
    return GtpCommand(number[1], name, arguments)


def success(command: GtpCommand, text: str = "") -> str:
    """The answer to a command that was done."""
    return f"={command.id}{_body(text)}\n\n"


def failure(command: GtpCommand, text: str) -> str:
    """The answer to a command that could not be done."""
    return f"?{command.id}{_body(text)}\n\n"


def _body(text: str) -> str:
    """An empty line would end the answer, and control characters have no place in one."""
    first, *others = ("".join(c for c in line if c >= " ").rstrip() for line in text.split("\n"))
    return "\n".join([f" {first}" if first else "", *(line for line in others if line)])


def exactly(arguments: list[str], count: int, what: str) -> list[str]:
    """The first `count` arguments; there may be more, as GTP allows."""
    if len(arguments) < count:
        raise GtpError(f"syntax error: expected {what}")
    return arguments[:count]


def whole(text: str, what: str = "a whole number") -> int:
    """A whole number. GtpError for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise GtpError(f"syntax error: expected {what}")
    return int(text)
