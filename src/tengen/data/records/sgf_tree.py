"""The syntax of SGF: trees of nodes, of which the main line is kept.

Files from elsewhere are sloppy, so what can be understood is: text around the games, lower case letters in names
(FF[3]), properties that are there twice. What cannot be is an error with its line.
"""

import codecs
import re

from tengen.data.records.records import UTF_16, RecordError, shorten

Node = dict[str, list[str]]
"""Property -> its values, unescaped but for what depends on their type."""

_BEGIN = re.compile(r"\(\s*;")
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z]{1,40}")
_VALUE = re.compile(r"\[([^\]\\]*(?:\\.[^\]\\]*)*)\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(\r\n|\n\r|.)", re.DOTALL)


def decode(content: bytes) -> str:
    """The text of a file, in the encoding that it names, or in the first one that fits."""
    if content.startswith(UTF_16):
        return content.decode("utf-16", "replace")
    named = re.search(rb"CA\s*\[\s*([A-Za-z0-9_.:-]{1,40})\s*\]", content[:4000])
    wanted = named[1].decode("ascii") if named else "utf-8"
    for encoding in (wanted, "utf-8"):
        try:
            if codecs.lookup(encoding).name in ("utf-8", "ascii"):
                encoding = "utf-8-sig"  # which also takes the mark that some editors put first
            if b"(;)".decode(encoding) == "(;)":  # else the name could not have been read as it was
                return content.decode(encoding)
        except (LookupError, UnicodeError, ValueError):
            continue
    return content.decode("latin-1")  # what SGF means if nothing is said, and every byte is something in it


def main_lines(text: str) -> list[list[Node]]:
    """For each game its nodes, the first variation at every branch. RecordError if there is no game, or half a one."""
    games = []
    place = 0
    while begin := _BEGIN.search(text, place):
        nodes, place = _game(text, begin.start())
        games.append(nodes)
    if not games:
        raise RecordError("there is no game in it: expected SGF, which begins with (;")
    return games


def unescape(value: str) -> str:
    """A text as its writer meant it: \\] is ], and a line that ends in \\ goes on."""
    return _ESCAPE.sub(lambda match: "" if match[1][0] in "\r\n" else match[1], value)


def escape(text: str) -> str:
    """Undo `unescape`."""
    return text.replace("\\", "\\\\").replace("]", "\\]")


def _game(text: str, place: int) -> tuple[list[Node], int]:
    """The main line of the game that begins at `place`, and where it ends."""
    nodes: list[Node] = []
    main = [True]  # for each open bracket: whether it is on the main line
    ended = [False]  # ... and whether a variation in it has been closed
    node: Node = {}  # the one that properties belong to, which is not kept if it is in a variation
    place += 1
    while True:
        place = _skip(text, place)
        sign = text[place : place + 1]
        if sign == "(":
            main.append(main[-1] and not ended[-1])
            ended.append(False)
            place += 1
        elif sign == ")":
            main.pop()
            ended.pop()
            place += 1
            if not main:
                return nodes, place
            ended[-1] = True
        elif sign == ";":
            node = {}
            if main[-1] and not ended[-1]:
                nodes.append(node)
            place += 1
        elif not sign:
            raise RecordError(f"line {_line(text, place)}: the text ends inside a game; it may be cut short")
        else:
            place = _property(text, place, node)


def _property(text: str, place: int, node: Node) -> int:
    """Add the property at `place` to the node; give the place after it."""
    name = _NAME.match(text, place)
    if name is None:
        raise RecordError(f"line {_line(text, place)}: expected a property, got {shorten(text[place : place + 20])}")
    key = "".join(letter for letter in name[0] if letter.isupper()) or name[0].upper()
    place = _skip(text, name.end())
    values = node.setdefault(key, [])
    if text[place : place + 1] != "[":
        raise RecordError(f"line {_line(text, place)}: {name[0]}: expected a value in [ ]")
    while text[place : place + 1] == "[":
        value = _VALUE.match(text, place)
        if value is None:
            raise RecordError(
                f"line {_line(text, place)}: {name[0]}: there is no ] after this; the text may be cut short"
            )
        values.append(value[1])
        place = _skip(text, value.end())
    return place


def _skip(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return place if space is None else space.end()


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
